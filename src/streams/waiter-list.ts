/**
 * Reads parked on one stream until its durable tail passes their offset. Who parks one looks at the tail
 * in the same turn, so that nothing can slip between (FAULTS R1); nothing is queued for it, it reads by
 * itself once woken.
 */
import type { Clock } from "../lib/clock.ts";
import type { Waiter, WaitOutcome } from "./stream-service.ts";

export class WaiterList {
  readonly #waiters = new Set<Waiter>();

  constructor(
    /** Called for each wait that is over, before who waited is told. */
    private readonly onLeft: () => void,
  ) {}

  get size(): number {
    return this.#waiters.size;
  }

  add(waiter: Waiter): void {
    this.#waiters.add(waiter);
  }

  /** Takes a waiter out without waking it; false where it is not in. */
  remove(waiter: Waiter): boolean {
    if (!this.#waiters.delete(waiter)) return false;
    this.onLeft();
    return true;
  }

  /** Wakes those whose offset the durable tail has passed. */
  wakeBelow(durableOffset: number): void {
    for (const waiter of this.#waiters) {
      if (waiter.offset < durableOffset && this.remove(waiter)) waiter.wake("data");
    }
  }

  wakeAll(outcome: WaitOutcome): void {
    for (const waiter of this.#waiters) {
      if (this.remove(waiter)) waiter.wake(outcome);
    }
  }

  /** Resolves at the first of: woken, `timeoutMs` over, `signal` aborted. */
  wait(offset: number, timeoutMs: number, signal: AbortSignal | null, clock: Clock): Promise<WaitOutcome> {
    return new Promise((resolve) => {
      const giveUp = () => {
        if (this.remove(waiter)) waiter.wake("timeout");
      };
      const timer = clock.schedule(timeoutMs, giveUp);
      signal?.addEventListener("abort", giveUp, { once: true });
      const waiter: Waiter = {
        offset,
        wake: (outcome) => {
          timer.cancel();
          signal?.removeEventListener("abort", giveUp);
          resolve(outcome);
        },
      };
      this.add(waiter);
      if (signal?.aborted) giveUp();
    });
  }
}
