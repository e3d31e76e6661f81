/**
 * Reads parked on one stream until its durable tail passes their offset. A waiter is registered before
 * the last look at the tail, so that nothing can slip between (FAULTS R1); nothing is queued for it, it
 * reads by itself once woken.
 */
import type { Clock, Timer } from "../lib/clock.ts";
import type { WaitOutcome } from "./stream-service.ts";

interface Waiter {
  readonly offset: number;
  readonly finish: (outcome: WaitOutcome) => void;
}

export class WaiterList {
  readonly #waiters = new Set<Waiter>();

  get size(): number {
    return this.#waiters.size;
  }

  /** Wakes those whose offset the durable tail has passed. */
  wakeBelow(durableOffset: number): void {
    for (const waiter of this.#waiters) {
      if (waiter.offset < durableOffset) waiter.finish("data");
    }
  }

  wakeAll(outcome: WaitOutcome): void {
    for (const waiter of this.#waiters) waiter.finish(outcome);
  }

  /** Resolves at the first of: woken, `timeoutMs` over, `signal` aborted. */
  wait(offset: number, timeoutMs: number, signal: AbortSignal | null, clock: Clock): Promise<WaitOutcome> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve("timeout");
      let timer: Timer | null = null;
      const onAbort = () => waiter.finish("timeout");
      const waiter: Waiter = {
        offset,
        finish: (outcome) => {
          if (!this.#waiters.delete(waiter)) return;
          timer?.cancel();
          signal?.removeEventListener("abort", onAbort);
          resolve(outcome);
        },
      };
      this.#waiters.add(waiter);
      timer = clock.schedule(timeoutMs, () => waiter.finish("timeout"));
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }
}
