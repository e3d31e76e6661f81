/**
 * An estimate of the database's clock between its answers: what it last said, plus the monotonic time
 * since. A database clock that steps against the monotonic one cannot be trusted for a while, and expiry
 * pauses (FAULTS C1).
 */
import type { Clock } from "../lib/clock.ts";
import { DATABASE_CLOCK_JUMP_MS, DATABASE_CLOCK_STEADY_MS } from "../lib/limits.ts";

interface Sample {
  /** Database time minus monotonic time. */
  readonly offsetMs: number;
  /** Half of the round trip: how far the offset may be off. */
  readonly doubtMs: number;
  readonly atMonotonicMs: number;
}

export class DatabaseClock {
  readonly #clock: Clock;
  #sample: Sample | null = null;
  #unsteadyUntilMs = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Takes in the time that an answer carried; `sentMs` is the monotonic time just before its call. */
  observe(databaseMs: number, sentMs: number): void {
    const nowMs = this.#clock.monotonicMs();
    const doubtMs = Math.max(0, nowMs - sentMs) / 2;
    const offsetMs = databaseMs - (sentMs + doubtMs);
    const before = this.#sample;
    if (before !== null && Math.abs(offsetMs - before.offsetMs) > DATABASE_CLOCK_JUMP_MS + doubtMs + before.doubtMs) {
      this.#unsteadyUntilMs = nowMs + DATABASE_CLOCK_STEADY_MS;
    }
    this.#sample = { offsetMs, doubtMs, atMonotonicMs: nowMs };
  }

  /** Whole milliseconds since 1970. The node's own wall clock before the first answer. */
  nowMs(): number {
    if (this.#sample === null) return this.#clock.nowMs();
    return Math.floor(this.#sample.offsetMs + this.#clock.monotonicMs());
  }

  /** False before the first answer, long after the last one, and for a while after a step. */
  get isSteady(): boolean {
    const nowMs = this.#clock.monotonicMs();
    if (this.#sample === null || nowMs - this.#sample.atMonotonicMs > DATABASE_CLOCK_STEADY_MS) return false;
    return nowMs >= this.#unsteadyUntilMs;
  }
}
