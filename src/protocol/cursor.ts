/**
 * Cache-busting tokens of live reads: the number of a 20 s interval. Never a position in a stream. A
 * client that sends the present one, or a later one, gets a greater one, so that no cache can answer it
 * with the same page for ever (Pico 8, Durable Streams 10.1).
 */
import { type Random, randomBelow } from "../lib/random.ts";
import { parseStrictU64 } from "./integers.ts";

const INTERVAL_MS = 20_000;

export interface CursorRule {
  /** Wall-clock origin of interval 0. */
  readonly epochMs: number;
  /** Intervals that are added beyond the client's, at random: 1 to this. */
  readonly jitterMax: number;
}

export const PICO_CURSOR: CursorRule = { epochMs: 0, jitterMax: 60 };
/** Intervals since 2024-10-09; up to an hour of jitter. */
export const DURABLE_STREAMS_CURSOR: CursorRule = { epochMs: Date.UTC(2024, 9, 9), jitterMax: 180 };

/** The cursor of an answer. `sent`: the client's, undefined where it sent none; what is no u64 is ignored. */
export function cursorFor(rule: CursorRule, nowMs: number, sent: string | undefined, random: Random): bigint {
  const present = BigInt(Math.max(0, Math.floor((nowMs - rule.epochMs) / INTERVAL_MS)));
  const client = sent === undefined ? null : parseStrictU64(sent);
  if (client === null || client < present) return present;
  return client + 1n + BigInt(randomBelow(random, rule.jitterMax));
}
