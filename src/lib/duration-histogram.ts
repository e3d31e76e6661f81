/**
 * How often something took how long: counts in fixed buckets, from about a microsecond to half an hour.
 * Recording touches two numbers and one count, allocates nothing and never throws, so hot paths may do it.
 *
 * Each power of two is cut into 16 buckets: what is read back, a percentile or a maximum, is at most a
 * sixteenth above the truth. Powers of two of a millisecond are bounds of buckets, hence exact.
 */

/** Buckets are counted in these; 1024 of them are a millisecond. */
const UNITS_PER_MS = 1024;
const UNITS_MAX = 2 ** 31 - 1;
const BUCKETS = 448;

/** What happened between two looks at a histogram; the durations are null where nothing did. */
export interface DurationSpread {
  readonly count: number;
  readonly p50Ms: number | null;
  readonly p99Ms: number | null;
  readonly maxMs: number | null;
}

export class DurationHistogram {
  readonly #counts = new Float64Array(BUCKETS);
  #count = 0;
  #sumMs = 0;

  /** Durations recorded so far. */
  get count(): number {
    return this.#count;
  }

  get sumMs(): number {
    return this.#sumMs;
  }

  /** A negative duration, or none, counts as 0 (FAULTS A5). */
  record(durationMs: number): void {
    const ms = Number.isFinite(durationMs) ? Math.max(0, durationMs) : 0;
    const bucket = bucketOf(Math.min(Math.ceil(ms * UNITS_PER_MS) - 1, UNITS_MAX));
    this.#counts[bucket] = (this.#counts[bucket] ?? 0) + 1;
    this.#count += 1;
    this.#sumMs += ms;
  }

  /** How many took at most each of `boundsMs`, which rise and are powers of two. */
  cumulativeCounts(boundsMs: readonly number[]): number[] {
    let bucket = 0;
    let count = 0;
    return boundsMs.map((boundMs) => {
      for (; bucket < BUCKETS && upperMs(bucket) <= boundMs; bucket++) count += this.#counts[bucket] ?? 0;
      return count;
    });
  }

  /** A copy of the counts, for `DurationWindow`. */
  counts(): Float64Array {
    return this.#counts.slice();
  }
}

/** What was recorded since the last look. */
export class DurationWindow {
  #seen: Float64Array;

  constructor(private readonly histogram: DurationHistogram) {
    this.#seen = histogram.counts();
  }

  take(): DurationSpread {
    const counts = this.histogram.counts();
    const fresh = counts.map((count, bucket) => count - (this.#seen[bucket] ?? 0));
    this.#seen = counts;
    const count = fresh.reduce((sum, more) => sum + more, 0);
    const [p50Ms, p99Ms, maxMs] = [0.5, 0.99, 1].map((share) => valueAt(fresh, Math.ceil(count * share)));
    return { count, p50Ms: p50Ms ?? null, p99Ms: p99Ms ?? null, maxMs: maxMs ?? null };
  }
}

/** Upper bound of the bucket that holds the duration of this rank, from 1; null where there is none. */
function valueAt(counts: Float64Array, rank: number): number | null {
  if (rank < 1) return null;
  let seen = 0;
  for (const [bucket, count] of counts.entries()) {
    seen += count;
    if (seen >= rank) return upperMs(bucket);
  }
  return null;
}

/** Below 16 units a bucket is one unit; above, the highest five bits name it. */
function bucketOf(units: number): number {
  if (units < 16) return Math.max(0, units);
  const octave = 31 - Math.clz32(units);
  return ((octave - 3) << 4) + ((units >> (octave - 4)) & 15);
}

function upperMs(bucket: number): number {
  if (bucket < 16) return (bucket + 1) / UNITS_PER_MS;
  return (((bucket & 15) + 17) * 2 ** ((bucket >> 4) - 1)) / UNITS_PER_MS;
}
