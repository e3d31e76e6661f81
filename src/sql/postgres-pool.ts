/**
 * The connections of one node to Postgres. A call has a connection for itself: where statements follow each other on
 * one, a heartbeat would wait behind an insert that waits for a lock.
 *
 * Invariants:
 * - At most `connectionsMax` sessions, those that connect included; what comes beyond waits in order, and is bounded.
 * - A call that waits for a session, or connects, has not begun: its failure is certain.
 * - A session that is over leaves the pool; whoever waits connects in its place.
 * - Behind one that gave no answer none is used that was idle: what silenced it did so to all, as a rule, and each would cost a call.
 */
import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { SQL_CALL_TIMEOUT_MS, SQL_CALLS_WAITING_MAX } from "../lib/limits.ts";
import { noAnswer, type PostgresOperation } from "./postgres-error.ts";
import { formatPostgresPlace, type PostgresPlace } from "./postgres-place.ts";
import { PostgresSession } from "./postgres-session.ts";

export interface PostgresPoolOptions {
  readonly place: PostgresPlace;
  readonly clock: Clock;
  readonly onSession: (session: PostgresSession) => void;
}

/** A session, or null for the place of one, which the waiter opens itself. */
type Grant = (session: PostgresSession | null) => void;

export class PostgresPool {
  readonly #options: PostgresPoolOptions;
  readonly #idle: PostgresSession[] = [];
  readonly #waiting = new Set<Grant>();
  /** Sessions that are idle, in use, or being opened. */
  #count = 0;
  #isClosed = false;
  /** Resolves when a closed pool has no session left. */
  readonly #drained = Promise.withResolvers<void>();

  constructor(options: PostgresPoolOptions) {
    this.#options = options;
  }

  /** Runs `work` on a session. `untilMs`: the monotonic time until which the call may take. */
  async run<Result>(operation: PostgresOperation, work: (session: PostgresSession, untilMs: number) => Promise<Result>): Promise<Result> {
    const untilMs = this.#options.clock.monotonicMs() + SQL_CALL_TIMEOUT_MS;
    const session = await this.#take(operation, untilMs);
    try {
      return await work(session, untilMs);
    } finally {
      this.#giveBack(session);
    }
  }

  /** Refuses further calls, waits for those under way, and closes the connections. */
  async close(): Promise<void> {
    if (!this.#isClosed) {
      this.#isClosed = true;
      for (const session of this.#idle.splice(0)) void this.#leave(session);
      if (this.#count === 0) this.#drained.resolve();
    }
    await this.#drained.promise;
  }

  async #take(operation: PostgresOperation, untilMs: number): Promise<PostgresSession> {
    const { place } = this.#options;
    if (this.#isClosed) throw new PicoError("database_failed", `${operation.name} refused: the database is closed`);
    for (let session = this.#idle.pop(); session !== undefined; session = this.#idle.pop()) {
      if (!session.isOver) return session;
      this.#count -= 1;
    }
    if (this.#count < place.connectionsMax) {
      this.#count += 1;
      return this.#open(untilMs);
    }
    if (this.#waiting.size >= SQL_CALLS_WAITING_MAX) {
      throw new PicoError("database_failed", `${operation.name} refused: ${SQL_CALLS_WAITING_MAX} calls wait for the database`);
    }
    const session = await this.#granted(operation, untilMs);
    return session !== null && !session.isOver ? session : this.#open(untilMs);
  }

  #granted(operation: PostgresOperation, untilMs: number): Promise<PostgresSession | null> {
    const { clock, place } = this.#options;
    return new Promise((resolve, reject) => {
      const grant: Grant = (session) => {
        timer.cancel();
        resolve(session);
      };
      const timer = clock.schedule(untilMs - clock.monotonicMs(), () => {
        this.#waiting.delete(grant);
        const why = `its ${place.connectionsMax} connections are all at work`;
        reject(noAnswer({ ...operation, mayCommit: false }, why, formatPostgresPlace(place)));
      });
      this.#waiting.add(grant);
    });
  }

  /** Takes the place that was counted for it. */
  async #open(untilMs: number): Promise<PostgresSession> {
    const { place, clock, onSession } = this.#options;
    try {
      const session = await PostgresSession.open({ place, clock, untilMs });
      onSession(session);
      return session;
    } catch (error) {
      this.#handOn(null);
      throw error;
    }
  }

  #giveBack(session: PostgresSession): void {
    if (session.isSilent) this.#dropIdle();
    this.#handOn(session.isOver ? null : session);
  }

  #dropIdle(): void {
    for (const session of this.#idle.splice(0)) {
      session.end();
      void this.#leave(session);
    }
  }

  #handOn(session: PostgresSession | null): void {
    const [next] = this.#waiting;
    if (next !== undefined) {
      this.#waiting.delete(next);
      next(session);
    } else if (session !== null && !this.#isClosed) {
      this.#idle.push(session);
    } else {
      void this.#leave(session);
    }
  }

  async #leave(session: PostgresSession | null): Promise<void> {
    await session?.close();
    this.#count -= 1;
    if (this.#isClosed && this.#count === 0) this.#drained.resolve();
  }
}
