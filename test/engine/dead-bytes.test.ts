import { expect, test } from "bun:test";
import type { OffsetRange } from "../../src/engine/data-object-writer.ts";
import { type DeadBytes, estimateDeadBytes, type IndexedObject, type ObjectStreams } from "../../src/engine/dead-bytes.ts";
import { OFFSET_MAX } from "../../src/lib/limits.ts";

const LIVE = { start: 0, end: OFFSET_MAX };

function objectOf(changes: Partial<IndexedObject>): IndexedObject {
  return { recordCount: 100, streamCount: 1, last: { streamId: 1, offset: 99 }, recordBlocks: [], stateBytes: 0, ...changes };
}

type NamedStreams = Omit<ObjectStreams, "kept">;

function estimate(object: IndexedObject, streams: NamedStreams, keptOf: (streamId: number) => OffsetRange | null): DeadBytes {
  return estimateDeadBytes(object, { ...streams, kept: streams.ids.map(keptOf) });
}

function streamsOf(...streams: readonly (readonly [id: number, nextOffset: number | null])[]): NamedStreams {
  return { ids: streams.map(([id]) => id), nextOffsets: streams.map(([, nextOffset]) => nextOffset) };
}

const block = (streamId: number, offset: number, length = 1000) => ({ streamId, offset, length });

test("blocks of one stream are dead by its offsets: below the trim point, and at or above what forks of a deleted source read", () => {
  const object = objectOf({ recordBlocks: [block(1, 0), block(1, 25), block(1, 50), block(1, 75)] });
  const dead = (start: number, end: number) => estimate(object, streamsOf([1, 100]), () => ({ start, end })).deadBytes;
  expect(dead(0, OFFSET_MAX)).toBe(0);
  expect(dead(25, OFFSET_MAX)).toBe(1000);
  expect(dead(60, OFFSET_MAX)).toBeCloseTo(2400);
  expect(dead(0, 50)).toBe(2000);
  expect(dead(0, 0)).toBe(4000);
});

test("a block of many streams is dead by the share of them that is", () => {
  const object = objectOf({ streamCount: 4, recordCount: 40, last: { streamId: 9, offset: 9 }, recordBlocks: [block(2, 0)] });
  const streams = streamsOf([2, 10], [5, 10], [7, 10], [9, 10]);
  const dead = (unknown: readonly number[]) =>
    estimate(object, streams, (streamId) => (unknown.includes(streamId) ? null : LIVE)).deadBytes;
  expect(dead([])).toBe(0);
  expect(dead([5])).toBe(250);
  expect(dead([2, 5, 9])).toBe(750);
  expect(dead([2, 5, 7, 9])).toBe(1000);
  // Trimmed whole, and by half.
  expect(estimate(object, streams, (id) => (id === 5 ? { start: 10, end: OFFSET_MAX } : LIVE)).deadBytes).toBe(250);
  expect(estimate(object, streams, (id) => (id === 5 ? { start: 5, end: OFFSET_MAX } : LIVE)).deadBytes).toBe(125);
});

test("tail states are dead with their streams, and only with them", () => {
  const object = objectOf({ streamCount: 2, recordCount: 0, last: { streamId: 2, offset: 5 }, stateBytes: 600 });
  const streams = streamsOf([1, 5], [2, 5]);
  expect(estimate(object, streams, () => ({ start: 5, end: OFFSET_MAX }))).toEqual({
    deadBytes: 0,
    bytes: 600,
    isWhollyDead: false,
  });
  expect(estimate(object, streams, (id) => (id === 1 ? null : LIVE)).deadBytes).toBe(300);
});

test("an object is wholly dead only where each of its streams is named and unknown", () => {
  const object = objectOf({ streamCount: 2, last: { streamId: 2, offset: 5 }, recordBlocks: [block(1, 0), block(2, 0)] });
  const isWhollyDead = (streams: NamedStreams, unknown: readonly number[]) =>
    estimate(object, streams, (id) => (unknown.includes(id) ? null : LIVE)).isWhollyDead;
  expect(isWhollyDead(streamsOf([1, null], [2, null]), [1, 2])).toBe(true);
  expect(isWhollyDead(streamsOf([1, null], [2, null]), [1])).toBe(false);
  // One of two is not named: nothing is concluded.
  expect(isWhollyDead(streamsOf([1, null]), [1, 2])).toBe(false);
  expect(isWhollyDead(streamsOf(), [])).toBe(false);
});
