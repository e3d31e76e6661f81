import { expect, test } from "bun:test";
import { SequentialRead, SequentialReads } from "../../src/engine/sequential-reads.ts";
import { READ_AHEAD_WINDOW_BYTES } from "../../src/lib/limits.ts";

function readOf(readBytes: number, aheadUntil = 0): SequentialRead {
  return Object.assign(new SequentialRead(), { readBytes, aheadUntil });
}

test("a reader is known again where its last page ended, and nowhere else", () => {
  const reads = new SequentialReads(10);
  const read = readOf(100);
  reads.note(1, 7, read);
  for (const [streamId, offset] of [
    [1, 6],
    [1, 0],
    [17, 7],
  ] as const) {
    expect(reads.take(streamId, offset)).toBeNull();
  }
  expect(reads.take(1, 7)).toBe(read);
  expect(reads.take(1, 7)).toBeNull();
  expect(reads.count).toBe(0);
});

test("of readers at one offset the one that has read most is remembered, and of too many the last ones", () => {
  const reads = new SequentialReads(3);
  const [little, much] = [readOf(1), readOf(2)];
  for (const [first, second] of [
    [little, much],
    [much, little],
  ] as const) {
    reads.note(1, 7, first);
    reads.note(1, 7, second);
    expect(reads.take(1, 7)).toBe(much);
  }
  const all = [1, 2, 3, 4].map(readOf);
  for (const [at, read] of all.entries()) reads.note(at, 0, read);
  expect(reads.count).toBe(3);
  expect(all.map((read, at) => reads.take(at, 0) === read)).toEqual([false, true, true, true]);
});

test("what is to be ahead of a reader grows with what it has read, up to a limit, and is due once half of it is used", () => {
  expect(readOf(100).windowBytes).toBe(100);
  expect(readOf(2 * READ_AHEAD_WINDOW_BYTES).windowBytes).toBe(READ_AHEAD_WINDOW_BYTES);
  expect([0, 150, 151].map((aheadUntil) => readOf(100, aheadUntil).isDue)).toEqual([true, true, false]);
  expect(Object.assign(readOf(100), { isLooking: true }).isDue).toBe(false);
});
