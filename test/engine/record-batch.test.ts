import { describe, expect, test } from "bun:test";
import type { NewRecord } from "../../src/engine/record.ts";
import { encodeRecordBatch, encodeSingleBody, mergeRecordBatches } from "../../src/engine/record-batch.ts";
import { BATCH_HEADER_BYTES, RecordBatchView } from "../../src/engine/record-batch-view.ts";
import { ByteWriter, concatBytes } from "../../src/lib/bytes.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { batchOf, Chance, plainRecord, readable, stored } from "./record-fixtures.ts";

describe("one batch", () => {
  test("gives back what was written, plain and not, at any position", () => {
    const chance = new Chance(1);
    for (let round = 0; round < 200; round++) {
      const records = chance.records(1 + chance.below(20), chance.happens(0.5));
      const baseOffset = chance.below(2 ** 31) * 2 ** 20;
      const timestampMs = 1_760_000_000_000 + chance.below(1e9);
      const out = new ByteWriter(1);
      const before = chance.bytes(chance.below(50));
      out.bytes(before);
      encodeRecordBatch(out, baseOffset, timestampMs, records);
      out.bytes(chance.bytes(7));
      const view = new RecordBatchView(out.copy(), before.length);
      expect(view.baseOffset).toBe(baseOffset);
      expect(view.count).toBe(records.length);
      expect(view.endOffset).toBe(baseOffset + records.length);
      expect(view.end).toBe(out.length - 7);
      const expected = stored(baseOffset, timestampMs, records);
      expect(readable(view.records())).toEqual(readable(expected));
      const from = chance.below(records.length);
      expect(readable(view.records(baseOffset + from))).toEqual(readable(expected.slice(from)));
      expect(readable([view.record(baseOffset + from)])).toEqual(readable(expected.slice(from, from + 1)));
    }
  });

  test("of a single body is the same by the fast path", () => {
    for (const length of [0, 1, 126, 127, 128, 20_000]) {
      const body = new Uint8Array(length).fill(7);
      const out = new ByteWriter(1);
      encodeSingleBody(out, 5, 99, body);
      expect(out.copy()).toEqual(batchOf(5, 99, [plainRecord(body)]).bytes);
    }
  });

  test("with a null, an empty and a keyed record tells them apart", () => {
    const records = [
      { key: null, headers: [], body: null },
      { key: new Uint8Array(0), headers: [{ name: "", value: null }], body: new Uint8Array(0) },
      { key: null, headers: [{ name: "n", value: new Uint8Array(0) }], body: new Uint8Array(0) },
    ];
    const view = batchOf(0, 0, records);
    expect(view.isPlain).toBe(false);
    expect(readable(view.records())).toEqual(readable(stored(0, 0, records)));
  });

  test("has its bodies in one slice", () => {
    const chance = new Chance(2);
    const records = chance.records(12, false);
    const view = batchOf(100, 1, records);
    for (let from = 100; from <= 112; from++) {
      for (let to = from; to <= 112; to++) {
        const bodies = records.slice(from - 100, to - 100).map((record) => record.body ?? new Uint8Array(0));
        expect(view.bodies(from, to)).toEqual(concatBytes(bodies));
      }
    }
  });

  test("refuses offsets outside of it and no records at all", () => {
    const view = batchOf(10, 1, [plainRecord("a")]);
    expect(() => view.record(9)).toThrow("broken invariant");
    expect(() => view.record(11)).toThrow("broken invariant");
    expect(() => view.bodies(9, 10)).toThrow("broken invariant");
    expect(() => encodeRecordBatch(new ByteWriter(), 0, 0, [])).toThrow("broken invariant");
  });
});

describe("a page", () => {
  test("takes records up to its limits, at, under and over each", () => {
    for (const isPlain of [true, false]) {
      const records = new Chance(3).records(10, isPlain);
      const sizes = records.map(recordSizeBytes);
      const view = batchOf(50, 1, records);
      for (let from = 0; from < 10; from++) {
        let size = 0;
        for (let taken = 1; from + taken <= 10; taken++) {
          size += sizes[from + taken - 1] ?? 0;
          const whole = { endOffset: 50 + from + taken, sizeBytes: size };
          expect(view.fit(50 + from, taken, Number.MAX_SAFE_INTEGER, false)).toEqual(whole);
          expect(view.fit(50 + from, Number.MAX_SAFE_INTEGER, size, false).endOffset).toBeGreaterThanOrEqual(whole.endOffset);
          expect(view.fit(50 + from, Number.MAX_SAFE_INTEGER, size, false).sizeBytes).toBe(size);
          if (size > 0) expect(view.fit(50 + from, 100, size - 1, false).sizeBytes).toBeLessThan(size);
        }
      }
    }
  });

  test("takes a first record larger than itself only if asked to", () => {
    const view = batchOf(0, 1, [plainRecord("large"), plainRecord("x")]);
    expect(view.fit(0, 10, 4, false)).toEqual({ endOffset: 0, sizeBytes: 0 });
    expect(view.fit(0, 10, 4, true)).toEqual({ endOffset: 1, sizeBytes: 5 });
    expect(view.fit(0, 0, 4, true)).toEqual({ endOffset: 0, sizeBytes: 0 });
  });
});

