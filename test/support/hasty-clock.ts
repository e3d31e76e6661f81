import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { S3_RETRY_MS_MAX } from "../../src/lib/limits.ts";

/**
 * The machine's clock whose pauses between tries are over at once, for stores behind a real socket. Time-outs are as
 * long as they are, or shorter by a factor where a test waits for one; monotonic time passes faster by the same.
 */
export class HastyClock implements Clock {
  readonly #haste: number;
  readonly #aheadMs: number;

  /** `aheadMs`: of the wall clock before the machine's. */
  constructor({ haste = 1, aheadMs = 0 }: { readonly haste?: number; readonly aheadMs?: number } = {}) {
    this.#haste = haste;
    this.#aheadMs = aheadMs;
  }

  nowMs(): number {
    return systemClock.nowMs() + this.#aheadMs;
  }

  monotonicMs(): number {
    return systemClock.monotonicMs() * this.#haste;
  }

  schedule(delayMs: number, run: () => void) {
    return systemClock.schedule(delayMs <= S3_RETRY_MS_MAX ? delayMs / 100 : delayMs / this.#haste, run);
  }

  soon(run: () => void): void {
    systemClock.soon(run);
  }
}
