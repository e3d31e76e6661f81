/**
 * Where the outside world enters the client: network, time and chance. The server takes each of them as an
 * argument, so that a whole cluster runs in a simulator. The client runs outside the server, in programs and web
 * pages that have no such seams; so here, and in no other file of this folder, the globals that every runtime
 * has (`fetch`, timers, `Date`, `Math.random`) stand behind the same small interfaces as defaults.
 */

/** What the client asks of `fetch`: the part that browsers, Node and Bun have in common. */
export type Fetch = (url: string, init: FetchInit) => Promise<Response>;

export interface FetchInit {
  readonly method: string;
  readonly headers: Headers;
  readonly body?: Uint8Array<ArrayBuffer>;
  readonly redirect: "manual" | "follow";
  readonly signal: AbortSignal;
}

/** The part of the server's clock that a client needs. */
export interface ClientClock {
  /** Wall clock: milliseconds since 1970. */
  nowMs(): number;
  /** Monotonic clock: milliseconds since an arbitrary origin. */
  monotonicMs(): number;
  /** Calls `run` once, no sooner than `delayMs` from now. */
  schedule(delayMs: number, run: () => void): ClientTimer;
}

export interface ClientTimer {
  /** Prevents the call if it has not started. */
  cancel(): void;
}

export interface ClientRandom {
  /** Uniform in [0, 1). */
  fraction(): number;
}

/** Components of a client; tests and special environments give their own. */
export interface ClientSeams {
  readonly fetch: Fetch;
  readonly clock: ClientClock;
  readonly random: ClientRandom;
}

/** `setTimeout` fires at once beyond this. */
const DELAY_MS_MAX = 2 ** 31 - 1;

export const globalSeams: ClientSeams = {
  fetch: (url, init) => fetch(url, init),
  clock: {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    schedule(delayMs, run) {
      const handle = setTimeout(run, Math.min(Math.max(0, delayMs), DELAY_MS_MAX));
      return { cancel: () => clearTimeout(handle) };
    },
  },
  random: { fraction: () => Math.random() },
};

/** Resolves after `delayMs`; rejects with the signal's reason as soon as it aborts. */
export function pause(clock: ClientClock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const abort = () => {
      timer.cancel();
      reject(signal?.reason);
    };
    const timer = clock.schedule(delayMs, () => {
      signal?.removeEventListener("abort", abort);
      resolve();
    });
    signal?.addEventListener("abort", abort, { once: true });
  });
}
