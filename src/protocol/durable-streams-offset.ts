/**
 * Offsets of the Durable Streams protocol: opaque to clients, ours are positions in 20 digits. Also taken
 * are shorter digits, the zero token of other servers, `-1` (or any negative number) for the start, and `now`.
 */
import { OFFSET_MAX } from "../lib/limits.ts";
import type { ReadRequest } from "../streams/stream-service.ts";

const ZERO_TOKEN = "0000000000000000_0000000000000000";

/** A read position; its text was checked by the schema. */
export function parseReadOffset(text: string): ReadRequest["from"] {
  if (text === "now") return "tail";
  return text.startsWith("-") ? "start" : parseMintedOffset(text);
}

/** Positions beyond what a stream can hold come back as the greatest: none is so long. */
export function parseMintedOffset(text: string): number {
  return text === ZERO_TOKEN ? 0 : Math.min(Number(text), OFFSET_MAX);
}
