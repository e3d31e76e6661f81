import { expect, test } from "bun:test";
import { keptRangeOf } from "../../src/engine/kept-range.ts";
import { OFFSET_MAX } from "../../src/lib/limits.ts";
import { CompactionBench } from "./compaction-fixture.ts";

const ALL_FROM = (start: number) => ({ start, end: OFFSET_MAX });

test("a stream needs what is above its trim point, one that nobody knows nothing at all", async () => {
  const bench = new CompactionBench();
  const streamId = await bench.create();
  const kept = () => keptRangeOf(bench.metadata.view, streamId);
  expect(kept()).toEqual(ALL_FROM(0));
  await bench.trim(streamId, 7);
  expect(kept()).toEqual(ALL_FROM(7));
  await bench.delete(streamId);
  expect(kept()).toBeNull();
});

test("a source keeps what forks read of it below their fork offset, also when it is trimmed further itself", async () => {
  const bench = new CompactionBench();
  const source = await bench.create();
  await bench.trim(source, 3);
  const fork = await bench.create(source, 10);
  const kept = () => keptRangeOf(bench.metadata.view, source);
  await bench.trim(source, 20);
  expect(kept()).toEqual(ALL_FROM(3));
  await bench.trim(fork, 5);
  expect(kept()).toEqual(ALL_FROM(5));
  await bench.trim(fork, 10);
  expect(kept()).toEqual(ALL_FROM(20));
});

test("a deleted source keeps nothing at or above the highest fork offset, and only its tail state where no fork reads it", async () => {
  const bench = new CompactionBench();
  const source = await bench.create();
  const [low, high] = [await bench.create(source, 4), await bench.create(source, 9)];
  await bench.delete(source);
  const kept = () => keptRangeOf(bench.metadata.view, source);
  expect(kept()).toEqual({ start: 0, end: 9 });
  await bench.trim(high, 9);
  expect(kept()).toEqual({ start: 0, end: 4 });
  await bench.trim(low, 6);
  expect(kept()).toEqual({ start: 0, end: 0 });
  await bench.delete(low);
  await bench.delete(high);
  expect(kept()).toBeNull();
});

test("forks of forks read through to the source, deleted ones between included, each as far as the lowest fork offset on its way", async () => {
  const bench = new CompactionBench();
  const source = await bench.create();
  const middle = await bench.create(source, 10);
  const [short, long] = [await bench.create(middle, 6), await bench.create(middle, 30)];
  await bench.trim(source, 50);
  await bench.trim(middle, 8);
  const kept = (streamId: number) => keptRangeOf(bench.metadata.view, streamId);
  expect(kept(source)).toEqual(ALL_FROM(0));
  await bench.delete(middle);
  await bench.delete(source);
  expect(kept(source)).toEqual({ start: 0, end: 10 });
  expect(kept(middle)).toEqual({ start: 0, end: 30 });
  await bench.trim(long, 12);
  expect(kept(source)).toEqual({ start: 0, end: 6 });
  expect(kept(middle)).toEqual({ start: 0, end: 30 });
  await bench.trim(short, 2);
  expect(kept(source)).toEqual({ start: 2, end: 6 });
});

test("a chain of thousands of forks is walked, not climbed", async () => {
  const bench = new CompactionBench();
  const source = await bench.create();
  let last = source;
  for (let i = 0; i < 4000; i++) last = await bench.create(last, 4001 - i);
  await bench.trim(source, 100_000);
  expect(keptRangeOf(bench.metadata.view, source)).toEqual(ALL_FROM(0));
});
