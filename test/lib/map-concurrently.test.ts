import { expect, test } from "bun:test";
import { mapConcurrently } from "../../src/lib/map-concurrently.ts";

const ITEMS = Array.from({ length: 20 }, (_, at) => at);

test("all results come in the order of the items, with at most so many under way", async () => {
  let underWay = 0;
  let most = 0;
  const results = await mapConcurrently(ITEMS, 3, async (item) => {
    most = Math.max(most, ++underWay);
    for (let turn = 0; turn < (item * 7) % 5; turn++) await null;
    underWay--;
    return item * 2;
  });
  expect(results).toEqual(ITEMS.map((item) => item * 2));
  expect(most).toBe(3);
});

test("nothing gives nothing", async () => {
  expect(await mapConcurrently([], 3, async () => 1)).toEqual([]);
});

test("after a rejection none begins, and it is thrown once those under way have ended", async () => {
  const begun: number[] = [];
  let slowEnded = false;
  const running = mapConcurrently(ITEMS, 3, async (item) => {
    begun.push(item);
    if (item === 0) {
      for (let turn = 0; turn < 20; turn++) await null;
      slowEnded = true;
    }
    if (item === 1) throw new Error("broken");
    await null;
  });
  await expect(running).rejects.toThrow("broken");
  expect(slowEnded).toBe(true);
  expect(begun.length).toBeLessThan(8);
});
