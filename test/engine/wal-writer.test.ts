import { describe, expect, test } from "bun:test";
import type { WalSegment } from "../../src/engine/wal-segment.ts";
import { decodeSegment, SEGMENT_HEADER_BYTES } from "../../src/engine/wal-segment-format.ts";
import { WalWriter, type WalWriterOptions } from "../../src/engine/wal-writer.ts";
import { concatBytes, utf8Decoder, utf8Encoder } from "../../src/lib/bytes.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { FENCE_DOUBT_MARGIN_MS, SEGMENT_BYTES_MAX, WAL_RETRY_MS_MAX, WAL_SLAB_BYTES } from "../../src/lib/limits.ts";
import { formatRegistration } from "../../src/lib/registration.ts";
import { type SentAt, sentNow } from "../../src/lib/sent-at.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { codeOf, hastyClock, MemoryWal, OWNER, seededRandom, segmentBytes, TAKER, tombstoneBytes, turn, until } from "./wal-fixtures.ts";

interface Bench {
  readonly store: MemoryWal;
  readonly clock: ManualClock;
  readonly writer: WalWriter;
  readonly durable: number[];
  readonly ends: string[];
}

function bench(options: Partial<WalWriterOptions> & { inFlightMax?: number } = {}): Bench {
  const store = new MemoryWal(options.inFlightMax ?? 2);
  const clock = new ManualClock();
  const durable: number[] = [];
  const ends: string[] = [];
  const writer = new WalWriter({
    store,
    registration: OWNER,
    clock,
    random: seededRandom(1),
    onDurable: (segment) => durable.push(segment.number),
    onFenced: (error) => ends.push(`fenced ${error.code}`),
    onFailed: (error) => ends.push(`failed ${error.code}`),
    ...options,
  });
  return { store, clock, writer, durable, ends };
}

function append(writer: WalWriter, text: string) {
  return writer.append((out) => out.bytes(utf8Encoder.encode(text)));
}

function textOf(segment: WalSegment): string {
  return utf8Decoder.decode(segment.bytes.subarray(SEGMENT_HEADER_BYTES, segment.length));
}

function storedText(store: MemoryWal, number: number): string {
  const bytes = store.of(OWNER).get(number);
  if (bytes === undefined) throw new Error(`number ${number} is absent`);
  return utf8Decoder.decode(decodeSegment(bytes, OWNER, number).body);
}

/** Holds creates until the test lets them go, by number. */
function holdCreates(store: MemoryWal): { release: (number: number, error?: PicoError) => void; waiting: () => number[] } {
  const held = new Map<number, (error?: PicoError) => void>();
  store.beforeCreate = (number) =>
    new Promise<void>((resolve, reject) => held.set(number, (error) => (error === undefined ? resolve() : reject(error))));
  return {
    release: (number, error) => {
      const go = held.get(number);
      held.delete(number);
      go?.(error);
    },
    waiting: () => [...held.keys()],
  };
}

test("an append on an idle WAL is written at once, in segment 1", async () => {
  const { store, writer, durable } = bench();
  const position = append(writer, "hello");
  await turn();
  expect(durable).toEqual([1]);
  expect(position.segment.state).toBe("durable");
  expect(storedText(store, 1)).toBe("hello");
  expect(utf8Decoder.decode(position.segment.bytes.subarray(position.start, position.end))).toBe("hello");
});

test("appends of one turn share a segment, and those that come while all places are taken share the next", async () => {
  const { store, writer, durable } = bench({ inFlightMax: 1 });
  const held = holdCreates(store);
  append(writer, "a");
  append(writer, "b");
  await turn();
  append(writer, "c");
  await turn();
  append(writer, "d");
  await turn();
  expect(held.waiting()).toEqual([1]);
  held.release(1);
  await turn();
  held.release(2);
  await turn();
  expect(durable).toEqual([1, 2]);
  expect([storedText(store, 1), storedText(store, 2)]).toEqual(["ab", "cd"]);
});

