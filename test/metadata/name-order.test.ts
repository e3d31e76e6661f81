import { expect, test } from "bun:test";
import { NameOrder, sortKeyOf } from "../../src/metadata/name-order.ts";

const names = [
  "",
  "a",
  "a/b",
  "a/b/c",
  "ab",
  "b",
  "é",
  "\u{7ff}",
  "\u{800}",
  "\u{d7ff}",
  "\u{e000}",
  "\u{ffff}",
  "\u{10000}",
  "\u{10ffff}",
  "x\u{ffff}",
  "x\u{10000}",
];

function compareKeys(left: string, right: string): number {
  return sortKeyOf(left) < sortKeyOf(right) ? -1 : sortKeyOf(left) > sortKeyOf(right) ? 1 : 0;
}

test("sort keys compare as the bytes of the names' UTF-8 do", () => {
  for (const left of names) {
    for (const right of names) {
      expect(compareKeys(left, right)).toBe(Buffer.compare(Buffer.from(left), Buffer.from(right)));
    }
  }
});

test("a prefix list is in byte order, holds every name of the prefix and goes on behind `after`", () => {
  const order = new NameOrder();
  names.forEach((name, id) => {
    order.add(name, id);
  });
  const list = (prefix: string, after: string | null) => [...order.idsFrom(prefix, after)].map((id) => names[id] ?? "");
  const sorted = names.toSorted((left, right) => Buffer.compare(Buffer.from(left), Buffer.from(right)));
  for (const prefix of ["", "a", "a/", "x", "zz", "\u{10000}"]) {
    for (const after of [null, "", "a", "a/b", "a/bb", "zzz", "\u{ffff}"]) {
      const expected = sorted.filter((name) => name.startsWith(prefix) && (after === null || compareKeys(name, after) > 0));
      expect(list(prefix, after)).toEqual(expected);
    }
  }
});

test("a removed name is listed no more", () => {
  const order = new NameOrder();
  order.add("a", 1);
  order.remove("a");
  expect([...order.idsFrom("", null)]).toEqual([]);
  expect(order.get("a")).toBeNull();
});
