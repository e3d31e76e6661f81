/**
 * The streams in use on this node, by name and by id: opens a session on first use (acquiring the
 * stream where nobody owns it), and drops those that are idle.
 *
 * Invariants:
 * - A stream has at most one session, and only while this node owns it: by its registration, or by one
 *   that it recovers and whose WAL only it can write.
 * - A session is dropped only when the committed WAL position covers its last entry, so that the tail
 *   state is in a data object before it leaves memory.
 */
import type { Engine } from "../engine/engine.ts";
import { TailFold } from "../engine/tail-fold.ts";
import type { TailState } from "../engine/tail-state.ts";
import { emptyTailState } from "../engine/tail-state-format.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { PROPOSAL_WAIT_MS, SESSION_IDLE_MS } from "../lib/limits.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { Outcome } from "../metadata/command.ts";
import type { StreamEntry } from "../metadata/entries.ts";
import type { Metadata, Proposal } from "../metadata/metadata.ts";
import type { MaybePromise } from "./stream-service.ts";
import { StreamSession } from "./stream-session.ts";

/** What the table tells its owner. */
export interface SessionTableEvents {
  /** A session was opened; it has no deadline yet. */
  opened(session: StreamSession): void;
  /** A read that was parked in a session is parked no more. */
  waitEnded(session: StreamSession): void;
  /** An idle session was dropped; the stream is still owned. */
  dropped(session: StreamSession): void;
  /**
   * Proposes the removal of a stream that is past its deadline. Resolves with its outcome applied, or open
   * for too long; true: by the database's time the stream is not due, so it is to be served.
   */
  expire(session: StreamSession): Promise<boolean>;
}

export class SessionTable {
  readonly #byName = new Map<string, StreamSession>();
  readonly #byId = new Map<number, StreamSession>();
  /** Streams being acquired or loaded: once, however many requests wait for it. */
  readonly #opening = new Map<number, Promise<void>>();
  /** Streams without a session whose removal is proposed, until its outcome is applied here. */
  readonly #removals = new Map<number, Promise<void>>();

  constructor(
    private readonly clock: Clock,
    private readonly metadata: Metadata,
    private readonly engine: Engine,
    private readonly isOwn: (registration: RegistrationName, streamId: number) => boolean,
    private readonly events: SessionTableEvents,
  ) {}

  get size(): number {
    return this.#byId.size;
  }

  byId(streamId: number): StreamSession | undefined {
    return this.#byId.get(streamId);
  }

  byName(name: string): StreamSession | undefined {
    return this.#byName.get(name);
  }

  sessions(): Iterable<StreamSession> {
    return this.#byId.values();
  }

  /** The session that serves `name` now; waits out a freeze, opens and acquires as needed. */
  ready(name: string): MaybePromise<StreamSession> {
    const session = this.#byName.get(name);
    if (session !== undefined && session.frozen === null && !this.isDue(session)) {
      session.lastUsedMs = this.clock.monotonicMs();
      return session;
    }
    return this.#readySlowly(name);
  }

  /** Whether the stream is in use, or will be in a moment. */
  isNeeded(streamId: number): boolean {
    return this.#byId.has(streamId) || this.#opening.has(streamId);
  }

  /** Until `applied` settles no session is opened for the stream, which has none. */
  withhold(streamId: number, applied: Promise<unknown>): void {
    const lift = () => {
      if (this.#removals.get(streamId) === removal) this.#removals.delete(streamId);
    };
    const removal = applied.then(lift, lift);
    this.#removals.set(streamId, removal);
  }

  /** Past its deadline, by the database's clock. Live readers renew a sliding one for as long as they wait. */
  isDue(session: StreamSession): boolean {
    if (session.deadlineMs === null || this.metadata.registration === null) return false;
    if (session.waiterCount > 0 && session.entry.settings.ttlSeconds !== null) return false;
    return this.metadata.isDatabaseClockSteady && this.metadata.databaseNowMs() >= session.deadlineMs;
  }

  async #readySlowly(name: string): Promise<StreamSession> {
    const giveUpAtMs = this.clock.monotonicMs() + PROPOSAL_WAIT_MS;
    let isCaughtUp = false;
    // Less than a timer can wait is nothing.
    while (giveUpAtMs - this.clock.monotonicMs() >= 1) {
      const session = this.#byName.get(name);
      if (session !== undefined) {
        if (session.frozen !== null) await this.#withinTime(session.frozen, giveUpAtMs);
        else if (!this.isDue(session)) return this.#used(session);
        else if (await this.events.expire(session)) {
          if (this.#byName.get(name) === session && session.frozen === null) return this.#used(session);
        } else if (this.#byName.get(name) === session && this.isDue(session)) {
          // Also where it is frozen, by others who try the same: of several that wait each would ask again, without end.
          throw unavailable(`stream ${name} is past its deadline and cannot be removed now`);
        }
        continue;
      }
      const entry = this.metadata.view.streamByName(name);
      if (entry === null) {
        if (isCaughtUp) throw notFound(name);
        await this.metadata.catchUp();
        isCaughtUp = true;
        continue;
      }
      if (entry.isDeleted) throw new PicoError("gone", `stream ${name} is deleted; forks still need its records`, { name });
      const removal = this.#removals.get(entry.streamId);
      await (removal === undefined ? this.#open(entry) : this.#withinTime(removal, giveUpAtMs));
    }
    throw unavailable(`stream ${name} waits for the database`);
  }

  #used(session: StreamSession): StreamSession {
    session.lastUsedMs = this.clock.monotonicMs();
    return session;
  }

  /** Brings the stream a step nearer to a session; the caller looks again. */
  #open(entry: StreamEntry): Promise<void> {
    const { streamId } = entry;
    let opening = this.#opening.get(streamId);
    if (opening === undefined) {
      opening = this.#acquireOrLoad(entry).finally(() => this.#opening.delete(streamId));
      this.#opening.set(streamId, opening);
    }
    return opening;
  }

