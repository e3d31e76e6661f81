/**
 * The clock of one process: it runs a little fast or slow against true time, and the wall clock of its
 * host may be stepped at any moment, in either direction. The monotonic reading starts anew with each
 * life and never falls.
 */
import type { Clock, Timer } from "../../../src/lib/clock.ts";
import type { SimProcess } from "./process.ts";
import type { Scheduler } from "./scheduler.ts";

/** True time 0 of every run, as a wall clock reads it. */
export const WALL_ORIGIN_MS = 1_760_000_000_000;

/** The wall clock of a host; outlives the processes on it. */
export class HostTime {
  constructor(
    private readonly scheduler: Scheduler,
    /** Seconds gained per second of true time, such as 0.0001. */
    readonly drift: number,
    /** Ahead of true time by so much. */
    public offsetMs: number,
  ) {}

  wallMs(): number {
    return Math.floor(WALL_ORIGIN_MS + this.elapsedMs() + this.offsetMs);
  }

  /** Since the start of the run, as this host counts. */
  elapsedMs(): number {
    return this.scheduler.nowMs * (1 + this.drift);
  }
}

const DELAY_MS_MAX = 24 * 24 * 3600 * 1000;

export class SimClock implements Clock {
  readonly #originMs: number;

  constructor(
    private readonly scheduler: Scheduler,
    private readonly host: HostTime,
    private readonly process: SimProcess,
  ) {
    this.#originMs = host.elapsedMs();
  }

  nowMs(): number {
    return this.host.wallMs();
  }

  monotonicMs(): number {
    return this.host.elapsedMs() - this.#originMs;
  }

  /** In whole milliseconds, at least one, as the timers of the runtime are. */
  schedule(delayMs: number, run: () => void): Timer {
    return this.#after(Math.min(Math.max(1, Math.ceil(delayMs)), DELAY_MS_MAX), run);
  }

  #after(delayMs: number, run: () => void): Timer {
    const trueMs = delayMs / (1 + this.host.drift);
    let isCancelled = false;
    const event = this.scheduler.schedule(trueMs, `${this.process.name} timer`, () => {
      // Cancelling still counts while the process is paused with the timer due.
      this.process.deliver(() => {
        if (!isCancelled) run();
      });
    });
    return {
      cancel: () => {
        isCancelled = true;
        event.cancel();
      },
    };
  }

  soon(run: () => void): void {
    this.#after(0, run);
  }
}
