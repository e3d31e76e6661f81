/**
 * Simulated time: a queue of events. One event runs at a time, and every promise continuation that it
 * caused runs before the next one, so that a run is one sequence of steps which its seed decides.
 *
 * Continuations are drained by `drainMicrotasks` of `bun:jsc` in the same call stack. A whole run is
 * therefore synchronous: nothing outside (I/O, real timers) can slip in between two events.
 *
 * Events due at the same time run in an order that is drawn, not in the order of scheduling.
 */
import { drainMicrotasks } from "bun:jsc";
import type { Prng } from "./prng.ts";
import type { Trace } from "./trace.ts";

export interface SimEvent {
  cancel(): void;
}

interface QueuedEvent extends SimEvent {
  readonly atMs: number;
  readonly rank: number;
  readonly label: string;
  run: (() => void) | null;
}

export class Scheduler {
  readonly #heap: QueuedEvent[] = [];
  #nowMs = 0;

  constructor(
    private readonly prng: Prng,
    private readonly trace: Trace,
  ) {}

  /** True time since the start of the run, in ms; no node sees it. */
  get nowMs(): number {
    return this.#nowMs;
  }

  /** Runs `run` once, `delayMs` of true time from now. */
  schedule(delayMs: number, label: string, run: () => void): SimEvent {
    const event: QueuedEvent = {
      atMs: this.#nowMs + Math.max(0, delayMs),
      rank: this.prng.next(),
      label,
      run,
      cancel: () => {
        event.run = null;
      },
    };
    this.#push(event);
    return event;
  }

  /** Resolves after `delayMs` of true time; for actors, which have no clock of their own. */
  sleep(delayMs: number, label: string): Promise<void> {
    return new Promise((resolve) => {
      this.schedule(delayMs, label, resolve);
    });
  }

  /** Runs the next event and everything that it set off. False: nothing is left to run. */
  step(): boolean {
    for (;;) {
      const event = this.#pop();
      if (event === null) return false;
      const run = event.run;
      if (run === null) continue;
      this.#nowMs = event.atMs;
      this.trace.note(`${event.atMs.toFixed(3)} ${event.label}`);
      run();
      drainMicrotasks();
      return true;
    }
  }

  #push(event: QueuedEvent): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(event);
    while (at > 0) {
      const above = (at - 1) >> 1;
      const parent = heap[above];
      if (parent === undefined || !isBefore(event, parent)) break;
      heap[at] = parent;
      at = above;
    }
    heap[at] = event;
  }

  #pop(): QueuedEvent | null {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined) return null;
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let below = at * 2 + 1;
      let child = heap[below];
      if (child === undefined) break;
      const right = heap[below + 1];
      if (right !== undefined && isBefore(right, child)) {
        below += 1;
        child = right;
      }
      if (!isBefore(child, last)) break;
      heap[at] = child;
      at = below;
    }
    heap[at] = last;
    return first;
  }
}

function isBefore(left: QueuedEvent, right: QueuedEvent): boolean {
  return left.atMs < right.atMs || (left.atMs === right.atMs && left.rank < right.rank);
}