test("acks come in number order, whatever order the store ends in", async () => {
  const { store, writer, durable } = bench({ inFlightMax: 4 });
  const held = holdCreates(store);
  for (const text of ["a", "b", "c", "d"]) {
    append(writer, text);
    writer.seal();
  }
  await turn();
  expect(held.waiting()).toEqual([1, 2, 3, 4]);
  held.release(3);
  held.release(2);
  await turn();
  expect(durable).toEqual([]);
  expect(writer.durableNumber).toBe(0);
  held.release(1);
  await turn();
  expect(durable).toEqual([1, 2, 3]);
  held.release(4);
  await turn();
  expect(durable).toEqual([1, 2, 3, 4]);
});

test("a segment seals at its size although all places are taken, and waits its turn", async () => {
  const { store, writer, durable } = bench({ inFlightMax: 1, segmentBytes: 100 });
  const held = holdCreates(store);
  append(writer, "x".repeat(80));
  append(writer, "y".repeat(80));
  append(writer, "z".repeat(80));
  expect(writer.sealedNumber).toBe(3);
  await turn();
  expect(held.waiting()).toEqual([1]);
  for (const number of [1, 2, 3]) {
    held.release(number);
    await turn();
  }
  expect(durable).toEqual([1, 2, 3]);
});

test("a large entry keeps its place when the buffer grows under it", async () => {
  const { store, writer } = bench();
  const first = append(writer, "first");
  const second = append(writer, "x".repeat(3 * WAL_SLAB_BYTES));
  expect(utf8Decoder.decode(first.segment.bytes.subarray(first.start, first.end))).toBe("first");
  await turn();
  expect(storedText(store, 1).length).toBe(5 + 3 * WAL_SLAB_BYTES);
  expect(second.end).toBe(first.segment.bytes.length);
});

test("a sealed segment holds no more memory than its bytes, or an eighth above where it is large", async () => {
  const { writer } = bench();
  for (const size of [1, 200, 60_000, 70_000, 127_000, 300_000, 500_000]) {
    const { segment } = append(writer, "x".repeat(size));
    writer.seal();
    await turn();
    expect(segment.bytes.length).toBe(size + SEGMENT_HEADER_BYTES);
    expect(segment.bytes.buffer.byteLength).toBeLessThanOrEqual(segment.bytes.length * 1.15);
  }
});

test("an entry whose encoding throws leaves no trace", async () => {
  const { store, writer } = bench();
  append(writer, "a");
  expect(() =>
    writer.append((out) => {
      out.bytes(utf8Encoder.encode("half"));
      throw new RangeError("no");
    }),
  ).toThrow(RangeError);
  append(writer, "b");
  await turn();
  expect(storedText(store, 1)).toBe("ab");
});

test("an entry that overfills the open segment goes into the next, and one that fits none is refused without a trace", async () => {
  const { store, writer, ends } = bench({ segmentBytes: SEGMENT_BYTES_MAX });
  const largest = new Uint8Array(SEGMENT_BYTES_MAX - SEGMENT_HEADER_BYTES);
  append(writer, "a");
  const position = writer.append((out) => out.bytes(largest));
  expect([position.segment.number, position.start, position.end]).toEqual([2, SEGMENT_HEADER_BYTES, SEGMENT_BYTES_MAX]);
  append(writer, "b");
  expect(() => writer.append((out) => out.bytes(new Uint8Array(SEGMENT_BYTES_MAX)))).toThrow(PicoError);
  append(writer, "c");
  await turn();
  expect([storedText(store, 1), storedText(store, 3), ends]).toEqual(["a", "bc", []]);
});

test("each header carries the trim point and durable number of its first attempt", async () => {
  const { store, writer } = bench({ inFlightMax: 2 });
  for (const text of ["a", "b"]) {
    append(writer, text);
    await turn();
  }
  writer.setTrimPoint(1);
  append(writer, "c");
  await turn();
  const marks = [1, 2, 3].map((number) => {
    const { trimPoint, durableNumber } = decodeSegment(store.of(OWNER).get(number) ?? new Uint8Array(), OWNER, number);
    return [trimPoint, durableNumber];
  });
  expect(marks).toEqual([
    [0, 0],
    [0, 1],
    [1, 2],
  ]);
});

