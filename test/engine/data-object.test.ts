import { describe, expect, test } from "bun:test";
import { decodeFooter, IndexEntries } from "../../src/engine/data-object-format.ts";
import type { ReadableObject } from "../../src/engine/data-object-readers.ts";
import type { DataObjectWriterOptions } from "../../src/engine/data-object-writer.ts";
import { DataObjectWriter } from "../../src/engine/data-object-writer.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import { utf8Decoder } from "../../src/lib/bytes.ts";
import type { RecordPlace } from "../../src/metadata/command.ts";
import { bodyName, buildObjects, CLUSTER_ID, namedStream, ReadOnlyStore, readersOf, type StreamInput } from "./data-object-fixtures.ts";
import { batchOf, Chance, plainRecord, readable } from "./record-fixtures.ts";

/** Small blocks, leaves and objects, so that few records cross every border. */
const SMALL: Partial<DataObjectWriterOptions> = { objectBytesTarget: 6000, blockBytesTarget: 300, leafBytes: 128 };

interface Scene {
  readonly store: ReadOnlyStore;
  readonly objects: readonly ReadableObject[];
}

function store(streams: readonly StreamInput[], options: Partial<DataObjectWriterOptions> = {}): Scene {
  const readOnly = new ReadOnlyStore();
  return { store: readOnly, objects: buildObjects(streams, options).map((object) => readOnly.put(object)) };
}

/** Every record of a stream from an offset on, page by page, over all objects in their order. */
async function readAll(scene: Scene, streamId: number, fromOffset: number, bytesMax: number, readAheadBytes = 0, cacheBytes = 1 << 20) {
  const { readers } = readersOf(scene.store, cacheBytes);
  const records = [];
  let offset = fromOffset;
  for (const object of scene.objects) {
    for (;;) {
      const reading = readers.readBatches(object, streamId, offset, bytesMax);
      if (readAheadBytes > 0) await readers.readAhead(object, streamId, offset, 2 ** 53, readAheadBytes);
      const batches = await reading;
      if (batches === "object_missing") throw new Error("object missing");
      for (const batch of batches) {
        expect(batch.endOffset).toBeGreaterThan(offset);
        records.push(...batch.records(offset));
        offset = batch.endOffset;
      }
      if (batches.length === 0) break;
    }
  }
  return records;
}

function comesBefore(left: RecordPlace, right: RecordPlace): boolean {
  return left.streamId < right.streamId || (left.streamId === right.streamId && left.offset < right.offset);
}

function bodiesOf(records: readonly { readonly body: Uint8Array | null }[]): string {
  return records.map((record) => utf8Decoder.decode(record.body ?? new Uint8Array(0))).join("");
}

function names(streamId: number, from: number, to: number): string {
  return Array.from({ length: to - from }, (_, i) => bodyName(streamId, from + i)).join("");
}

