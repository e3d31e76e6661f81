import { describe, expect, test } from "bun:test";
import type { DataObjectReaders, ReadableObject } from "../../src/engine/data-object-readers.ts";
import type { SealedDataObject } from "../../src/engine/data-object-writer.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import { isPicoError, PicoError } from "../../src/lib/errors.ts";
import { OBJECT_HEAD_READ_BYTES } from "../../src/lib/limits.ts";
import { buildObjects, CLUSTER_ID, namedStream, ReadOnlyStore, readersOf, type StreamInput } from "./data-object-fixtures.ts";
import { Chance, readable } from "./record-fixtures.ts";

const NO_END = Number.MAX_SAFE_INTEGER;
const SMALL = { blockBytesTarget: 300, leafBytes: 128 };

function oneObject(streams: readonly StreamInput[], options: Parameters<typeof buildObjects>[1] = SMALL): SealedDataObject {
  const [object, ...others] = buildObjects(streams, options);
  if (object === undefined || others.length > 0) throw new Error("not one object");
  return object;
}

function storeOf(object: SealedDataObject): { readonly store: ReadOnlyStore; readonly object: ReadableObject } {
  const store = new ReadOnlyStore();
  return { store, object: store.put(object) };
}

/** Everything that a reader can be asked about the streams, as plain data; an error as its code. */
async function answers(readers: DataObjectReaders, object: ReadableObject, streamIds: readonly number[]): Promise<unknown[]> {
  const answer = async (read: Promise<unknown>) => {
    try {
      return await read;
    } catch (error) {
      if (!isPicoError(error)) throw error;
      expect(error.facts).toMatchObject({ objectKey: `${CLUSTER_ID}/data/0123456789abcdef/1` });
      expect(Number(error.facts.end)).toBeGreaterThan(Number(error.facts.start));
      return error.code;
    }
  };
  const all: unknown[] = [];
  for (const streamId of streamIds) {
    all.push(await answer(readers.mayContain(object, streamId)));
    all.push(await answer(readers.readTailState(object, streamId)));
    all.push(
      await answer(
        readers
          .readBatches(object, streamId, 0, 1e9)
          .then((batches) => (batches === "object_missing" ? batches : readable(batches.flatMap((batch) => [...batch.records()])))),
      ),
    );
  }
  return all;
}

describe("a damaged data object", () => {
  const streams = [
    namedStream(3, 0, 2),
    namedStream(4, 7, 30),
    { streamId: 5, tail: emptyTailState(9), batches: [] },
    namedStream(9, 0, 3),
  ];
  const streamIds = [3, 4, 5, 6, 9];

  test("with a flipped bit, in any byte, is corrupt for some reads and right for all others", async () => {
    for (const level of [0, 1]) {
      const whole = oneObject(streams, { ...SMALL, level });
      const { store, object } = storeOf(whole);
      const expected = await answers(readersOf(store).readers, object, streamIds);
      for (let at = 0; at < whole.bytes.length; at++) {
        const bytes = whole.bytes.slice();
        bytes[at] = (bytes[at] ?? 0) ^ (1 << ((at * 5) % 8));
        store.put({ ...whole, bytes });
        const found = await answers(readersOf(store).readers, object, streamIds);
        const wrong = found.filter((answer, i) => !Bun.deepEquals(answer, expected[i]));
        expect(wrong.every((answer) => answer === "corrupt")).toBe(true);
        expect(wrong.length > 0).toBe(at >= 8);
      }
    }
  }, 60_000);

  test("that was cut, at any byte, is corrupt for every read", async () => {
    const whole = oneObject(streams);
    const { store, object } = storeOf(whole);
    for (let length = 0; length < whole.bytes.length; length += 7) {
      store.put({ ...whole, bytes: whole.bytes.slice(0, length) });
      const found = await answers(readersOf(store).readers, object, streamIds);
      expect(found.every((answer) => answer === "corrupt")).toBe(true);
    }
  });

  test("that is another object, whole, is corrupt for every read", async () => {
    const { store, object } = storeOf(oneObject(streams));
    const others = [
      oneObject(streams, { ...SMALL, clusterId: "cluster1" }),
      oneObject(streams, { ...SMALL, clusterId: "longer than the other" }),
    ];
    for (const other of others) {
      store.put(other);
      expect((await answers(readersOf(store).readers, object, streamIds)).every((answer) => answer === "corrupt")).toBe(true);
    }
    const renamed = { ...object, objectId: 2 };
    store.put({ ...oneObject(streams), summary: { ...oneObject(streams).summary, objectId: 2 } });
    await expect(readersOf(store).readers.readTailState(renamed, 3)).rejects.toThrow(expect.objectContaining({ code: "corrupt" }));
  });

  test("whose block is that of another object is corrupt", async () => {
    const whole = oneObject([namedStream(3, 0, 40)]);
    const other = oneObject([namedStream(4, 0, 40)]);
    const { store, object } = storeOf(whole);
    const bytes = whole.bytes.slice();
    bytes.set(other.bytes.subarray(0, 200));
    store.put({ ...whole, bytes });
    expect((await answers(readersOf(store).readers, object, [3]))[2]).toBe("corrupt");
  });
});