test("a refused create is tried again with the same bytes, without bound, and the writer is stalled meanwhile", async () => {
  const { store, clock, writer, durable } = bench();
  const offered: Uint8Array[] = [];
  let refusals = 50;
  store.beforeCreate = (_number, bytes) => {
    offered.push(bytes.slice());
    if (refusals-- > 0) throw new PicoError(refusals % 2 === 0 ? "storage_full" : "storage_failed", "503");
  };
  append(writer, "a");
  await turn();
  expect(writer.isStalled).toBe(true);
  writer.seal();
  for (let at = 0; at < 60; at++) await clock.advance(WAL_RETRY_MS_MAX);
  expect(durable).toEqual([1]);
  expect(writer.isStalled).toBe(false);
  expect(offered.length).toBe(51);
  expect(offered.every((bytes) => Buffer.from(bytes).equals(offered[0] ?? new Uint8Array()))).toBe(true);
});

test("retries wait at least half of the pace", async () => {
  const { store, clock, writer } = bench();
  let attempts = 0;
  store.beforeCreate = () => {
    attempts++;
    throw new PicoError("storage_failed", "503");
  };
  append(writer, "a");
  await turn();
  await clock.advance(9);
  expect(attempts).toBe(1);
  await clock.advance(11);
  expect(attempts).toBe(2);
  writer.abandon();
});

test("a create whose answer was lost is settled by reading back our own bytes", async () => {
  const { store, clock, writer, durable, ends } = bench();
  let isLost = true;
  store.afterCreate = () => {
    if (isLost) {
      isLost = false;
      throw new PicoError("unknown_outcome", "time-out");
    }
  };
  append(writer, "a");
  await turn();
  expect(durable).toEqual([]);
  await clock.advance(WAL_RETRY_MS_MAX);
  expect(durable).toEqual([1]);
  expect(ends).toEqual([]);
});

test("a create that may not have happened is offered again: absent is not settled", async () => {
  const { store, clock, writer, durable } = bench();
  const durableAtAttempts: number[] = [];
  store.beforeCreate = () => {
    durableAtAttempts.push(durable.length);
    if (durableAtAttempts.length <= 3) throw new PicoError("unknown_outcome", "time-out");
  };
  append(writer, "a");
  await turn();
  await clock.advance(3 * WAL_RETRY_MS_MAX);
  expect(durableAtAttempts).toEqual([0, 0, 0, 0]);
  expect(durable).toEqual([1]);
});

test("the end by a tombstone names who wrote it, and the remedy", async () => {
  const { store, writer } = bench();
  store.of(OWNER).set(1, tombstoneBytes(1));
  append(writer, "a");
  await turn();
  expect(writer.failure?.facts.by).toBe(formatRegistration(TAKER));
  const taker = `node ${TAKER.nodeId} (${formatRegistration(TAKER)}) has taken over from ${formatRegistration(OWNER)}, `;
  expect(writer.failure?.message).toStartWith(taker);
  expect(writer.failure?.message).toContain("Remedy: start this node again, unless");
});

test("a tombstone or another's segment under our number fences the writer, and everyone who waits is told", async () => {
  for (const foreign of [tombstoneBytes(2), segmentBytes(2, "of a twin")]) {
    const { store, writer, durable, ends } = bench({ inFlightMax: 3 });
    append(writer, "a");
    await turn();
    store.of(OWNER).set(2, foreign);
    const held = holdCreates(store);
    const doomed = [append(writer, "b"), append(writer, "c")];
    writer.seal();
    const later = append(writer, "d");
    writer.seal();
    const waits = [codeOf(writer.whenDurable(3)), codeOf(writer.prove()), codeOf(writer.stop())];
    await turn();
    held.release(3);
    await turn();
    held.release(2);
    expect(await Promise.all(waits)).toEqual(["fenced_node", "fenced_node", "fenced_node"]);
    expect(ends).toEqual(["fenced fenced_node"]);
    expect(durable).toEqual([1]);
    expect([...doomed, later].map(({ segment }) => segment.state)).toEqual(["failed", "failed", "failed"]);
    expect(() => append(writer, "late")).toThrow(PicoError);
    expect(await codeOf(writer.prove())).toBe("fenced_node");
    expect(await codeOf(writer.stop())).toBe("fenced_node");
    expect(await codeOf(writer.whenDurable(1))).toBe("none");
    expect(await codeOf(writer.whenDurable(3))).toBe("fenced_node");
  }
});

