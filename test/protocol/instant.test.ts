import { expect, test } from "bun:test";
import { formatInstant, parseInstant, parsePicoInstant } from "../../src/protocol/instant.ts";

test("instants in UTC are read to the millisecond", () => {
  expect(parsePicoInstant("1970-01-01T00:00:00Z")).toBe(0);
  expect(parsePicoInstant("2100-01-01T00:00:00Z")).toBe(Date.UTC(2100, 0, 1));
  expect(parsePicoInstant("2024-02-29T23:59:59.9Z")).toBe(Date.UTC(2024, 1, 29, 23, 59, 59, 900));
  expect(parsePicoInstant("2024-02-29T23:59:59.123456789Z")).toBe(Date.UTC(2024, 1, 29, 23, 59, 59, 123));
  expect(parsePicoInstant("1760000000123")).toBe(1760000000123);
  expect(parsePicoInstant("0")).toBe(0);
});

test("no instants: other offsets, before 1970, days that do not exist, other forms", () => {
  const wrong = [
    "2100-01-01T00:00:00+00:00",
    "1969-12-31T23:59:59Z",
    "2023-02-29T00:00:00Z",
    "2023-13-01T00:00:00Z",
    "2023-01-01T24:00:00Z",
    "2023-01-01T00:00:60Z",
    "2023-01-01 00:00:00Z",
    "2023-01-01T00:00Z",
    "2023-01-01T00:00:00.Z",
    "0050-01-01T00:00:00Z",
    "not-a-timestamp",
    "",
    "-1",
    "01",
    "253402300800000",
  ];
  for (const text of wrong) expect(parsePicoInstant(text)).toBeNull();
});

test("with offsets allowed the same moment is read", () => {
  expect(parseInstant("2100-01-01T02:30:00+02:30")).toBe(Date.UTC(2100, 0, 1));
  expect(parseInstant("2099-12-31T23:00:00-01:00")).toBe(Date.UTC(2100, 0, 1));
  expect(parseInstant("2100-01-01T00:00:00+24:00")).toBeNull();
});

test("written with three digits of fraction, or none for a whole second", () => {
  expect(formatInstant(Date.UTC(2100, 0, 1))).toBe("2100-01-01T00:00:00Z");
  expect(formatInstant(Date.UTC(2100, 0, 1) + 50)).toBe("2100-01-01T00:00:00.050Z");
});