describe("a data object that is missing", () => {
  test("is its own answer, before anything is known of it and after its head is", async () => {
    const { store, object } = storeOf(oneObject([namedStream(3, 0, 2)]));
    const { readers, cache } = readersOf(store);
    expect(await readers.mayContain(object, 3)).toBe(true);
    store.objects.clear();
    expect(await readers.mayContain(object, 3)).toBe(true);
    expect(await readers.readTailState(object, 3)).toBe("object_missing");
    expect(await readers.readBatches(object, 3, 0, 100)).toBe("object_missing");
    expect(await readersOf(store).readers.mayContain(object, 3)).toBe("object_missing");
    expect(cache.fetchCount).toBe(0);
  });
});

describe("requests to the store", () => {
  test("are one for the head and its leaves, one for a block, however many readers come at once", async () => {
    const { store, object } = storeOf(oneObject([namedStream(3, 0, 2)]));
    const { readers, cache } = readersOf(store);
    const results = await Promise.all(Array.from({ length: 50 }, () => readers.readBatches(object, 3, 0, 100)));
    expect(store.reads.length).toBe(2);
    for (const batches of results) expect(batches).toHaveLength(1);
    await readers.readBatches(object, 3, 1, 100);
    expect(store.reads.length).toBe(2);
    expect(cache.fetchCount).toBe(0);
  });

  test("of a sequential reader with read-ahead are few, and no byte of a block is read twice", async () => {
    const sealed = oneObject([namedStream(3, 0, 1000)], { ...SMALL, leafBytes: 1 << 20, objectBytesTarget: 1 << 20 });
    const readSequentially = async (bytes: number) => {
      const { store, object } = storeOf(sealed);
      const { readers } = readersOf(store);
      for (let offset = 0; offset < 1000; ) {
        const batches = await readers.readBatches(object, 3, offset, 100);
        if (batches === "object_missing" || batches.length === 0) throw new Error("not all is there");
        offset = batches.at(-1)?.endOffset ?? offset;
        if (bytes > 0) await readers.readAhead(object, 3, offset, NO_END, bytes);
      }
      return store.reads;
    };
    const without = await readSequentially(0);
    const ahead = await readSequentially(3000);
    expect(ahead.length).toBeLessThan(without.length / 5);
    for (const reads of [without, ahead]) {
      const blocks = reads.slice(1).sort((left, right) => left.start - right.start);
      for (const [i, { start }] of blocks.entries()) expect(start).toBe(blocks[i - 1]?.end ?? 8);
    }
  });

  test("for what comes next end where the object, the reader's part of the stream or the room in the cache does", async () => {
    const sealed = oneObject([namedStream(3, 0, 100), namedStream(4, 0, 100)], { ...SMALL, leafBytes: 1 << 20 });
    const blocksOf = async (cacheBytes: number, fromOffset: number, endOffset: number) => {
      const { store, object } = storeOf(sealed);
      const { readers, cache } = readersOf(store, cacheBytes);
      const outcome = await readers.readAhead(object, 3, fromOffset, endOffset, 1e6);
      await Promise.resolve();
      const bytes = store.reads.slice(1).reduce((sum, { start, end }) => sum + end - start, 0);
      expect(store.reads.length).toBe(2);
      expect(outcome).toMatchObject({ bytes });
      expect(cache.aheadBytes).toBeLessThanOrEqual(cache.aheadBytesMax);
      return { bytes, isEnd: outcome !== "object_missing" && outcome.isEnd };
    };
    const all = await blocksOf(1 << 20, 0, NO_END);
    expect(all.isEnd).toBe(true);
    const [upper, lower] = [await blocksOf(1 << 20, 50, NO_END), await blocksOf(1 << 20, 0, 50)];
    expect([upper.isEnd, lower.isEnd]).toEqual([true, false]);
    for (const { bytes } of [upper, lower]) expect(bytes / all.bytes).toBeWithin(0.4, 0.6);
    const little = await blocksOf(8000, 0, NO_END);
    expect(little.isEnd).toBe(false);
    expect(little.bytes).toBeWithin(1, 2001);
  });

  test("for a page over several blocks are one, and none that has nothing of the stream", async () => {
    const sealed = oneObject([namedStream(2, 0, 3), namedStream(3, 0, 100), namedStream(4, 0, 3)], { ...SMALL, leafBytes: 1 << 20 });
    const { store, object } = storeOf(sealed);
    const { readers } = readersOf(store);
    const batches = await readers.readBatches(object, 3, 0, 1000);
    expect(batches === "object_missing" ? 0 : batches.length).toBeGreaterThan(3);
    expect(store.reads.length).toBe(2);
    expect(await readers.readBatches(object, 1, 0, 1000)).toEqual([]);
    expect(await readers.readBatches(object, 5, 0, 1000)).toEqual([]);
    expect(store.reads.length).toBe(2);
  });

  test("for a head longer than the first read are two", async () => {
    const streams = Array.from({ length: 40_000 }, (_, i) => ({ streamId: 2 * i, tail: emptyTailState(i), batches: [] }));
    const { store, object } = storeOf(oneObject(streams, {}));
    const { readers } = readersOf(store, 1 << 24);
    expect(await readers.mayContain(object, 77_778)).toBe(true);
    expect(store.reads.map(({ start, end }) => end - start > OBJECT_HEAD_READ_BYTES)).toEqual([false, false]);
    expect(await readers.readTailState(object, 77_778)).toEqual(emptyTailState(38_889));
    expect(await readers.readTailState(object, 77_777)).toBeNull();
  });
});