describe("merging", () => {
  test("consecutive batches gives their records, from and to any offset", () => {
    const chance = new Chance(4);
    for (let round = 0; round < 100; round++) {
      const batches: RecordBatchView[] = [];
      const expected = [];
      let offset = chance.below(1000);
      let timestampMs = 1000;
      for (let count = 1 + chance.below(5); count > 0; count--) {
        const records = chance.records(1 + chance.below(4), chance.happens(0.7));
        batches.push(batchOf(offset, timestampMs, records));
        expected.push(...stored(offset, timestampMs, records));
        offset += records.length;
        timestampMs += chance.below(1000);
      }
      const base = batches[0]?.baseOffset ?? 0;
      const from = base + chance.below(expected.length);
      const to = from + 1 + chance.below(offset - from);
      const out = new ByteWriter(1);
      mergeRecordBatches(out, batches);
      expect(readable(new RecordBatchView(out.copy()).records())).toEqual(readable(expected));
      const cut = new ByteWriter(1);
      mergeRecordBatches(cut, batches, from, to);
      const view = new RecordBatchView(cut.copy());
      expect(view.byteLength).toBe(cut.length);
      expect(readable(view.records())).toEqual(readable(expected.slice(from - base, to - base)));
    }
  });

  test("batches with a gap, falling timestamps or a range outside is refused", () => {
    const record = [plainRecord("a")];
    const merge = (...args: Parameters<typeof batchOf>[]) =>
      mergeRecordBatches(
        new ByteWriter(),
        args.map((each) => batchOf(...each)),
      );
    expect(() => merge([0, 1, record], [2, 1, record])).toThrow("broken invariant");
    expect(() => merge([0, 2, record], [1, 1, record])).toThrow("broken invariant");
    expect(() => merge()).toThrow("broken invariant");
    expect(() => mergeRecordBatches(new ByteWriter(), [batchOf(3, 1, record)], 2)).toThrow("broken invariant");
    expect(() => mergeRecordBatches(new ByteWriter(), [batchOf(3, 1, record)], 3, 5)).toThrow("broken invariant");
  });
});

describe("a damaged batch", () => {
  /** Reads everything there is; only `corrupt` may come out of it. */
  function readAll(bytes: Uint8Array, start: number): void {
    try {
      const view = new RecordBatchView(bytes, start);
      for (const record of view.records()) expect(record.offset).toBeLessThan(view.endOffset);
      view.fit(view.baseOffset, 1e9, 1e9, true);
      view.bodies();
    } catch (error) {
      if (!isPicoError(error, "corrupt")) throw error;
    }
  }

  test("with any bit flipped ends in records or in corrupt", () => {
    for (const isPlain of [true, false]) {
      const { bytes } = batchOf(7, 1_760_000_000_000, new Chance(5).records(4, isPlain));
      for (let bit = 0; bit < bytes.length * 8; bit++) {
        const damaged = bytes.slice();
        damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
        readAll(damaged, 0);
      }
    }
  });

  test("cut at any byte is corrupt", () => {
    const { bytes } = batchOf(7, 1, new Chance(6).records(3, false));
    for (let length = 0; length < bytes.length; length++) {
      expect(() => new RecordBatchView(bytes.slice(0, length))).toThrow("record batch");
    }
  });

  test("of random bytes behind a plausible header ends in records or in corrupt", () => {
    const chance = new Chance(7);
    for (let round = 0; round < 3000; round++) {
      const out = new ByteWriter();
      const metaBytes = chance.below(40);
      const bodyBytes = chance.below(40);
      out.u32(BATCH_HEADER_BYTES + metaBytes + bodyBytes);
      out.u8(chance.below(2));
      out.u64(chance.below(1e9));
      out.u32(1 + chance.below(1 + metaBytes / 2));
      out.u64(chance.below(1e9));
      out.u32(metaBytes);
      for (let i = 0; i < metaBytes + bodyBytes; i++) out.u8(chance.happens(0.7) ? chance.below(6) : chance.below(256));
      readAll(out.copy(), 0);
    }
  });
});

/** Key, body and header bytes: what counts against a page's limit. */
function recordSizeBytes(record: NewRecord): number {
  let size = (record.key?.length ?? 0) + (record.body?.length ?? 0);
  for (const header of record.headers) {
    size += Buffer.byteLength(header.name, "utf8") + (header.value?.length ?? 0);
  }
  return size;
}
