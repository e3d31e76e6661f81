/**
 * What the node did lately: a sample every two seconds of what was appended, read, refused and failed in
 * between, for the last ten minutes. It counts in memory only, so an idle node stays idle.
 *
 * Samples are kept by the monotonic clock and dated when they are asked for: a wall clock that steps
 * moves them all and tears no hole.
 */
import type { Clock, Timer } from "../lib/clock.ts";
import { DurationHistogram, DurationWindow } from "../lib/duration-histogram.ts";
import { ACTIVITY_SAMPLE_MS, ACTIVITY_SAMPLES_MAX, EVENT_LOOP_PROBE_MS } from "../lib/limits.ts";
import type { Traffic } from "../protocol/traffic.ts";
import type { StreamFigures } from "../streams/counted-streams.ts";

/** What only grows. */
interface Counts {
  readonly appends: number;
  readonly appendRecords: number;
  readonly appendBytes: number;
  readonly reads: number;
  readonly readRecords: number;
  readonly readBytes: number;
  readonly refused: number;
  readonly failed: number;
}

/** Counts and durations since the sample before. Durations are null where nothing was measured. */
export interface ActivitySample extends Counts {
  /** End of the sample, by the wall clock. */
  readonly atMs: number;
  /** How long it is: more than the interval where the event loop stood still. */
  readonly spanMs: number;
  readonly appendP50Ms: number | null;
  readonly appendP99Ms: number | null;
  readonly appendMaxMs: number | null;
  readonly readP50Ms: number | null;
  readonly readP99Ms: number | null;
  readonly readMaxMs: number | null;
  /** The longest that a timer was late. */
  readonly eventLoopDelayMs: number;
}

/** Wall and monotonic clock drift apart by less than this before the samples are dated anew. */
const DRIFT_MS_MAX = 1000;

export class ActivitySampler {
  /** How late timers were, since the start. */
  readonly eventLoopDelays = new DurationHistogram();
  readonly #clock: Clock;
  readonly #streams: StreamFigures;
  readonly #traffic: readonly Traffic[];
  readonly #appends: DurationWindow;
  readonly #reads: DurationWindow;
  /** `atMs` is monotonic. Oldest first. */
  #samples: ActivitySample[] = [];
  /** As they stood at the end of the last sample. */
  #last: Counts;
  #sampledMs: number;
  #delayMaxMs = 0;
  /** Wall clock minus monotonic clock, as the samples are dated. */
  #offsetMs: number;
  #timer: Timer | null = null;

  constructor(clock: Clock, streams: StreamFigures, traffic: readonly Traffic[]) {
    this.#clock = clock;
    this.#streams = streams;
    this.#traffic = traffic;
    this.#appends = new DurationWindow(streams.appends);
    this.#reads = new DurationWindow(streams.reads);
    this.#last = this.#totals();
    this.#sampledMs = clock.monotonicMs();
    this.#offsetMs = clock.nowMs() - this.#sampledMs;
  }

  start(): void {
    this.#sampledMs = this.#clock.monotonicMs();
    this.#schedule();
  }

  stop(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  /** The wall clock as the samples are dated. */
  nowMs(): number {
    return this.toWallMs(this.#clock.monotonicMs());
  }

  /** When that was, by the wall clock; whole milliseconds. */
  toWallMs(monotonicMs: number): number {
    const offsetMs = this.#clock.nowMs() - this.#clock.monotonicMs();
    if (Math.abs(offsetMs - this.#offsetMs) > DRIFT_MS_MAX) this.#offsetMs = offsetMs;
    return Math.round(monotonicMs + this.#offsetMs);
  }

  /** Those that ended behind `sinceMs`; all of them where that lies in the future, as after a step of the clock. */
  samples(sinceMs: number | null): readonly ActivitySample[] {
    const afterMs = sinceMs === null || sinceMs > this.nowMs() ? Number.NEGATIVE_INFINITY : sinceMs;
    return this.#samples.map((sample) => ({ ...sample, atMs: this.toWallMs(sample.atMs) })).filter(({ atMs }) => atMs > afterMs);
  }

  #schedule(): void {
    const dueMs = this.#clock.monotonicMs() + EVENT_LOOP_PROBE_MS;
    this.#timer = this.#clock.schedule(EVENT_LOOP_PROBE_MS, () => {
      const nowMs = this.#clock.monotonicMs();
      const delayMs = Math.max(0, nowMs - dueMs);
      this.eventLoopDelays.record(delayMs);
      this.#delayMaxMs = Math.max(this.#delayMaxMs, delayMs);
      // A probe that comes a little early must not put the sample off by a whole probe.
      if (nowMs - this.#sampledMs >= ACTIVITY_SAMPLE_MS - EVENT_LOOP_PROBE_MS / 2) this.#sample(nowMs);
      this.#schedule();
    });
  }

  #sample(nowMs: number): void {
    const totals = this.#totals();
    const appends = this.#appends.take();
    const reads = this.#reads.take();
    this.#samples.push({
      atMs: nowMs,
      spanMs: nowMs - this.#sampledMs,
      ...differences(totals, this.#last),
      appendP50Ms: appends.p50Ms,
      appendP99Ms: appends.p99Ms,
      appendMaxMs: appends.maxMs,
      readP50Ms: reads.p50Ms,
      readP99Ms: reads.p99Ms,
      readMaxMs: reads.maxMs,
      eventLoopDelayMs: this.#delayMaxMs,
    });
    if (this.#samples.length > ACTIVITY_SAMPLES_MAX) this.#samples.shift();
    this.#last = totals;
    this.#sampledMs = nowMs;
    this.#delayMaxMs = 0;
  }

  #totals(): Counts {
    const { appendCount, appendRecords, appendBytes, readCount, readRecords, readBytes } = this.#streams;
    const refused = this.#traffic.reduce((sum, { overloadCount }) => sum + overloadCount, 0);
    const failed = this.#traffic.reduce((sum, { failureCount }) => sum + failureCount, 0);
    return { appends: appendCount, appendRecords, appendBytes, reads: readCount, readRecords, readBytes, refused, failed };
  }
}

function differences(now: Counts, before: Counts): Counts {
  return {
    appends: now.appends - before.appends,
    appendRecords: now.appendRecords - before.appendRecords,
    appendBytes: now.appendBytes - before.appendBytes,
    reads: now.reads - before.reads,
    readRecords: now.readRecords - before.readRecords,
    readBytes: now.readBytes - before.readBytes,
    refused: now.refused - before.refused,
    failed: now.failed - before.failed,
  };
}
