/**
 * The pace of retries: doubles from `minMs` to `maxMs`, and half of each wait is chance, so that those who
 * failed together do not come back together.
 */

/** The part of `Random` that a pace needs; clients have no more. */
export interface Chance {
  /** Uniform in [0, 1). */
  fraction(): number;
}

/** Milliseconds to wait before retry number `attempt`, from 1. In [half, all] of `minMs * 2^(attempt - 1)`, cut to `maxMs`. */
export function backOffMs(random: Chance, attempt: number, minMs: number, maxMs: number): number {
  const wholeMs = Math.min(maxMs, minMs * 2 ** Math.min(attempt - 1, 30));
  return wholeMs * (0.5 + random.fraction() / 2);
}
