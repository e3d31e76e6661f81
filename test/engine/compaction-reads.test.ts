import { describe, expect, test } from "bun:test";
import { BlockCache } from "../../src/engine/block-cache.ts";
import { DataObjectReaders } from "../../src/engine/data-object-readers.ts";
import { LogCache } from "../../src/engine/log-cache.ts";
import { StreamReader } from "../../src/engine/stream-reader.ts";
import { KIB, MIB } from "../../src/lib/limits.ts";
import { settled } from "../support/manual-clock.ts";
import { bodiesOf } from "../support/test-node.ts";
import { CompactionBench, named } from "./compaction-fixture.ts";
import { CLUSTER_ID, namedStream } from "./data-object-fixtures.ts";

describe("a reader whose objects are replaced and removed meanwhile", () => {
  /** Six uploads of one stream, and what merges and removes them at the store's `at`th read. */
  async function prepare(at: number) {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    for (let upload = 0; upload < 6; upload++) await bench.upload([namedStream(streamId, upload * 20, 20)]);
    const inputs = bench.live();
    let reads = 0;
    let isOver = false;
    bench.store.before = async (call) => {
      if (call !== "read" || reads++ !== at) return;
      bench.store.before = () => {};
      await bench.compact(inputs);
      for (const input of inputs) bench.store.instead.set(bench.keyOf(input), null);
      isOver = true;
    };
    return { bench, streamId, isOver: () => isOver };
  }

  test("gets every record of its page, at whichever of its requests that happens", async () => {
    for (let at = 0; ; at++) {
      const { bench, streamId, isOver } = await prepare(at);
      expect(await settled(bench.read(streamId, 0, 120))).toEqual(named(streamId, 0, 120));
      if (!isOver()) break;
      expect(at).toBeLessThan(100);
    }
  });

  test("page by page, slowly, gets every record", async () => {
    for (let at = 0; at < 12; at++) {
      const { bench, streamId } = await prepare(at);
      const reader = bench.reader();
      const entry = bench.metadata.view.streamById(streamId);
      if (entry === null) throw new Error("no stream");
      const bodies: string[] = [];
      while (bodies.length < 120) {
        const page = await settled(reader.read(entry, { from: bodies.length, end: 120, recordsMax: 7, bytesMax: 1 << 20 }));
        bodies.push(...bodiesOf(page));
      }
      expect(bodies).toEqual(named(streamId, 0, 120));
    }
  });

  test("gets the tail state, from an older view too", async () => {
    for (let at = 0; ; at++) {
      const { bench, streamId, isOver } = await prepare(at);
      expect((await settled(bench.tail(streamId)))?.nextOffset).toBe(120);
      if (!isOver()) break;
    }
  });
});

test("of 10,000 streams written in turn, one is read whole by at most four requests after compaction, its tail state included", async () => {
  const bench = new CompactionBench({});
  const ids = await bench.createMany(10_000);
  for (let upload = 0; upload < 8; upload++) {
    await bench.upload(ids.map((id) => namedStream(id, upload * 2, 2, 200)));
  }
  const cold = () => {
    bench.store.reads.length = 0;
    return new StreamReader(new LogCache(0), bench.metadata, new DataObjectReaders(bench.store, new BlockCache(100 * MIB), CLUSTER_ID));
  };
  /** Requests for the tail state and all records of the stream at this place. */
  const requests = async (at: number): Promise<number> => {
    const entry = bench.metadata.view.streamById(ids[at] ?? 0);
    if (entry === null) throw new Error("no stream");
    const reader = cold();
    expect((await reader.readTailState(entry.streamId))?.nextOffset).toBe(16);
    const page = await reader.read(entry, { from: 0, end: 16, recordsMax: 0, bytesMax: 64 * KIB });
    expect(bodiesOf(page).length).toBe(16);
    return bench.store.reads.length;
  };
  const before = await requests(5000);
  await settled(bench.compact(bench.live()));
  const after: number[] = [];
  for (const at of [0, 1, 17, 4999, 5000, 9998, 9999]) after.push(await requests(at));
  expect(Math.max(...after)).toBeLessThanOrEqual(4);
  expect(before).toBeGreaterThan(20);
}, 60_000);
