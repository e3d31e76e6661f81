import { expect, test } from "bun:test";
import { DeadlineHeap } from "../../src/streams/deadline-heap.ts";

test("entries come out in the order of their deadlines, whatever the order they went in", () => {
  const heap = new DeadlineHeap();
  const deadlines = Array.from({ length: 500 }, (_, i) => (i * 7919) % 503);
  for (const [streamId, atMs] of deadlines.entries()) heap.push({ atMs, streamId });
  const out: number[] = [];
  for (let entry = heap.popDue(1000); entry !== null; entry = heap.popDue(1000)) out.push(entry.atMs);
  expect(out).toEqual([...deadlines].sort((left, right) => left - right));
  expect(heap.size).toBe(0);
});

test("an entry that is not due stays", () => {
  const heap = new DeadlineHeap();
  heap.push({ atMs: 10, streamId: 1 });
  expect(heap.popDue(9)).toBeNull();
  expect(heap.popDue(10)).toEqual({ atMs: 10, streamId: 1 });
  expect(heap.peek()).toBeNull();
});
