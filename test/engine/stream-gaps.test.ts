import { expect, test } from "bun:test";
import { StreamGaps } from "../../src/engine/stream-gaps.ts";

const INFINITE = Number.POSITIVE_INFINITY;

test("gaps that touch become one, of others the newer is kept, and what is known of the end stays beside them", () => {
  const gaps = new StreamGaps(10);
  expect(gaps.find(1, 1)).toBeNull();
  gaps.noteGap(1, 1, 5, 10);
  gaps.noteGap(1, 1, 10, 12);
  gaps.noteGap(1, 1, 0, 5);
  expect(gaps.find(1, 1)).toEqual({ from: 0, to: 12, end: INFINITE, isHolder: false });
  gaps.noteHolder(1, 1);
  gaps.noteGap(1, 1, 40, INFINITE);
  gaps.noteGap(1, 1, 50, INFINITE);
  expect(gaps.find(1, 1)).toEqual({ from: 0, to: 12, end: 40, isHolder: true });
  gaps.noteGap(1, 1, 20, 30);
  gaps.noteGap(1, 1, 0, INFINITE);
  expect(gaps.find(1, 1)).toEqual({ from: 20, to: 30, end: 0, isHolder: true });
  gaps.noteCandidate(1, 1);
  gaps.noteCandidate(1, 2);
  expect(gaps.find(1, 1)?.end).toBe(0);
  expect(gaps.find(1, 2)).toEqual({ from: 0, to: 0, end: INFINITE, isHolder: false });
  expect(gaps.find(2, 1)).toBeNull();
});

test("what was learned longest ago goes first", () => {
  const gaps = new StreamGaps(2);
  gaps.noteGap(1, 1, 0, 1);
  gaps.noteGap(2, 1, 0, 1);
  gaps.noteHolder(1, 1);
  gaps.noteGap(3, 1, 0, 1);
  expect(gaps.count).toBe(2);
  expect([gaps.find(1, 1)?.to, gaps.find(2, 1), gaps.find(3, 1)?.to]).toEqual([1, null, 1]);
});
