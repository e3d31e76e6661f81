import { expect, test } from "bun:test";
import { parsePosition, parseStrictU64, toCount } from "../../src/protocol/integers.ts";

test("a strict u64 is plain digits up to 2^64-1, exact at every edge", () => {
  for (const value of [0n, 1n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n, 2n ** 63n, 2n ** 64n - 1n]) {
    expect(parseStrictU64(String(value))).toBe(value);
  }
  for (const text of ["", "-1", "+1", "01", "00", " 1", "1 ", "1.0", "1e3", "0x1", "18446744073709551616", "9".repeat(400), "١"]) {
    expect(parseStrictU64(text)).toBeNull();
  }
});

test("a position is a signed 64-bit decimal; negative ones are 0, those beyond 2^53 the greatest offset", () => {
  expect(parsePosition("7")).toBe(7);
  expect(parsePosition("+7")).toBe(7);
  expect(parsePosition("00000000000000000007")).toBe(7);
  expect(parsePosition("-1")).toBe(0);
  expect(parsePosition("-0")).toBe(0);
  expect(parsePosition("-9223372036854775808")).toBe(0);
  expect(parsePosition("9007199254740991")).toBe(Number.MAX_SAFE_INTEGER);
  expect(parsePosition("9007199254740993")).toBe(Number.MAX_SAFE_INTEGER);
  expect(parsePosition("9223372036854775807")).toBe(Number.MAX_SAFE_INTEGER);
  for (const text of [
    "",
    "+",
    "-",
    "1.5",
    "1e3",
    "0x1",
    "abc",
    " 1",
    "9223372036854775808",
    "-9223372036854775809",
    "18446744073709551615",
  ]) {
    expect(parsePosition(text)).toBeNull();
  }
});

test("a count beyond 2^53 is cut, not rounded or wrapped", () => {
  expect(toCount(5n)).toBe(5);
  expect(toCount(2n ** 64n - 1n)).toBe(Number.MAX_SAFE_INTEGER);
});
