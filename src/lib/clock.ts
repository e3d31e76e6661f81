/**
 * Time, as the rest of the server sees it. No other module reads a clock or starts a timer, so that
 * a whole cluster can run on a simulated one.
 *
 * Two readings, never mixed: the wall clock says *when* (it may step in either direction), the
 * monotonic clock says *how long* (it never falls). Time-outs and ages use the monotonic one only.
 */

/** A scheduled call. */
export interface Timer {
  /** Prevents the call if it has not started. Calling it again, or later, does nothing. */
  cancel(): void;
}

export interface Clock {
  /** Wall clock: whole milliseconds since 1970. May step backwards. */
  nowMs(): number;
  /** Monotonic clock: milliseconds, with a fraction, since an arbitrary origin. Never falls. */
  monotonicMs(): number;
  /** Calls `run` once, no sooner than `delayMs` from now. Delays beyond 24 days are cut to that. */
  schedule(delayMs: number, run: () => void): Timer;
  /** Calls `run` once, at the end of this turn of the event loop: behind the input that is already there. */
  soon(run: () => void): void;
}

/** `setTimeout` fires at once beyond this. */
const DELAY_MS_MAX = 2 ** 31 - 1;

export const systemClock: Clock = {
  nowMs: () => Date.now(),
  monotonicMs: () => performance.now(),
  schedule(delayMs, run) {
    const handle = setTimeout(run, Math.min(Math.max(0, delayMs), DELAY_MS_MAX));
    return { cancel: () => clearTimeout(handle) };
  },
  soon(run) {
    setImmediate(run);
  },
};

/** Resolves after `delayMs`, or as soon as `signal` aborts; never rejects. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const finish = () => {
      timer.cancel();
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = clock.schedule(delayMs, finish);
    signal?.addEventListener("abort", finish, { once: true });
  });
}
