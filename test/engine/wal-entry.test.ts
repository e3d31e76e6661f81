import { describe, expect, test } from "bun:test";
import type { NewRecord } from "../../src/engine/record.ts";
import { makeProducerRoom, type TailChange, TailFold } from "../../src/engine/tail-fold.ts";
import type { ProducerState, TailState } from "../../src/engine/tail-state.ts";
import { decodeTailState, emptyTailState, encodeTailState } from "../../src/engine/tail-state-format.ts";
import { decodeWalEntries, encodeWalEntry, type WalEntry, type WalEntryHead } from "../../src/engine/wal-entry.ts";
import { ByteReader, ByteWriter } from "../../src/lib/bytes.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { PRODUCER_IDLE_MS, PRODUCERS_MAX } from "../../src/lib/limits.ts";
import { Chance, plainRecord, readable, stored } from "./record-fixtures.ts";

const U64_MAX = 2n ** 64n - 1n;

const fullState: TailState = {
  changeNumber: 2 ** 53 - 2,
  nextOffset: 2 ** 53 - 1,
  lastTimestampMs: 1_760_000_000_123,
  streamSeq: "",
  isClosed: true,
  closedBy: { producerId: "écrivain", producerEpoch: U64_MAX, seq: 0n },
  producers: new Map([
    ["", { producerEpoch: 0n, lastSeq: U64_MAX, lastUsedMs: 0 }],
    ["écrivain", { producerEpoch: U64_MAX, lastSeq: 0n, lastUsedMs: 1_760_000_000_123 }],
  ]),
};

function head(changes: Partial<WalEntryHead>): WalEntryHead {
  return {
    streamId: 3,
    changeNumber: 1,
    nextOffset: 1,
    timestampMs: 5,
    base: null,
    producer: null,
    streamSeq: null,
    closes: false,
    ...changes,
  };
}

function encode(entries: readonly (readonly [WalEntryHead, readonly NewRecord[] | Uint8Array | null])[]): Uint8Array {
  const out = new ByteWriter(1);
  for (const [each, records] of entries) encodeWalEntry(out, each, records);
  return out.copy();
}

function roundTrip(state: TailState): TailState {
  const out = new ByteWriter(1);
  encodeTailState(out, state);
  const reader = new ByteReader(out.copy());
  const decoded = decodeTailState(reader);
  reader.expectEnd();
  return decoded;
}

describe("a tail state", () => {
  test("comes back as it was, empty and with everything", () => {
    expect(roundTrip(emptyTailState())).toEqual(emptyTailState());
    expect(roundTrip(emptyTailState(7))).toEqual(emptyTailState(7));
    expect(roundTrip(fullState)).toEqual(fullState);
  });

  test("of another version is incompatible, cut or with unknown flags it is corrupt", () => {
    const out = new ByteWriter();
    encodeTailState(out, fullState);
    const bytes = out.copy();
    for (let length = 0; length < bytes.length; length++) {
      expect(() => decodeTailState(new ByteReader(bytes.slice(0, length)))).toThrow(expect.objectContaining({ code: "corrupt" }));
    }
    bytes[0] = 2;
    expect(() => decodeTailState(new ByteReader(bytes))).toThrow(expect.objectContaining({ code: "incompatible" }));
    expect(() => decodeTailState(new ByteReader(Uint8Array.of(1, 0, 0, 0, 8, 0)))).toThrow(expect.objectContaining({ code: "corrupt" }));
  });
});

