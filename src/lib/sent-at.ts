/** A moment on both clocks: only together do they tell how long a node may have stood still. */
import type { Clock } from "./clock.ts";

/** Taken just before a call that proves something to or of this node. */
export interface SentAt {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function sentNow(clock: Clock): SentAt {
  return { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() };
}

/** Milliseconds since then, by whichever clock moved more: the monotonic one may stand while the machine sleeps, the other may be set back. */
export function ageMs(sentAt: SentAt, clock: Clock): number {
  return Math.max(clock.monotonicMs() - sentAt.monotonicMs, clock.nowMs() - sentAt.wallMs);
}