test("readers of all offsets, through evictions and failing reads, each end with the right records or the store's error", async () => {
  const streams = [namedStream(2, 0, 40), namedStream(3, 0, 150), namedStream(7, 0, 90)];
  const { store, object } = storeOf(oneObject(streams));
  const { readers, cache } = readersOf(store, 3000);
  const chance = new Chance(9);
  let failures = 0;
  for (let round = 0; round < 60; round++) {
    store.failure = chance.happens(0.3) ? new PicoError("storage_failed", "the store is down") : null;
    const reads = Array.from({ length: 20 }, async () => {
      const { streamId, batches } = streams[chance.below(3)] ?? namedStream(2, 0, 40);
      const from = chance.below(batches.length + 1);
      const bytesMax = chance.below(2000);
      const reading = readers.readBatches(object, streamId, from, bytesMax);
      const ahead = readers.readAhead(object, streamId, from, NO_END, chance.below(1000));
      const [found] = await Promise.all([reading, ahead.catch(() => null)]);
      if (found === "object_missing") throw new Error("object missing");
      const records = found.flatMap((batch) => [...batch.records(from)]);
      const expected = batches.slice(from, from + records.length).flatMap((batch) => [...batch.records()]);
      expect(readable(records)).toEqual(readable(expected));
      expect(records.length > 0).toBe(from < batches.length);
    });
    for (const outcome of await Promise.allSettled(reads)) {
      if (outcome.status === "fulfilled") continue;
      expect(outcome.reason).toBe(store.failure);
      failures += 1;
    }
    expect(cache.fetchCount).toBe(0);
    expect(cache.bytes).toBeLessThanOrEqual(3000);
  }
  expect(failures).toBeGreaterThan(0);
});
