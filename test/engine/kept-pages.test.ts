import { expect, test } from "bun:test";
import { KeptPages } from "../../src/engine/kept-pages.ts";

function holderOf(released: object[]) {
  return { releasePage: (page: object) => void released.push(page) };
}

test("pages beyond the limit go, the oldest first", () => {
  const released: object[] = [];
  const kept = new KeptPages(11_000);
  const pages = Array.from({ length: 5 }, (_, at) => ({ at }));
  for (const page of pages) kept.add(holderOf(released), page, 3000);
  expect(released).toEqual([{ at: 0 }, { at: 1 }]);
});

test("a page larger than the limit is let go at once, and what comes later has room", () => {
  const released: object[] = [];
  const kept = new KeptPages(10_000);
  kept.add(holderOf(released), { at: 0 }, 20_000);
  kept.add(holderOf(released), { at: 1 }, 100);
  expect(released).toEqual([{ at: 0 }]);
});

test("many small pages are bounded too", () => {
  const released: object[] = [];
  const kept = new KeptPages(100_000);
  for (let at = 0; at < 10_000; at++) kept.add(holderOf(released), { at }, 0);
  expect(10_000 - released.length).toBeLessThan(200);
  expect(released[0]).toEqual({ at: 0 });
});
