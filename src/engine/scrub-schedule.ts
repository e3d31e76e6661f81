/**
 * When a scrub is due by itself: on the node that holds the lease, some time after its start and then once an
 * interval. A pure decision; whoever asks starts it.
 */
import { SCRUB_FIRST_MS, SCRUB_RETRY_AFTER_MS } from "../lib/limits.ts";

export interface ScrubScheduleState {
  /** Between two scrubs; 0: none by itself. */
  readonly intervalMs: number;
  readonly isLeaseHeld: boolean;
  /** Monotonic times: of the start of this node, and of the beginning of its last scheduled scrub. */
  readonly startedMs: number;
  readonly lastMs: number | null;
  /** The last one could not be finished. */
  readonly hasFailed: boolean;
  readonly nowMs: number;
}

export function isScrubDue({ intervalMs, isLeaseHeld, startedMs, lastMs, hasFailed, nowMs }: ScrubScheduleState): boolean {
  if (intervalMs === 0 || !isLeaseHeld) return false;
  if (lastMs === null) return nowMs - startedMs >= Math.min(intervalMs, SCRUB_FIRST_MS);
  return nowMs - lastMs >= (hasFailed ? Math.min(intervalMs, SCRUB_RETRY_AFTER_MS) : intervalMs);
}
