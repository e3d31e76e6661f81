/** A clock whose pauses are over at once, for cases about how long a client would wait. Time-outs never come. */

import { globalSeams } from "../../src/client/client-seams.ts";
import type { ClientClock, ClientSeams, Fetch } from "../../src/client/index.ts";

/** Longer ones are time-outs of requests, not pauses. */
const PAUSE_MS_MAX = 40_000;

export class ImpatientClock implements ClientClock {
  /** Pauses that were asked for, in milliseconds. */
  readonly pauses: number[] = [];
  #nowMs = 1_760_000_000_000;

  nowMs(): number {
    return this.#nowMs;
  }

  monotonicMs(): number {
    return this.#nowMs;
  }

  schedule(delayMs: number, run: () => void): { cancel(): void } {
    if (delayMs > PAUSE_MS_MAX) return { cancel: () => undefined };
    let isCancelled = false;
    this.pauses.push(delayMs);
    this.#nowMs += delayMs;
    queueMicrotask(() => {
      if (!isCancelled) run();
    });
    return {
      cancel: () => {
        isCancelled = true;
      },
    };
  }
}

/** Seams with that clock, chance that always gives the longest pause, and the network as it is or as given. */
export function impatientSeams(clock: ImpatientClock, fetch: Fetch = globalSeams.fetch): ClientSeams {
  return { clock, fetch, random: { fraction: () => 1 } };
}
