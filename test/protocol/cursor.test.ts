import { expect, test } from "bun:test";
import type { Random } from "../../src/lib/random.ts";
import { cursorFor, DURABLE_STREAMS_CURSOR, PICO_CURSOR } from "../../src/protocol/cursor.ts";

const NOW_MS = 88_000_000 * 20_000 + 5;
const at = (fraction: number): Random => ({ bytes: (length) => new Uint8Array(length), fraction: () => fraction });

test("a cursor is the number of the 20 s interval", () => {
  expect(cursorFor(PICO_CURSOR, NOW_MS, undefined, at(0))).toBe(88_000_000n);
  expect(cursorFor(DURABLE_STREAMS_CURSOR, Date.UTC(2024, 9, 9) + 40_000, undefined, at(0))).toBe(2n);
});

test("a client that sends the present one or a later one gets a greater one, 1 to 60 intervals on", () => {
  expect(cursorFor(PICO_CURSOR, NOW_MS, "88000000", at(0))).toBe(88_000_001n);
  expect(cursorFor(PICO_CURSOR, NOW_MS, "88000000", at(0.9999))).toBe(88_000_060n);
  expect(cursorFor(PICO_CURSOR, NOW_MS, "88000500", at(0))).toBe(88_000_501n);
  expect(cursorFor(PICO_CURSOR, NOW_MS, String(2n ** 64n - 1n), at(0))).toBe(2n ** 64n);
});

test("an older one, and what is no u64, is ignored", () => {
  for (const sent of ["87999999", "0", "", "abc", "-1", String(2n ** 64n)]) {
    expect(cursorFor(PICO_CURSOR, NOW_MS, sent, at(0))).toBe(88_000_000n);
  }
});