describe("data objects", () => {
  test("give back every stream's records and tail state, whatever the sizes, and no byte of another", async () => {
    for (let seed = 1; seed <= 8; seed++) {
      const chance = new Chance(seed);
      const streams: StreamInput[] = [];
      for (let streamId = chance.below(5); streams.length < 60; streamId += 1 + chance.below(4)) {
        const count = chance.happens(0.1) ? chance.below(150) : chance.below(4);
        const firstOffset = chance.happens(0.5) ? 0 : chance.below(2 ** 40);
        const stream = namedStream(streamId, firstOffset, count, chance.happens(0.05) ? 400 : 0);
        streams.push(chance.happens(0.2) ? { ...stream, fromOffset: firstOffset + chance.below(count + 2) } : stream);
      }
      const scene = store(streams, { ...SMALL, level: seed % 2 });
      const { readers } = readersOf(scene.store);
      for (const { streamId, tail, batches, fromOffset = 0 } of streams) {
        const first = Math.max(fromOffset, batches[0]?.baseOffset ?? 0);
        const kept = batches.flatMap((batch) => [...batch.records()]).filter((record) => record.offset >= fromOffset);
        const from = chance.happens(0.5) ? 0 : first + chance.below(kept.length + 2);
        const records = await readAll(scene, streamId, from, chance.below(800), chance.below(600), chance.happens(0.5) ? 2000 : 1 << 20);
        expect(readable(records)).toEqual(readable(kept.filter((record) => record.offset >= from)));
        const states = await Promise.all(scene.objects.map((object) => readers.readTailState(object, streamId)));
        expect(states.filter((state) => state !== null)).toEqual([tail]);
        for (const other of [streamId - 1, streamId + 1]) {
          if (streams.some((stream) => stream.streamId === other)) continue;
          expect(await readAll(scene, other, 0, 1000)).toEqual([]);
          for (const object of scene.objects) expect(await readers.readTailState(object, other)).toBeNull();
        }
      }
    }
  });

  test("have disjoint, ascending places and true figures, and stay within their size", () => {
    for (let seed = 1; seed <= 25; seed++) {
      const chance = new Chance(100 + seed);
      const streams = Array.from({ length: 80 }, (_, i) =>
        namedStream(i * 3, chance.below(50), chance.happens(0.1) ? 200 : chance.below(5)),
      );
      const objects = buildObjects(streams, { ...SMALL, level: seed % 2 });
      expect(objects.length).toBeGreaterThan(1);
      let last: RecordPlace = { streamId: -1, offset: 0 };
      let recordCount = 0;
      let streamCount = 0;
      for (const { bytes, summary } of objects) {
        expect(summary.sizeBytes).toBe(bytes.length);
        expect(bytes.length).toBeLessThanOrEqual(6000);
        expect(comesBefore(last, summary.first)).toBe(true);
        expect(comesBefore(summary.last, summary.first)).toBe(false);
        last = summary.last;
        recordCount += summary.recordCount;
        streamCount += summary.streamCount;
      }
      expect(recordCount).toBe(streams.reduce((sum, stream) => sum + stream.batches.length, 0));
      expect(streamCount).toBeGreaterThanOrEqual(80);
      expect(streamCount).toBeLessThan(80 + objects.length);
    }
  });

  test("have blocks within their size, unless a block is a single record, for records around every border", () => {
    for (let bodyBytes = 80; bodyBytes <= 310; bodyBytes++) {
      const streams = [namedStream(1, 0, 1), namedStream(2, 0, 5, bodyBytes), namedStream(3, 0, 40), namedStream(4, 0, 1, bodyBytes)];
      for (const { bytes } of buildObjects(streams, SMALL)) {
        const { footer } = decodeFooter(bytes, "object");
        const top = new IndexEntries(bytes.subarray(footer.filterPosition + footer.filterLength), 0, footer.recordLeafCount);
        for (let leafAt = 0; leafAt < top.count; leafAt++) {
          const { position, length } = top.at(leafAt);
          const leaf = IndexEntries.ofLeaf(bytes.subarray(position, position + length));
          for (let at = 0; at < leaf.count; at++) {
            const block = leaf.at(at);
            expect(block.length > 300 && block.length < bodyBytes + 29).toBe(false);
            if (block.length > 300) expect(block.length).toBeLessThan(bodyBytes + 60);
          }
        }
      }
    }
  });

  test("split one long stream; only the last of them has the tail state", async () => {
    const stream = namedStream(7, 5, 2000);
    const scene = store([stream], SMALL);
    expect(scene.objects.length).toBeGreaterThan(3);
    expect(bodiesOf(await readAll(scene, 7, 0, 100))).toBe(names(7, 5, 2005));
    const { readers } = readersOf(scene.store);
    const states = await Promise.all(scene.objects.map((object) => readers.readTailState(object, 7)));
    expect(states.slice(0, -1).every((state) => state === null)).toBe(true);
    expect(states.at(-1)).toEqual(stream.tail);
    for (const [i, object] of scene.objects.entries()) {
      const next = scene.objects[i + 1]?.summary?.first ?? { streamId: 7, offset: 2005 };
      expect(object.summary?.last).toEqual({ streamId: 7, offset: next.offset - 1 });
    }
  });

  test("hold a record, or a tail state, larger than a whole object", async () => {
    const producers = new Map(
      Array.from({ length: 500 }, (_, i) => [`producer ${i}`, { producerEpoch: 1n, lastSeq: BigInt(i), lastUsedMs: i }]),
    );
    const large = { ...namedStream(2, 0, 1, 9000), tail: { ...emptyTailState(1), changeNumber: 3, producers } };
    const scene = store([namedStream(1, 0, 3), large, namedStream(3, 0, 3)], SMALL);
    const { readers } = readersOf(scene.store);
    for (const streamId of [1, 3]) expect(bodiesOf(await readAll(scene, streamId, 0, 10))).toBe(names(streamId, 0, 3));
    expect((await readAll(scene, 2, 0, 10))[0]?.body?.length).toBe(9000);
    const states = await Promise.all(scene.objects.map((object) => readers.readTailState(object, 2)));
    expect(states.filter((state) => state !== null)).toEqual([large.tail]);
  });

  test("of streams without records hold their tail states, at the place of their next offset", async () => {
    const streams = [4, 9].map((streamId) => ({ streamId, tail: { ...emptyTailState(streamId * 10), changeNumber: 1 }, batches: [] }));
    const scene = store(streams);
    expect(scene.objects[0]?.summary).toMatchObject({
      streamCount: 2,
      recordCount: 0,
      first: { streamId: 4, offset: 40 },
      last: { streamId: 9, offset: 90 },
    });
    const { readers } = readersOf(scene.store);
    const [object] = scene.objects;
    if (object === undefined) throw new Error("no object");
    expect(await readers.readTailState(object, 9)).toEqual(streams[1]?.tail ?? null);
    expect(await readers.readBatches(object, 9, 0, 100)).toEqual([]);
  });

  test("drop the records below a trim point, also within a batch, at, under and over its borders", async () => {
    for (let fromOffset = 9; fromOffset <= 14; fromOffset++) {
      const batch = batchOf(
        10,
        5,
        Array.from({ length: 3 }, (_, i) => plainRecord(bodyName(1, 10 + i))),
      );
      const tail = { ...emptyTailState(13), changeNumber: 1 };
      const scene = store([{ streamId: 1, tail, batches: [batch], fromOffset }, namedStream(2, 0, 1)]);
      const first = Math.max(10, Math.min(13, fromOffset));
      expect(bodiesOf(await readAll(scene, 1, 0, 100))).toBe(names(1, first, 13));
      expect(bodiesOf(await readAll(scene, 2, 0, 100))).toBe(names(2, 0, 1));
    }
  });

  test("keep a gap between batches as it is, within a block and across blocks", async () => {
    const stream = namedStream(5, 0, 200);
    const batches = stream.batches.filter((_, i) => i < 3 || (i >= 50 && i < 120) || i >= 190);
    const scene = store([namedStream(4, 0, 2), { ...stream, batches }], SMALL);
    for (let from = 0; from < 200; from++) {
      const offsets = (await readAll(scene, 5, from, 50)).map((record) => record.offset);
      expect(offsets).toEqual(batches.map((batch) => batch.baseOffset).filter((offset) => offset >= from));
    }
  });

  test("are the same bytes for the same input, sealed twice, and of no input there are none", () => {
    const writer = new DataObjectWriter({ clusterId: CLUSTER_ID, level: 0, bytesExpected: 0 });
    writer.startStream(1, emptyTailState());
    writer.finishStream();
    writer.finish();
    const draft = writer.takeFinished();
    expect(draft?.seal(5).bytes.slice()).toEqual(draft?.seal(5).bytes.slice() ?? new Uint8Array(0));
    expect(draft?.seal(300).summary).toMatchObject({ objectId: 300, sizeBytes: draft?.seal(5).bytes.length ?? 0 });
    expect(writer.takeFinished()).toBeNull();
    expect(buildObjects([])).toEqual([]);
  });

  test("refuse streams and batches out of order, and records beyond the tail state", () => {
    const writer = new DataObjectWriter({ clusterId: CLUSTER_ID, level: 0, bytesExpected: 0 });
    const [first, second, third] = namedStream(3, 0, 3).batches;
    if (first === undefined || second === undefined || third === undefined) throw new Error("no batches");
    expect(() => writer.add(first)).toThrow("broken invariant");
    writer.startStream(3, emptyTailState(2));
    expect(() => writer.startStream(4, emptyTailState())).toThrow("broken invariant");
    writer.add(second);
    expect(() => writer.add(first)).toThrow("broken invariant");
    expect(() => writer.add(third)).toThrow("broken invariant");
    expect(() => writer.finish()).toThrow("broken invariant");
    writer.finishStream();
    expect(() => writer.startStream(3, emptyTailState())).toThrow("broken invariant");
  });
});
