import { expect, test } from "bun:test";
import { QueryParameters } from "../../src/protocol/query.ts";

test("the first occurrence of a key wins, and the repeat is known", () => {
  const query = new QueryParameters("seq=1&count=5&seq=2");
  expect(query.get("seq")).toBe("1");
  expect(query.isRepeated("seq")).toBe(true);
  expect(query.isRepeated("count")).toBe(false);
});

test("pairs split at the first equals sign, keys are compared as sent", () => {
  const query = new QueryParameters("a=b=c&%61=x&A=y&flag&&empty=");
  expect(query.get("a")).toBe("b=c");
  expect(query.get("%61")).toBe("x");
  expect(query.get("A")).toBe("y");
  expect(query.get("flag")).toBe("");
  expect(query.get("empty")).toBe("");
  expect(query.get("")).toBeUndefined();
});

test("values: escapes once, plus is a space, malformed escapes stay, invalid UTF-8 is replaced", () => {
  const query = new QueryParameters("a=%2B7&b=x+y&c=%zz%41&d=%FF&e=%2541&f=%C3%A9&g=%E9x&h=%");
  expect(query.get("a")).toBe("+7");
  expect(query.get("b")).toBe("x y");
  expect(query.get("c")).toBe("%zzA");
  expect(query.get("d")).toBe("\uFFFD");
  expect(query.get("e")).toBe("%41");
  expect(query.get("f")).toBe("é");
  expect(query.get("g")).toBe("\uFFFDx");
  expect(query.get("h")).toBe("%");
});

test("names of built-in members are keys like others", () => {
  const query = new QueryParameters("__proto__=1&constructor=2");
  expect(query.get("__proto__")).toBe("1");
  expect(query.get("constructor")).toBe("2");
  expect(query.get("toString")).toBeUndefined();
});
