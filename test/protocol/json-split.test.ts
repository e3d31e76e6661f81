import { describe, expect, test } from "bun:test";
import { isPicoError } from "../../src/lib/errors.ts";
import { splitJsonBody } from "../../src/protocol/json-split.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function split(text: string): string[] {
  return splitJsonBody(encoder.encode(text)).map((part) => decoder.decode(part));
}

describe("JSON bodies", () => {
  test("a top-level array is flattened exactly one level", () => {
    expect(split('[{"a":1},{"b":2}]')).toEqual(['{"a":1}', '{"b":2}']);
    expect(split("[[1,2],[3,4]]")).toEqual(["[1,2]", "[3,4]"]);
    expect(split("[[[1,2,3]]]")).toEqual(["[[1,2,3]]"]);
    expect(split("[1]")).toEqual(["1"]);
    expect(split('["a,b","]","[","\\"",null,true]')).toEqual(['"a,b"', '"]"', '"["', '"\\""', "null", "true"]);
  });

  test("any other value is one record, an empty array is none", () => {
    for (const text of ['{"event":"x"}', '"text"', "1", "null", "true"]) expect(split(text)).toEqual([text]);
    expect(split("[]")).toEqual([]);
    expect(split(" [ \n ] ")).toEqual([]);
  });

  test("member order, repeated members and the text of numbers stay", () => {
    const value = '{"b":1.0,"a":9007199254740993,"b":1e400,"z":-0,"e":1E+2,"u":"\\u0041\\/"}';
    expect(split(value)).toEqual([value]);
    expect(split(`[${value},${value}]`)).toEqual([value, value]);
  });

  test("white space goes away between tokens and stays in strings", () => {
    expect(split(' [ { "a b" : "c  \\n d" } ,\r\n\t2 ] ')).toEqual(['{"a b":"c  \\n d"}', "2"]);
    expect(split('{"q":"\\\\"} ')).toEqual(['{"q":"\\\\"}']);
  });

  test("what is not one JSON value in UTF-8 is refused", () => {
    const wrong = ["", " ", "{", "[1,]", "[1 2]", "{'a':1}", "NaN", "01", "[1]x", "\uFEFF[1]", '"\t"'];
    for (const text of wrong) expect(codeOf(() => split(text))).toBe("bad_request");
    expect(codeOf(() => splitJsonBody(Uint8Array.of(0x22, 0xff, 0x22)))).toBe("bad_request");
  });

  test("10,000 values are a request, one more is not", () => {
    expect(split(`[${Array(10_000).fill("1").join(",")}]`)).toHaveLength(10_000);
    expect(codeOf(() => split(`[${Array(10_001).fill("1").join(",")}]`))).toBe("bad_request");
  });

  test("splitting agrees with JSON.parse on generated values", () => {
    const next = generator(7);
    for (let round = 0; round < 500; round++) {
      const value = Array.from({ length: next(4) }, () => randomValue(next, 3));
      const text = JSON.stringify(value, null, next(3));
      expect(split(text)).toEqual(value.map((element) => JSON.stringify(element)));
    }
  });

  test("nesting deeper than the stack is an error or a record, never an exit", () => {
    const deep = "[".repeat(200_000) + "]".repeat(200_000);
    expect(["none", "bad_request"]).toContain(codeOf(() => split(deep)));
  });
});

function randomValue(next: (bound: number) => number, depth: number): unknown {
  const kind = next(depth > 0 ? 7 : 5);
  if (kind === 0) return null;
  if (kind === 1) return next(2) === 0;
  if (kind === 2) return next(1000) / 8;
  if (kind < 5) return Array.from({ length: next(6) }, () => '",\\[]{} \n\té'[next(12)] ?? "").join("");
  if (kind === 5) return Array.from({ length: next(4) }, () => randomValue(next, depth - 1));
  return Object.fromEntries(Array.from({ length: next(4) }, (_, i) => [`k${i}",:`, randomValue(next, depth - 1)]));
}

/** The same numbers for the same seed (mulberry32). */
function generator(seed: number): (bound: number) => number {
  let state = seed;
  return (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
}

function codeOf(run: () => unknown): string {
  try {
    run();
    return "none";
  } catch (error) {
    return isPicoError(error) ? error.code : String(error);
  }
}