test("a store that lost durability ends the writer for good: nothing more is acknowledged", async () => {
  const { store, writer, durable, ends } = bench({ inFlightMax: 2 });
  const held = holdCreates(store);
  append(writer, "a");
  writer.seal();
  append(writer, "b");
  writer.seal();
  append(writer, "c");
  await turn();
  held.release(1, new PicoError("durability", "EIO"));
  await turn();
  held.release(2);
  await turn();
  expect(durable).toEqual([]);
  expect(ends).toEqual(["failed durability"]);
  expect(() => append(writer, "d")).toThrow(PicoError);
  expect(held.waiting()).toEqual([]);
});

test("our own segment that reads back damaged is neither acknowledged nor taken for a fence", async () => {
  const { store, clock, writer, durable, ends } = bench();
  const damaged = segmentBytes(1, "torn");
  damaged[57] = 0;
  store.of(OWNER).set(1, damaged);
  append(writer, "a");
  await turn();
  for (let at = 0; at < 5; at++) await clock.advance(WAL_RETRY_MS_MAX);
  expect(durable).toEqual([]);
  expect(ends).toEqual(["failed corrupt"]);
});

test("an exception of the completion ends the writer instead of leaving a gap", async () => {
  const ends: string[] = [];
  const { writer } = bench({
    onDurable: () => {
      throw new RangeError("a bug");
    },
    onFailed: (error) => ends.push(error.code),
  });
  append(writer, "a");
  await turn();
  expect(ends).toEqual(["durability"]);
  expect(() => append(writer, "b")).toThrow(PicoError);
});

test("a proof sends an empty segment, shared by those who come meanwhile, and says when it was sent", async () => {
  const { store, clock, writer, durable } = bench();
  const held = holdCreates(store);
  const sentMs = clock.monotonicMs();
  const proofs = [writer.prove(), writer.prove()];
  await turn();
  await clock.advance(700);
  proofs.push(writer.prove());
  expect(writer.provenMs).toBe(Number.NEGATIVE_INFINITY);
  held.release(1);
  expect(await Promise.all(proofs)).toEqual([sentMs, sentMs, sentMs]);
  expect(writer.provenMs).toBe(sentMs);
  expect(durable).toEqual([1]);
  expect(storedText(store, 1)).toBe("");
  const next = writer.prove();
  await turn();
  held.release(2);
  expect(await next).toBe(sentMs + 700);
});

test("a proof is none before all lower numbers are durable", async () => {
  const { store, writer } = bench({ inFlightMax: 3 });
  const held = holdCreates(store);
  append(writer, "a");
  writer.seal();
  let isProven = false;
  void writer.prove().then(() => {
    isProven = true;
  });
  await turn();
  held.release(2);
  await turn();
  expect(isProven).toBe(false);
  held.release(1);
  await turn();
  expect(isProven).toBe(true);
});

test("a proof retried over an outage counts from its first attempt", async () => {
  const { store, clock, writer } = bench();
  let refusals = 4;
  store.beforeCreate = () => {
    if (refusals-- > 0) throw new PicoError("unknown_outcome", "time-out");
  };
  const sentMs = clock.monotonicMs();
  const proof = writer.prove();
  await turn();
  for (let at = 0; at < 5; at++) await clock.advance(WAL_RETRY_MS_MAX);
  expect(await proof).toBe(sentMs);
});

test("a cut returns the number of the last entry, and none is made where nothing is open", async () => {
  const { writer } = bench();
  expect(writer.seal()).toBe(0);
  append(writer, "a");
  append(writer, "b");
  expect(writer.seal()).toBe(1);
  expect(writer.seal()).toBe(1);
  await writer.whenDurable(1);
  append(writer, "c");
  expect(writer.seal()).toBe(2);
});

test("a lingering WAL collects for its time, and no longer", async () => {
  const { store, clock, writer, durable } = bench({ lingerMs: 50 });
  append(writer, "a");
  await clock.advance(30);
  append(writer, "b");
  expect(durable).toEqual([]);
  await clock.advance(20);
  expect(durable).toEqual([1]);
  append(writer, "c");
  expect(writer.seal()).toBe(2);
  append(writer, "d");
  await clock.advance(50);
  expect([1, 2, 3].map((number) => storedText(store, number))).toEqual(["ab", "c", "d"]);
});

