/**
 * Long work in the background that leaves the event loop to others for at least as long as it takes it: a
 * slice of work, then a rest of the same length. Time spent waiting for a store is no work.
 */
import { type Clock, sleep } from "../lib/clock.ts";
import { WORK_SLICE_BYTES, WORK_SLICE_STEPS } from "../lib/limits.ts";

export class PacedWork {
  #bytes = 0;
  #steps = 0;
  #workedMs = 0;
  #resumedMs: number;

  constructor(
    private readonly clock: Clock,
    /** Ends a rest. */
    private readonly signal: AbortSignal,
  ) {
    this.#resumedMs = clock.monotonicMs();
  }

  /** Counts one step. Where the slice is used up, the promise is to be awaited before the next step; else null. */
  step(bytes: number): Promise<void> | null {
    this.#bytes += bytes;
    this.#steps += 1;
    if (this.#bytes < WORK_SLICE_BYTES && this.#steps < WORK_SLICE_STEPS) return null;
    this.#bytes = 0;
    this.#steps = 0;
    return this.#rest();
  }

  /** Waits for something that others do. */
  async idle<Result>(wait: Promise<Result>): Promise<Result> {
    this.#workedMs += this.clock.monotonicMs() - this.#resumedMs;
    try {
      return await wait;
    } finally {
      this.#resumedMs = this.clock.monotonicMs();
    }
  }

  async #rest(): Promise<void> {
    const workedMs = this.#workedMs + this.clock.monotonicMs() - this.#resumedMs;
    // A timer of less than a millisecond is none; a turn for the others is due all the same.
    if (workedMs >= 1) await sleep(this.clock, workedMs, this.signal);
    else await new Promise<void>((resolve) => this.clock.soon(resolve));
    this.#workedMs = workedMs >= 1 ? 0 : workedMs;
    this.#resumedMs = this.clock.monotonicMs();
  }
}
