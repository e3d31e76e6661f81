/**
 * Truncation of the command log below the stored snapshot. Rows that are young, or that a live node has
 * not applied, stay, so that nobody who lives has to start again; beyond a hard cap they go too. The row
 * at the snapshot's own index always stays: it proves to a loader that log and snapshot belong together.
 */
import type { Clock } from "../lib/clock.ts";
import { HEARTBEAT_LIVE_MS, LOG_KEEP_MS, LOG_ROWS_MAX } from "../lib/limits.ts";
import { formatRegistration } from "../lib/registration.ts";
import type { Heartbeat, SqlStore } from "../sql/sql-store.ts";
import type { View } from "./view.ts";

interface Seen {
  readonly counter: number;
  /** Monotonic time at which this counter was first seen. */
  readonly sinceMs: number;
}

export class LogTruncation {
  readonly #store: SqlStore;
  readonly #view: View;
  readonly #clock: Clock;
  #seen = new Map<string, Seen>();

  constructor(options: { readonly store: SqlStore; readonly view: View; readonly clock: Clock }) {
    this.#store = options.store;
    this.#view = options.view;
    this.#clock = options.clock;
  }

  /** Removes what may go; returns how many rows went. Only a snapshot that is certainly stored may be named. */
  async truncate(storedIndex: number, span: { readonly first: number; readonly head: number }): Promise<number> {
    const applied = this.#appliedByAll(await this.#store.readHeartbeats());
    const upTo = storedIndex - 1;
    if (upTo < span.first) return 0;
    if (span.head - span.first >= LOG_ROWS_MAX) return this.#store.truncateLog(upTo, 0);
    return this.#store.truncateLog(Math.min(upTo, applied), LOG_KEEP_MS);
  }

  /** The lowest index that any live node has applied. */
  #appliedByAll(heartbeats: readonly Heartbeat[]): number {
    const nowMs = this.#clock.monotonicMs();
    const seen = new Map<string, Seen>();
    let applied = this.#view.appliedIndex;
    for (const beat of heartbeats) {
      const key = formatRegistration(beat.registration);
      const before = this.#seen.get(key);
      const current = before?.counter === beat.counter ? before : { counter: beat.counter, sinceMs: nowMs };
      seen.set(key, current);
      const isLive = this.#view.registration(beat.registration)?.state === "live" && nowMs - current.sinceMs < HEARTBEAT_LIVE_MS;
      if (isLive) applied = Math.min(applied, beat.appliedIndex);
    }
    this.#seen = seen;
    return applied;
  }
}