describe("WAL entries", () => {
  test("come back as they were, each part present and absent", () => {
    const chance = new Chance(1);
    const written: [WalEntryHead, NewRecord[] | Uint8Array | null][] = [];
    for (let mask = 0; mask < 64; mask++) {
      const records = (mask & 16) !== 0 ? chance.records(1 + chance.below(4), (mask & 32) !== 0) : null;
      const entry = head({
        streamId: chance.below(2 ** 31) * 2 ** 21,
        changeNumber: fullState.changeNumber + 1,
        nextOffset: 1000 + mask,
        timestampMs: 1_760_000_000_000 + mask,
        base: (mask & 1) !== 0 ? fullState : null,
        producer: (mask & 2) !== 0 ? { producerId: "p", producerEpoch: 1n, seq: U64_MAX } : null,
        streamSeq: (mask & 4) !== 0 ? "9" : null,
        closes: (mask & 8) !== 0,
      });
      written.push([entry, records]);
    }
    const body = encode(written);
    let at = 0;
    const entries = [...decodeWalEntries(body, "segment 1")];
    expect(entries.length).toBe(written.length);
    for (const [i, { start, end, baseOffset, batch, ...rest }] of entries.entries()) {
      const [expectedHead, records] = written[i] ?? [head({}), null];
      expect<WalEntryHead>(rest).toEqual(expectedHead);
      expect(start).toBe(at);
      at = end;
      if (records === null || records instanceof Uint8Array) expect(batch).toBeNull();
      else expect(readable(batch?.records() ?? [])).toEqual(readable(stored(baseOffset, expectedHead.timestampMs, records)));
      expect(baseOffset).toBe(expectedHead.nextOffset - (batch?.count ?? 0));
    }
    expect(at).toBe(body.length);
  });

  test("with one plain body are the same by the fast path, and say where the batch is", () => {
    const body = Uint8Array.of(1, 2, 3);
    const out = new ByteWriter(1);
    const batchStart = encodeWalEntry(out, head({}), body);
    expect(out.copy()).toEqual(encode([[head({}), [plainRecord(body)]]]));
    expect([...decodeWalEntries(out.copy(), "segment 1")][0]?.batch?.start).toBe(batchStart);
    expect(encodeWalEntry(out, head({ changeNumber: 2 }), null)).toBe(-1);
  });

  test("cut at any byte but their borders are corrupt and name the segment", () => {
    const first = encode([[head({ base: emptyTailState(), streamSeq: "a" }), [plainRecord("x")]]]);
    const body = encode([
      [head({ base: emptyTailState(), streamSeq: "a" }), [plainRecord("x")]],
      [head({ changeNumber: 2, nextOffset: 2 }), [plainRecord("y")]],
    ]);
    for (let length = 1; length < body.length; length++) {
      if (length === first.length) continue;
      expect(() => [...decodeWalEntries(body.slice(0, length), "segment 7")]).toThrow(/segment 7|record batch/);
    }
  });

  test("with bytes behind their parts are corrupt, with records and without", () => {
    for (const records of [null, [plainRecord("x")]]) {
      const body = encode([[head({ streamSeq: "a", closes: true }), records]]);
      const padded = Uint8Array.from([...body, 0, 0, 0]);
      new DataView(padded.buffer).setUint32(0, padded.length);
      expect(() => [...decodeWalEntries(padded, "segment 7")]).toThrow(expect.objectContaining({ code: "corrupt" }));
    }
  });

  test("with any bit flipped or random bytes end in entries, corrupt or incompatible", () => {
    const chance = new Chance(2);
    const body = encode([
      [
        head({ changeNumber: fullState.changeNumber + 1, base: fullState, producer: { producerId: "p", producerEpoch: 1n, seq: 2n } }),
        chance.records(3, false),
      ],
      [head({ changeNumber: 2, streamSeq: "s", closes: true }), null],
    ]);
    const readAll = (bytes: Uint8Array) => {
      try {
        for (const entry of decodeWalEntries(bytes, "segment 1")) for (const _ of entry.batch?.records() ?? []);
      } catch (error) {
        if (!isPicoError(error, "corrupt") && !isPicoError(error, "incompatible")) throw error;
      }
    };
    for (let bit = 0; bit < body.length * 8; bit++) {
      const damaged = body.slice();
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      readAll(damaged);
    }
    for (let round = 0; round < 2000; round++) readAll(chance.bytes(chance.below(60)));
  });
});

