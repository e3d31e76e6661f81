/**
 * Expiry of the streams that this node owns. Touches cost nothing: a session's deadline moves in memory,
 * and the heap only says when to look again. A stream that is due is removed by a command, which apply
 * checks against the database's time; nothing else decides that a stream is over (FAULTS C1, E2).
 */
import type { Clock, Timer } from "../lib/clock.ts";
import { OFFSET_MAX } from "../lib/limits.ts";
import { LoopRecord } from "../lib/loop-record.ts";
import type { Metadata } from "../metadata/metadata.ts";
import { DeadlineHeap } from "./deadline-heap.ts";

/** Between two looks at the heap. */
const TICK_MS = 250;
/** Streams removed per look, so that a look stays short. */
const EXPIRIES_PER_TICK_MAX = 64;
/** Entries of forgotten streams that the heap may hold beyond as many as it watches. */
const HEAP_LEFTOVERS_MAX = 1024;

/** now + TTL, cut to what a double holds. */
export function deadlineAfter(nowMs: number, ttlSeconds: bigint): number {
  const ttlMs = ttlSeconds * 1000n;
  return ttlMs > BigInt(OFFSET_MAX - nowMs) ? OFFSET_MAX : nowMs + Number(ttlMs);
}

export interface ExpiryTarget {
  /** The deadline that holds now; null: it does not expire, or is not this node's any more. */
  deadlineMs(streamId: number): number | null;
  /** Removes a stream that is due. Never rejects. */
  expire(streamId: number): Promise<void>;
  /** Told what made a look at the heap fail. */
  failed(error: unknown): void;
}

export class StreamExpiry {
  readonly #heap = new DeadlineHeap();
  /** Streams with an entry in the heap: at most one each. */
  readonly #watched = new Set<number>();
  /** Deadlines that touches moved, of streams whose session was dropped since. */
  readonly #kept = new Map<number, number>();
  #timer: Timer | null = null;
  #isStopped = false;
  /** Of the looks at the heap; none succeeds while the database's clock jumps. */
  readonly record: LoopRecord;

  constructor(
    private readonly clock: Clock,
    private readonly metadata: Metadata,
    private readonly target: ExpiryTarget,
  ) {
    this.record = new LoopRecord("expiry", TICK_MS, clock);
  }

  start(): void {
    this.#schedule();
  }

  stop(): void {
    this.#isStopped = true;
    this.#timer?.cancel();
  }

  /** Begins to watch a stream; one already watched stays as it is. */
  watch(streamId: number, deadlineMs: number): void {
    if (this.#watched.has(streamId)) return;
    this.#watched.add(streamId);
    this.#heap.push({ atMs: deadlineMs, streamId });
  }

  /** Remembers the deadline of a stream that is in use no longer. */
  keep(streamId: number, deadlineMs: number): void {
    this.#kept.set(streamId, deadlineMs);
  }

  kept(streamId: number): number | null {
    return this.#kept.get(streamId) ?? null;
  }

  takeKept(streamId: number): number | null {
    const deadlineMs = this.kept(streamId);
    this.#kept.delete(streamId);
    return deadlineMs;
  }

  /** Lets go of a stream that is no longer this node's. */
  forget(streamId: number): void {
    this.#kept.delete(streamId);
    if (!this.#watched.delete(streamId)) return;
    // Its entry in the heap stays until it is due, which may be in years; so now and then they are all swept out.
    if (this.#heap.size > 2 * this.#watched.size + HEAP_LEFTOVERS_MAX) this.#heap.retain((entry) => this.#watched.has(entry.streamId));
  }

  /** Entries in the heap. */
  get size(): number {
    return this.#heap.size;
  }

  *keptDeadlines(): Generator<{ readonly streamId: number; readonly deadlineMs: number }> {
    for (const [streamId, deadlineMs] of this.#kept) yield { streamId, deadlineMs };
  }

  #schedule(): void {
    if (this.#isStopped) return;
    this.#timer = this.clock.schedule(TICK_MS, () => {
      void this.#tick()
        .catch((error) => {
          this.record.failed(error);
          this.target.failed(error);
        })
        .finally(() => this.#schedule());
    });
  }

  async #tick(): Promise<void> {
    // While the database's clock jumps, nothing can be said to be due.
    if (!this.metadata.isDatabaseClockSteady) return;
    const nowMs = this.metadata.databaseNowMs();
    const due: number[] = [];
    for (let looked = 0; looked < EXPIRIES_PER_TICK_MAX * 16 && due.length < EXPIRIES_PER_TICK_MAX; looked++) {
      const entry = this.#heap.popDue(nowMs);
      if (entry === null) break;
      if (!this.#watched.delete(entry.streamId)) continue;
      const deadlineMs = this.target.deadlineMs(entry.streamId);
      if (deadlineMs === null) continue;
      if (deadlineMs > nowMs) this.watch(entry.streamId, deadlineMs);
      else due.push(entry.streamId);
    }
    await Promise.all(due.map((streamId) => this.target.expire(streamId)));
    // One that could not be removed (database away, not due by its clock) is looked at again.
    for (const streamId of due) {
      const deadlineMs = this.target.deadlineMs(streamId);
      if (deadlineMs !== null) this.watch(streamId, Math.max(deadlineMs, nowMs + TICK_MS));
    }
    this.record.succeeded();
  }
}
