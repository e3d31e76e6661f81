import { expect, test } from "bun:test";
import { RecentMap } from "../../src/lib/recent-map.ts";

test("the entry set longest ago makes room, and setting it again makes it the youngest", () => {
  const map = new RecentMap<string, number>(2);
  map.set("a", 1);
  map.set("b", 2);
  map.set("a", 3);
  map.set("c", 4);
  expect(map.get("b")).toBeUndefined();
  expect([...map.values()]).toEqual([3, 4]);
  expect(map.size).toBe(2);
});

test("what was deleted leaves room", () => {
  const map = new RecentMap<string, number>(2);
  map.set("a", 1);
  map.set("b", 2);
  expect(map.delete("a")).toBe(true);
  expect(map.delete("a")).toBe(false);
  map.set("c", 3);
  expect([...map.values()]).toEqual([2, 3]);
});