test("a stop takes no more appends and ends when everything is durable", async () => {
  const { store, writer } = bench();
  const held = holdCreates(store);
  append(writer, "a");
  let isStopped = false;
  const stopping = writer.stop().then(() => {
    isStopped = true;
  });
  expect(() => append(writer, "b")).toThrow(PicoError);
  await turn();
  expect(isStopped).toBe(false);
  held.release(1);
  await stopping;
  expect(storedText(store, 1)).toBe("a");
});

test("an abandoned writer ends its retries and tells no one but those who wait", async () => {
  const { store, clock, writer, ends } = bench();
  store.beforeCreate = () => {
    throw new PicoError("storage_failed", "503");
  };
  append(writer, "a");
  const waiting = codeOf(writer.whenDurable(writer.seal()));
  await turn();
  writer.abandon();
  expect(await waiting).toBe("unavailable");
  await turn();
  expect(clock.timerCount).toBe(0);
  expect(ends).toEqual([]);
});

test("appends made while a segment is acknowledged go into the next", async () => {
  const texts: string[] = [];
  let writer: WalWriter | null = null;
  let left = 3;
  const { store, writer: made } = bench({
    inFlightMax: 1,
    onDurable: (segment) => {
      texts.push(textOf(segment));
      if (left-- > 0 && writer !== null) append(writer, `again ${left}`);
    },
  });
  writer = made;
  append(writer, "first");
  await until(() => texts.length === 4);
  expect(texts).toEqual(["first", "again 2", "again 1", "again 0"]);
  expect([...store.of(OWNER).keys()]).toEqual([1, 2, 3, 4]);
});

describe("an answer that comes late", () => {
  const FENCEABLE_MS = 5000;

  test("is held until a segment sent behind it is confirmed, an empty one where nothing else waits", async () => {
    const { store, clock, writer, durable } = bench({ fenceableMs: FENCEABLE_MS });
    const held = holdCreates(store);
    append(writer, "a");
    await turn();
    await clock.advance(FENCEABLE_MS - FENCE_DOUBT_MARGIN_MS);
    held.release(1);
    await turn();
    expect(durable).toEqual([]);
    expect(writer.durableNumber).toBe(0);
    expect(held.waiting()).toEqual([2]);
    held.release(2);
    await turn();
    expect(durable).toEqual([1, 2]);
    expect(storedText(store, 2)).toBe("");
  });

  test("just below the limit counts by itself", async () => {
    const { store, clock, writer, durable } = bench({ fenceableMs: FENCEABLE_MS });
    const held = holdCreates(store);
    append(writer, "a");
    await turn();
    await clock.advance(FENCEABLE_MS - FENCE_DOUBT_MARGIN_MS - 1);
    held.release(1);
    await turn();
    expect(durable).toEqual([1]);
    expect(writer.sealedNumber).toBe(1);
  });

  test("is late by the wall clock alone, which goes on while a machine sleeps", async () => {
    const { store, clock, writer, durable } = bench({ fenceableMs: FENCEABLE_MS });
    const held = holdCreates(store);
    append(writer, "a");
    await turn();
    clock.stepWall(FENCEABLE_MS);
    held.release(1);
    await turn();
    expect(durable).toEqual([]);
  });

  test("counts by itself beside a heartbeat that is younger than the limit, and not beside an older one", async () => {
    let lastHeartbeat: SentAt | null = null;
    const { store, clock, writer, durable } = bench({ fenceableMs: FENCEABLE_MS, lastHeartbeat: () => lastHeartbeat });
    const held = holdCreates(store);
    lastHeartbeat = sentNow(clock);
    append(writer, "a");
    await turn();
    await clock.advance(FENCEABLE_MS);
    lastHeartbeat = sentNow(clock);
    held.release(1);
    await turn();
    expect(durable).toEqual([1]);
    append(writer, "b");
    await turn();
    await clock.advance(FENCEABLE_MS);
    held.release(2);
    await turn();
    expect(durable).toEqual([1]);
  });

  test("is never acknowledged where another node has taken over meanwhile", async () => {
    const { store, clock, writer, durable, ends } = bench({ fenceableMs: FENCEABLE_MS, inFlightMax: 4 });
    const held = holdCreates(store);
    for (const text of ["a", "b"]) {
      append(writer, text);
      writer.seal();
    }
    const waiting = codeOf(writer.whenDurable(2));
    await turn();
    await clock.advance(FENCEABLE_MS);
    store.of(OWNER).set(3, tombstoneBytes(3));
    held.release(2);
    held.release(1);
    await turn();
    expect(held.waiting()).toEqual([3]);
    held.release(3);
    await turn();
    expect({ durable, ends, code: await waiting }).toEqual({ durable: [], ends: ["fenced fenced_node"], code: "fenced_node" });
  });

  test("needs one proof, however long that takes: a slow store stops no appends", async () => {
    const { store, clock, writer, durable } = bench({ fenceableMs: FENCEABLE_MS });
    const held = holdCreates(store);
    append(writer, "a");
    await turn();
    await clock.advance(FENCEABLE_MS);
    held.release(1);
    await turn();
    await clock.advance(FENCEABLE_MS * 3);
    held.release(2);
    await turn();
    expect(durable).toEqual([1, 2]);
    expect(writer.sealedNumber).toBe(2);
  });

  test("is proven by what waits to be sent, without an empty segment", async () => {
    const { store, clock, writer, durable } = bench({ fenceableMs: FENCEABLE_MS, inFlightMax: 1 });
    const held = holdCreates(store);
    append(writer, "a");
    await turn();
    append(writer, "b");
    writer.seal();
    await clock.advance(FENCEABLE_MS);
    held.release(1);
    await turn();
    expect([durable, held.waiting()]).toEqual([[], [2]]);
    held.release(2);
    await turn();
    expect([durable, storedText(store, 2), writer.sealedNumber]).toEqual([[1, 2], "b", 2]);
  });
});

