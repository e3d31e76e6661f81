import { expect, test } from "bun:test";
import { backOffMs } from "../../src/lib/back-off.ts";

const lowest = { bytes: (length: number) => new Uint8Array(length), fraction: () => 0 };
const highest = { bytes: (length: number) => new Uint8Array(length), fraction: () => 1 - Number.EPSILON };

test("waits double up to the bound, and half of each is chance", () => {
  expect([1, 2, 3, 4, 5, 2000].map((attempt) => backOffMs(lowest, attempt, 20, 150))).toEqual([10, 20, 40, 75, 75, 75]);
  expect([1, 2, 3, 4, 5, 2000].map((attempt) => Math.round(backOffMs(highest, attempt, 20, 150)))).toEqual([20, 40, 80, 150, 150, 150]);
});
