/**
 * Numbers on the wire (Pico 1.4). Nothing is rounded and nothing wraps: what does not fit is refused.
 */
import { OFFSET_MAX } from "../lib/limits.ts";

export const U64_MAX = 2n ** 64n - 1n;
const I64_MAX = 2n ** 63n - 1n;

/** Digits without sign, space or leading zero; the range is for `parseStrictU64` to check. */
export const STRICT_U64_PATTERN = "^(0|[1-9][0-9]{0,19})$";

const STRICT_U64 = new RegExp(STRICT_U64_PATTERN);
const POSITION = /^[+-]?[0-9]+$/;
/** Longest text of a position: a reader that sends more sends no number that fits. */
const POSITION_LENGTH_MAX = 1024;

/** A u64 in plain digits; null for anything else, the empty text too. */
export function parseStrictU64(text: string): bigint | null {
  if (!STRICT_U64.test(text)) return null;
  const value = BigInt(text);
  return value > U64_MAX ? null : value;
}

/**
 * A read position: a signed 64-bit decimal, leading zeros and a plus sign allowed. Negative ones mean 0.
 * Null for anything else. Positions beyond `OFFSET_MAX` come back as that: no stream is so long.
 */
export function parsePosition(text: string): number | null {
  if (text.length > POSITION_LENGTH_MAX || !POSITION.test(text)) return null;
  const sign = text.charCodeAt(0);
  const digits = sign === 0x2b || sign === 0x2d ? text.slice(1) : text;
  const value = BigInt(digits);
  if (sign === 0x2d) return value > I64_MAX + 1n ? null : 0;
  if (value > I64_MAX) return null;
  return value > BigInt(OFFSET_MAX) ? OFFSET_MAX : Number(value);
}

/** A u64 as a count: what lies beyond 2^53 is cut to it, as no stream holds so much. */
export function toCount(value: bigint): number {
  return value > BigInt(OFFSET_MAX) ? OFFSET_MAX : Number(value);
}
