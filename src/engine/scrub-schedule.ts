/**
 * Scrubs by themselves: on the node that holds the lease, some time after its start and then once an interval.
 * Between two of them it only looks at the clock.
 */
import type { Clock } from "../lib/clock.ts";
import { SCRUB_AGE_SECONDS_DEFAULT, SCRUB_FIRST_MS, SCRUB_RETRY_AFTER_MS } from "../lib/limits.ts";
import type { ScrubRequest } from "./scrub-report.ts";
import type { Scrubber } from "./scrubber.ts";

export interface ScrubScheduleOptions {
  readonly scrubber: Pick<Scrubber, "start">;
  /** Between two scrubs; 0: none by themselves. */
  readonly intervalMs: number;
  readonly isLeaseHeld: () => boolean;
  readonly clock: Pick<Clock, "monotonicMs">;
}

export interface ScrubDueState {
  readonly intervalMs: number;
  readonly isLeaseHeld: boolean;
  /** Monotonic times: of the start of this node, and of the beginning of its last scrub by itself. */
  readonly startedMs: number;
  readonly lastMs: number | null;
  /** The last one could not be finished. */
  readonly hasFailed: boolean;
  readonly nowMs: number;
}

/** Finds what is wrong, and deletes nothing. */
const SCHEDULED: ScrubRequest = { verifies: false, deletesOrphans: false, minAgeMs: SCRUB_AGE_SECONDS_DEFAULT * 1000, by: "schedule" };

export class ScrubSchedule {
  readonly #options: ScrubScheduleOptions;
  #startedMs: number | null = null;
  #lastMs: number | null = null;
  #hasFailed = false;

  constructor(options: ScrubScheduleOptions) {
    this.#options = options;
  }

  /** Begins one if it is due, and does not wait for it. The first call is the start. */
  look(): void {
    const { scrubber, intervalMs, isLeaseHeld, clock } = this.#options;
    const nowMs = clock.monotonicMs();
    this.#startedMs ??= nowMs;
    const due = {
      intervalMs,
      isLeaseHeld: isLeaseHeld(),
      startedMs: this.#startedMs,
      lastMs: this.#lastMs,
      hasFailed: this.#hasFailed,
      nowMs,
    };
    // One under way, an operator's too, is looked at again a little later.
    const running = isScrubDue(due) ? scrubber.start(SCHEDULED) : null;
    if (running === null) return;
    this.#lastMs = nowMs;
    this.#hasFailed = false;
    void running.then((run) => {
      this.#hasFailed = run.error !== null;
    });
  }
}

export function isScrubDue({ intervalMs, isLeaseHeld, startedMs, lastMs, hasFailed, nowMs }: ScrubDueState): boolean {
  if (intervalMs === 0 || !isLeaseHeld) return false;
  if (lastMs === null) return nowMs - startedMs >= Math.min(intervalMs, SCRUB_FIRST_MS);
  return nowMs - lastMs >= (hasFailed ? Math.min(intervalMs, SCRUB_RETRY_AFTER_MS) : intervalMs);
}
