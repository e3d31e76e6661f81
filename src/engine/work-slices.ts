/**
 * Cuts long work on the event loop into slices: between two of them everything else has its turn. A slice
 * ends by the bytes handled or by the number of steps, whichever comes first: many small entries take
 * longer than their bytes say.
 */
import type { Clock } from "../lib/clock.ts";
import { WORK_SLICE_BYTES, WORK_SLICE_STEPS } from "../lib/limits.ts";

export class WorkSlices {
  #bytes = 0;
  #steps = 0;

  constructor(private readonly clock: Clock) {}

  /** Counts one step. Where the slice is used up, the promise is to be awaited before the next step; else null. */
  step(bytes: number): Promise<void> | null {
    this.#bytes += bytes;
    this.#steps += 1;
    if (this.#bytes < WORK_SLICE_BYTES && this.#steps < WORK_SLICE_STEPS) return null;
    this.#bytes = 0;
    this.#steps = 0;
    return new Promise((resolve) => this.clock.soon(resolve));
  }
}