  async #acquireOrLoad(entry: StreamEntry): Promise<void> {
    const ownership = this.metadata.view.ownerOf(entry);
    if (ownership === null) return this.#acquire(entry);
    if (this.isOwn(ownership.owner.name, entry.streamId)) return this.#load(entry);
    const where = ownership.recovering ? "is in recovery" : `is owned by node ${ownership.owner.name.nodeId}`;
    throw unavailable(`stream ${entry.name} ${where}`);
  }

  async #acquire(entry: StreamEntry): Promise<void> {
    const outcome = await settle(this.clock, this.metadata.propose({ type: "acquire_stream", streamId: entry.streamId }), entry.name);
    if (outcome.applied) return;
    // Else it was acquired, removed or expired meanwhile; the view tells which.
    if (outcome.code === "owner_in_recovery") throw unavailable(`stream ${entry.name} is in recovery`);
    if (outcome.code === "transfer_pending") throw unavailable(`stream ${entry.name} is on its way to another node`);
  }

  async #load(entry: StreamEntry): Promise<void> {
    const stored = (await this.engine.tailState(entry.streamId)) ?? (await initialTailState(this.engine, entry));
    // Behind the last await: a stream that went meanwhile gets no session, for nobody would end it.
    const current = this.metadata.view.streamById(entry.streamId);
    if (current === null || current.isDeleted) return;
    const ownership = this.metadata.view.ownerOf(current);
    if (ownership !== null && this.isOwn(ownership.owner.name, entry.streamId)) this.#adopt(current, stored);
  }

  #adopt(entry: StreamEntry, tailState: TailState): void {
    const log = this.engine.openLog(entry.streamId, tailState);
    const session = new StreamSession(entry, log, new TailFold(tailState), this.engine, this.clock, (ended) =>
      this.events.waitEnded(ended),
    );
    session.lastUsedMs = this.clock.monotonicMs();
    this.#byName.set(entry.name, session);
    this.#byId.set(entry.streamId, session);
    this.events.opened(session);
  }

  /** Forgets a stream that is deleted, expired or no longer this node's. */
  remove(session: StreamSession, outcome: "deleted" | "moved"): void {
    this.#forget(session);
    session.endWaits(outcome);
  }

  /** Whether the session's tail state is in a data object, so that it may leave memory. */
  canDrop(session: StreamSession): boolean {
    return session.isSettled && session.log.lastNumber <= this.engine.committedNumber;
  }

  /** Drops idle sessions. */
  sweep(): void {
    const idleSinceMs = this.clock.monotonicMs() - SESSION_IDLE_MS;
    for (const session of this.#byId.values()) {
      session.releasePage();
      if (session.lastUsedMs > idleSinceMs || session.waiterCount > 0 || session.frozen !== null) continue;
      if (!this.canDrop(session)) continue;
      this.#forget(session);
      this.events.dropped(session);
    }
  }

  #forget(session: StreamSession): void {
    if (this.#byName.get(session.entry.name) === session) this.#byName.delete(session.entry.name);
    this.#byId.delete(session.streamId);
    session.log.isHeld = false;
    this.engine.releaseLog(session.log);
  }

  async #withinTime(promise: Promise<void>, giveUpAtMs: number): Promise<void> {
    const done = new AbortController();
    const leftMs = giveUpAtMs - this.clock.monotonicMs();
    try {
      await Promise.race([promise, sleep(this.clock, leftMs, done.signal)]);
    } finally {
      done.abort();
    }
  }
}

/**
 * Of a stream of which nothing was ever written. A fork's own records begin at its fork offset, and not
 * before the time of the record that it inherits last.
 */
export async function initialTailState(engine: Engine, entry: StreamEntry): Promise<TailState> {
  if (entry.fork === null) return emptyTailState();
  const { offset } = entry.fork;
  const lastTimestampMs = offset > entry.startOffset ? await engine.timestampAt(entry, offset - 1) : 0;
  return { ...emptyTailState(offset), lastTimestampMs };
}

/** The outcome of a proposal, or `unavailable` after a bounded wait; a proposal not yet sent is taken back then. */
export async function settle(clock: Clock, proposal: Proposal, name: string): Promise<Outcome> {
  const done = new AbortController();
  const late = sleep(clock, PROPOSAL_WAIT_MS, done.signal).then(() => null);
  const outcome = await Promise.race([proposal.outcome, late]).finally(() => done.abort());
  if (outcome !== null) return outcome;
  if (proposal.withdraw()) {
    proposal.outcome.catch(() => {});
    throw unavailable(`stream ${name} waits for the database; nothing was changed`);
  }
  throw unavailable(`stream ${name} waits for the database; the outcome is open`);
}

export function notFound(name: string): PicoError {
  return new PicoError("not_found", `there is no stream ${name}`, { name });
}

export function unavailable(reason: string): PicoError {
  return new PicoError("unavailable", `${reason}; try again`, { retryAfterSeconds: 1 });
}
