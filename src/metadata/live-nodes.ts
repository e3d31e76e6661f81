/**
 * Which nodes live, and how far all of them have applied the log: asked before log rows go, and before objects
 * leave the store. A node lives whose registration is neither fenced nor ended, and whose heartbeat counter
 * moved within the last minute by this node's monotonic clock; also for the first minute in which it is seen,
 * with a heartbeat or without one.
 */
import type { Clock } from "../lib/clock.ts";
import { HEARTBEAT_LIVE_MS } from "../lib/limits.ts";
import { formatRegistration } from "../lib/registration.ts";
import type { Heartbeat } from "../sql/sql-store.ts";
import type { View } from "./view.ts";

interface Seen {
  /** -1: no heartbeat yet. */
  readonly counter: number;
  /** Monotonic time at which this counter was first seen. */
  readonly sinceMs: number;
}

export class LiveNodes {
  readonly #view: View;
  readonly #clock: Pick<Clock, "monotonicMs">;
  #seen = new Map<string, Seen>();

  constructor(view: View, clock: Pick<Clock, "monotonicMs">) {
    this.#view = view;
    this.#clock = clock;
  }

  /** The lowest index that any live node has applied, by heartbeats that were just read; 0 where one has not said yet. */
  appliedByAll(heartbeats: readonly Heartbeat[]): number {
    const nowMs = this.#clock.monotonicMs();
    const beats = new Map(heartbeats.map((beat) => [formatRegistration(beat.registration), beat]));
    const seen = new Map<string, Seen>();
    let applied = this.#view.appliedIndex;
    for (const { name, state } of this.#view.registrations()) {
      if (state !== "live") continue;
      const key = formatRegistration(name);
      const beat = beats.get(key);
      const counter = beat?.counter ?? -1;
      const before = this.#seen.get(key);
      const current = before?.counter === counter ? before : { counter, sinceMs: nowMs };
      seen.set(key, current);
      if (nowMs - current.sinceMs < HEARTBEAT_LIVE_MS) applied = Math.min(applied, beat?.appliedIndex ?? 0);
    }
    this.#seen = seen;
    return applied;
  }
}