test.each([0, 0.3, 1])(
  "under random delays, refusals, lost answers and clocks that jump at %p of the calls every entry is acknowledged once, in order, as it was given",
  async (jumpChance) => {
    for (let seed = 1; seed <= 60; seed++) {
      const random = seededRandom(seed);
      const store = new MemoryWal(1 + Math.floor(random.fraction() * 4));
      // Longer than others wait before they fence: time that passed, a sleep, a clock that was set ahead or back.
      const now = { monotonicMs: 0, wallMs: 0 };
      let lastHeartbeat: SentAt | null = null;
      const jump = () => {
        if (random.fraction() < 0.2) lastHeartbeat = { ...now };
        if (random.fraction() >= jumpChance) return;
        if (random.fraction() < 0.5) now.monotonicMs += 5000;
        now.wallMs += (random.fraction() < 0.7 ? 1 : -1) * 5000;
      };
      const misbehave = async () => {
        jump();
        for (let left = Math.floor(random.fraction() * 4); left > 0; left--) await turn(1);
        const luck = random.fraction();
        if (luck < 0.15) throw new PicoError("storage_failed", "503");
        if (luck < 0.3) throw new PicoError("unknown_outcome", "time-out");
      };
      store.beforeCreate = misbehave;
      store.afterCreate = async () => {
        if (random.fraction() < 0.2) throw new PicoError("unknown_outcome", "time-out");
      };
      store.beforeRead = misbehave;
      const acknowledged: string[] = [];
      const numbers: number[] = [];
      const writer = new WalWriter({
        store,
        registration: OWNER,
        clock: { ...hastyClock, monotonicMs: () => now.monotonicMs, nowMs: () => now.wallMs },
        random,
        segmentBytes: 200,
        lingerMs: random.fraction() < 0.3 ? 1 : 0,
        fenceableMs: 5000,
        lastHeartbeat: () => lastHeartbeat,
        onDurable: (segment) => {
          numbers.push(segment.number);
          acknowledged.push(textOf(segment));
        },
        onFenced: (error) => expect([seed, error]).toEqual([]),
        onFailed: (error) => expect([seed, error]).toEqual([]),
      });
      const given: string[] = [];
      for (let at = 0; at < 40; at++) {
        const text = `<${at}>`;
        given.push(text);
        append(writer, text);
        if (random.fraction() < 0.5) await turn(1);
        if (random.fraction() < 0.1) writer.seal();
        if (random.fraction() < 0.05) void writer.prove();
      }
      await writer.stop();
      expect([seed, acknowledged.join("")]).toEqual([seed, given.join("")]);
      expect(numbers).toEqual(numbers.map((_, at) => at + 1));
      const stored = numbers.map((number) => utf8Encoder.encode(storedText(store, number)));
      expect(utf8Decoder.decode(concatBytes(stored))).toBe(given.join(""));
    }
  },
);
