import type { Clock } from "../lib/clock.ts";

/**
 * Settles as `work` does, unless `timeoutMs` pass first: then it rejects with what `expire` returns, and
 * the later result of `work` is dropped. `work` itself is not stopped.
 */
export function withDeadline<T>(clock: Clock, timeoutMs: number, work: Promise<T>, expire: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = clock.schedule(timeoutMs, () => reject(expire()));
    work.then(
      (value) => {
        timer.cancel();
        resolve(value);
      },
      (error: unknown) => {
        timer.cancel();
        reject(error);
      },
    );
  });
}