describe("folding entries", () => {
  /** The entries as a replay sees them. */
  function decoded(entries: Parameters<typeof encode>[0]): WalEntry[] {
    return [...decodeWalEntries(encode(entries), "segment 1")];
  }

  test("gives the state that the owner had, with records, producers, Stream-Seq and close", () => {
    const producer = { producerId: "p", producerEpoch: 1n, seq: 4n };
    const entries = decoded([
      [head({ nextOffset: 12, timestampMs: 100 }), [plainRecord("a"), plainRecord("b")]],
      [head({ changeNumber: 2, nextOffset: 12, timestampMs: 200, producer, streamSeq: "7" }), null],
      [head({ changeNumber: 3, nextOffset: 13, timestampMs: 300, producer: { ...producer, seq: 5n }, closes: true }), [plainRecord("c")]],
    ]);
    const fold = new TailFold(emptyTailState(10));
    const states = entries.map((entry) => {
      fold.apply(entry);
      return fold.state();
    });
    expect(states[0]).toEqual({ ...emptyTailState(12), changeNumber: 1, lastTimestampMs: 100 });
    expect(states[1]).toEqual({
      ...emptyTailState(12),
      changeNumber: 2,
      lastTimestampMs: 100,
      streamSeq: "7",
      producers: new Map([["p", { producerEpoch: 1n, lastSeq: 4n, lastUsedMs: 200 }]]),
    });
    expect(states[2]).toEqual({
      changeNumber: 3,
      nextOffset: 13,
      lastTimestampMs: 300,
      streamSeq: "7",
      isClosed: true,
      closedBy: { producerId: "p", producerEpoch: 1n, seq: 5n },
      producers: new Map([["p", { producerEpoch: 1n, lastSeq: 5n, lastUsedMs: 300 }]]),
    });
    let tail = emptyTailState(10);
    for (const entry of entries) tail = applyEntry(tail, entry);
    expect(tail).toEqual(states[2] ?? tail);
  });

  test("copies the producers once, however many entries there are, and never changes a state handed out", () => {
    const producers = new Map<string, ProducerState>([["p", { producerEpoch: 0n, lastSeq: 0n, lastUsedMs: 0 }]]);
    const base = { ...emptyTailState(), producers };
    const fold = new TailFold(base);
    const change = { ...head({ nextOffset: 0 }), baseOffset: 0 };
    fold.apply({ ...change, changeNumber: 1, producer: { producerId: "p", producerEpoch: 0n, seq: 1n } });
    const first = fold.state();
    expect(base.producers.get("p")?.lastSeq).toBe(0n);
    expect(fold.state().producers).toBe(first.producers);
    fold.apply({ ...change, changeNumber: 2, producer: { producerId: "p", producerEpoch: 0n, seq: 2n } });
    expect(first.producers.get("p")?.lastSeq).toBe(1n);
    expect(fold.state().producers.get("p")?.lastSeq).toBe(2n);
  });

  test("refuses a change number or an offset that does not follow", () => {
    const change = { ...head({}), baseOffset: 0 };
    const apply = (changes: object) => () => applyEntry(emptyTailState(), { ...change, ...changes });
    expect(apply({})).not.toThrow();
    for (const changes of [{ changeNumber: 0 }, { changeNumber: 2 }, { baseOffset: 1 }, { baseOffset: 2, nextOffset: 1 }]) {
      expect(apply(changes)).toThrow(expect.objectContaining({ code: "corrupt" }));
    }
  });

  test("with all producers remembered, only those idle long enough make room", () => {
    const producers = new Map<string, ProducerState>();
    for (let i = 0; i < PRODUCERS_MAX - 1; i++) producers.set(`p${i}`, { producerEpoch: 0n, lastSeq: 0n, lastUsedMs: i });
    expect(makeProducerRoom(producers, "new", 0)).toBe(true);
    producers.set("last", { producerEpoch: 0n, lastSeq: 0n, lastUsedMs: 1e15 });
    expect(makeProducerRoom(producers, "p3", 0)).toBe(true);
    expect(makeProducerRoom(producers, "new", PRODUCER_IDLE_MS - 1)).toBe(false);
    expect(producers.size).toBe(PRODUCERS_MAX);
    expect(makeProducerRoom(producers, "new", PRODUCER_IDLE_MS + 1)).toBe(true);
    expect(producers.size).toBe(PRODUCERS_MAX - 2);
    expect(producers.has("p1")).toBe(false);
    expect(producers.has("p2")).toBe(true);
  });
});

/** The tail state behind one change. */
function applyEntry(tail: TailState, change: TailChange): TailState {
  const fold = new TailFold(tail);
  fold.apply(change);
  return fold.state();
}
