/** A clock that moves only when the test says so. Both readings move together unless the wall is stepped. */
import type { Clock, Timer } from "../../src/lib/clock.ts";

interface Scheduled {
  readonly atMs: number;
  readonly run: () => void;
}

export class ManualClock implements Clock {
  #monotonicMs = 0;
  #timers = new Set<Scheduled>();

  constructor(private wallOffsetMs = 1_700_000_000_000) {}

  nowMs(): number {
    return Math.floor(this.wallOffsetMs + this.#monotonicMs);
  }

  monotonicMs(): number {
    return this.#monotonicMs;
  }

  schedule(delayMs: number, run: () => void): Timer {
    const scheduled = { atMs: this.#monotonicMs + Math.max(0, delayMs), run };
    this.#timers.add(scheduled);
    return { cancel: () => this.#timers.delete(scheduled) };
  }

  soon(run: () => void): void {
    setImmediate(run);
  }

  get timerCount(): number {
    return this.#timers.size;
  }

  stepWall(byMs: number): void {
    this.wallOffsetMs += byMs;
  }

  /** Time passes without any timer: the event loop is busy with something else. */
  stall(byMs: number): void {
    this.#monotonicMs += byMs;
  }

  /** Moves time on; timers that come due run in order, and what they set off is over before the next. */
  async advance(byMs: number): Promise<void> {
    const endMs = this.#monotonicMs + byMs;
    for (;;) {
      await quiet();
      const due = [...this.#timers].filter((timer) => timer.atMs <= endMs).sort((left, right) => left.atMs - right.atMs)[0];
      if (due === undefined) break;
      this.#timers.delete(due);
      this.#monotonicMs = Math.max(this.#monotonicMs, due.atMs);
      due.run();
    }
    this.#monotonicMs = endMs;
    await quiet();
  }
}

/** Resolves when no promise of the process can go on without time or input. */
export function quiet(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

/** What the promise settles with; throws where it waits for time, which does not move meanwhile. */
export async function settled<T>(promise: Promise<T> | T): Promise<T> {
  let isOver = false;
  const over = Promise.resolve(promise).finally(() => {
    isOver = true;
  });
  over.catch(() => {});
  for (let turns = 0; turns < 2000 && !isOver; turns++) await quiet();
  if (!isOver) throw new Error("the promise waits for time");
  return over;
}
