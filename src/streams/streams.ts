/**
 * The streams of one node: `StreamService` over the sessions, the engine and the metadata log.
 *
 * A delete, a trim, an expiry and a release change ownership or contents by a command. From the moment
 * it is proposed the session is frozen: requests wait, bounded, until this node has applied the outcome,
 * so that nothing is answered that the command may already have made untrue (DESIGN 4).
 */
import type { Engine } from "../engine/engine.ts";
import type { ProducerState } from "../engine/tail-state.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { WAITERS_MAX } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { type LoopFigures, LoopRecord } from "../lib/loop-record.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { Command, Outcome } from "../metadata/command.ts";
import type { StreamEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import { notFound, SessionTable, settle, unavailable } from "./session-table.ts";
import { StreamCreator } from "./stream-creator.ts";
import { deadlineAfter, StreamExpiry } from "./stream-expiry.ts";
import type { StreamIds } from "./stream-ids.ts";
import type {
  AppendRequest,
  AppendResult,
  CreateRequest,
  CreateResult,
  ListItem,
  ListRequest,
  ListResult,
  MaybePromise,
  ReadPage,
  ReadRequest,
  StreamInfo,
  StreamService,
  Waiter,
  WaitOutcome,
} from "./stream-service.ts";
import type { StreamSession } from "./stream-session.ts";

/** Between two looks for idle sessions. */
const SWEEP_MS = 10_000;

export interface StreamsComponents {
  readonly clock: Clock;
  readonly log: Logger;
  readonly metadata: Metadata;
  readonly engine: Engine;
  readonly ids: StreamIds;
  /** Whether streams of this registration are served here: this node's own, or one that it recovers under a lock. */
  readonly isOwn: (registration: RegistrationName, streamId: number) => boolean;
}

/** A stream in use on this node. */
export interface SessionFigures {
  /** Durable tail. */
  readonly nextOffset: number;
  readonly isClosed: boolean;
  /** By the database's clock; null: never expires. */
  readonly deadlineMs: number | null;
  /** Live reads that wait for records. */
  readonly waiterCount: number;
  /** By producer id, appends that are not yet durable included. */
  readonly producers: ReadonlyMap<string, ProducerState>;
}

export class Streams implements StreamService {
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #metadata: Metadata;
  readonly #engine: Engine;
  readonly #table: SessionTable;
  readonly #expiry: StreamExpiry;
  readonly #creator: StreamCreator;
  readonly #sweeps: LoopRecord;
  readonly #isOwn: (registration: RegistrationName, streamId: number) => boolean;
  #waiterCount = 0;
  #sweepTimer: Timer | null = null;
  #endApplied: (() => void) | null = null;
  #isStopped = false;
  #isAbandoned = false;

  constructor(components: StreamsComponents) {
    const { clock, log, metadata, engine, ids, isOwn } = components;
    this.#clock = clock;
    this.#log = log;
    this.#metadata = metadata;
    this.#engine = engine;
    this.#isOwn = isOwn;
    this.#table = new SessionTable(clock, metadata, engine, isOwn, {
      opened: (session) => this.#opened(session),
      waitEnded: (session) => this.#waitEnded(session),
      dropped: (session) => {
        if (session.entry.settings.ttlSeconds !== null && session.deadlineMs !== null)
          this.#expiry.keep(session.streamId, session.deadlineMs);
      },
      expire: (session) => this.#expire(session),
    });
    this.#expiry = new StreamExpiry(clock, metadata, {
      deadlineMs: (streamId) => this.#deadlineMs(streamId),
      expire: (streamId) => this.#expireById(streamId),
      failed: (error) => this.#log.error("looking for streams that are due failed", { error }),
    });
    this.#sweeps = new LoopRecord("session_sweep", SWEEP_MS, clock);
    this.#creator = new StreamCreator({ clock, metadata, engine, table: this.#table, ids });
  }

  /** Whether the stream is in use here, so that no other node owns it. */
  isInUse(name: string): boolean {
    return this.#table.byName(name) !== undefined;
  }

  /** Sessions in use. */
  get sessionCount(): number {
    return this.#table.size;
  }

  get waiterCount(): number {
    return this.#waiterCount;
  }

  /** Streams whose deadlines are kept in mind here. */
  get watchedCount(): number {
    return this.#expiry.size;
  }

  /** What this node serves of a stream now, for operators: opens nothing, is no use of it, and never waits. Null where it is not in use here. */
  inspect(streamId: number): SessionFigures | null {
    const session = this.#table.byId(streamId);
    if (session === undefined) return null;
    const { deadlineMs, isDurablyClosed, waiterCount, tail, log } = session;
    return { nextOffset: log.durableOffset, isClosed: isDurablyClosed, deadlineMs, waiterCount, producers: tail.producers };
  }

  /** When a stream expires, as far as this node knows: touches of a stream that another node owns are not among it. */
  deadlineOf(entry: StreamEntry): number | null {
    const session = this.#table.byId(entry.streamId);
    if (session !== undefined) return session.deadlineMs;
    return this.#expiry.kept(entry.streamId) ?? this.#metadata.view.unownedDeadlineMs(entry);
  }

  get loops(): readonly LoopFigures[] {
    return [this.#expiry.record, this.#sweeps];
  }

  /** Begins to expire and to drop idle sessions; this node's registration stands. */
  start(): void {
    const { view } = this.#metadata;
    for (const entry of view.streams()) {
      // Most streams have no deadline, and there may be a million of them.
      const deadlineMs = entry.isDeleted ? null : view.unownedDeadlineMs(entry);
      if (deadlineMs !== null && this.#isOurs(entry)) this.#expiry.watch(entry.streamId, deadlineMs);
    }
    this.#endApplied = this.#metadata.onApplied((commands, outcomes) => this.#noteApplied(commands, outcomes));
    this.#expiry.start();
    this.#scheduleSweep();
  }

  stop(): void {
    this.#isStopped = true;
    this.#endApplied?.();
    this.#expiry.stop();
    this.#sweepTimer?.cancel();
  }

  /** Answers nothing from here on, waiting reads included: what this node knows may be untrue already (FAULTS A4). */
  abandon(): void {
    this.stop();
    this.#isAbandoned = true;
    for (const session of this.#table.sessions()) session.endWaits("moved");
  }

  /** Deadlines that touches moved beyond what is stored, for the end of this registration. */
  *movedDeadlines(): Generator<{ readonly streamId: number; readonly deadlineMs: number }> {
    for (const { streamId, deadlineMs, entry } of this.#table.sessions()) {
      if (entry.settings.ttlSeconds !== null && deadlineMs !== null) yield { streamId, deadlineMs };
    }
    yield* this.#expiry.keptDeadlines();
  }

  create(request: CreateRequest): Promise<CreateResult> {
    return this.#creator.create(request);
  }

  append(request: AppendRequest): Promise<AppendResult> {
    // Duplicates too: while this node cannot write, what it knows may not be durable yet.
    if (!this.#engine.isStarted) throw unavailable("this node cannot take appends yet");
    return this.#use(request.name, (session) => {
      this.#touch(session);
      return session.append(request);
    });
  }

  async trim(name: string, offset: bigint): Promise<{ readonly startOffset: number }> {
    const { session, change } = await this.#use(name, (session) => {
      this.#touch(session);
      const durableTail = session.log.durableOffset;
      const startOffset = offset < BigInt(durableTail) ? Number(offset) : durableTail;
      if (startOffset <= session.entry.startOffset) return { session, change: null };
      return { session, change: this.#change(session, { type: "trim_stream", streamId: session.streamId, startOffset }) };
    });
    if (change === null) return { startOffset: session.entry.startOffset };
    const outcome = await change;
    if (!outcome.applied) throw outcome.code === "unknown_stream" ? notFound(name) : unavailable(`stream ${name} cannot be trimmed now`);
    return { startOffset: outcome.facts.startOffset ?? session.entry.startOffset };
  }

  async delete(name: string): Promise<void> {
    const outcome = await this.#use(name, (session) => this.#change(session, { type: "delete_stream", streamId: session.streamId }));
    if (!outcome.applied) throw outcome.code === "unknown_stream" ? notFound(name) : unavailable(`stream ${name} cannot be deleted now`);
  }

  head(name: string): MaybePromise<StreamInfo> {
    return this.#use(name, (session) => session.info());
  }

  read(request: ReadRequest): MaybePromise<ReadPage> {
    return this.#use(request.name, (session) => {
      this.#touch(session);
      return session.read(request);
    });
  }

  /** Runs `run` with the session that serves `name`, at a moment when it is not frozen; at once where it is in use. */
  #use<T>(name: string, run: (session: StreamSession) => T): T | Promise<Awaited<T>>;
  #use<T>(name: string, run: (session: StreamSession) => T): unknown {
    if (this.#isAbandoned) throw unavailable("this node is stopping");
    const ready = this.#table.ready(name);
    if (!(ready instanceof Promise)) return run(ready);
    return ready.then((session) => {
      const isUsable = !this.#isAbandoned && session.frozen === null && this.#table.byId(session.streamId) === session;
      return isUsable ? run(session) : this.#use(name, run);
    });
  }

  async wait(streamId: number, offset: number, timeoutMs: number, signal: AbortSignal | null): Promise<WaitOutcome> {
    if (this.#isAbandoned) return "moved";
    const session = this.#table.byId(streamId) ?? (await this.#reopened(streamId));
    if (session === null) return this.#metadata.view.streamById(streamId)?.isDeleted === false ? "moved" : "deleted";
    // It may have come while the session was opened, and would wake nobody who is parked now.
    if (this.#isAbandoned) return "moved";
    const outcome = session.outcomeAt(offset);
    if (outcome !== null) return outcome;
    this.#countWaiter();
    return session.waiters.wait(offset, timeoutMs, signal, this.#clock);
  }

  park(streamId: number, waiter: Waiter): boolean {
    const session = this.#isAbandoned ? undefined : this.#table.byId(streamId);
    if (session === undefined || session.outcomeAt(waiter.offset) !== null) return false;
    this.#countWaiter();
    session.waiters.add(waiter);
    return true;
  }

  unpark(streamId: number, waiter: Waiter): void {
    this.#table.byId(streamId)?.waiters.remove(waiter);
  }

  #countWaiter(): void {
    if (this.#waiterCount >= WAITERS_MAX) throw unavailable(`${WAITERS_MAX} live reads wait on this node, which is its limit`);
    this.#waiterCount += 1;
  }

  #waitEnded(session: StreamSession): void {
    this.#waiterCount -= 1;
    session.lastUsedMs = this.#clock.monotonicMs();
    this.#touch(session);
  }

  list(request: ListRequest): ListResult {
    const items: ListItem[] = [];
    for (let after = request.after; ; ) {
      const entries = this.#metadata.view.listStreams(request.prefix, after, request.limit + 1);
      for (const entry of entries) {
        if (this.#isOver(entry)) continue;
        if (items.length === request.limit) return { items, hasMore: true };
        items.push(this.#item(entry));
      }
      const last = entries.at(-1);
      if (last === undefined || entries.length <= request.limit) return { items, hasMore: false };
      after = last.name;
    }
  }

  #item(entry: StreamEntry): ListItem {
    const session = this.#table.byId(entry.streamId);
    return {
      name: entry.name,
      settings: entry.settings,
      isClosed: session?.isDurablyClosed ?? entry.isClosed,
      startOffset: session === undefined ? null : session.entry.startOffset,
      nextOffset: session === undefined ? null : session.log.durableOffset,
    };
  }

  /** Past its deadline and not yet removed, as far as this node can tell: only its owner knows a deadline that touches move. */
  #isOver(entry: StreamEntry): boolean {
    const { view, isDatabaseClockSteady } = this.#metadata;
    const session = this.#table.byId(entry.streamId);
    if (session !== undefined) return this.#table.isDue(session);
    if (!isDatabaseClockSteady) return false;
    if (entry.settings.expiresAtMs === null && view.ownerOf(entry) !== null && !this.#isOurs(entry)) return false;
    const deadlineMs = this.#expiry.kept(entry.streamId) ?? view.unownedDeadlineMs(entry);
    return deadlineMs !== null && this.#metadata.databaseNowMs() >= deadlineMs;
  }

  /** The session of a stream that a reader was just told of and that was dropped since. */
  async #reopened(streamId: number): Promise<StreamSession | null> {
    const entry = this.#metadata.view.streamById(streamId);
    if (entry === null || entry.isDeleted) return null;
    const session = await this.#table.ready(entry.name);
    return session.streamId === streamId ? session : null;
  }

  #isOurs(entry: StreamEntry): boolean {
    const ownership = this.#metadata.view.ownerOf(entry);
    return ownership !== null && this.#isOwn(ownership.owner.name, entry.streamId);
  }

  /** An append or a read renews a sliding deadline; none shortens it, also not where the database's clock went back. */
  #touch(session: StreamSession): void {
    const { ttlSeconds } = session.entry.settings;
    if (ttlSeconds === null) return;
    session.deadlineMs = Math.max(session.deadlineMs ?? 0, deadlineAfter(this.#metadata.databaseNowMs(), ttlSeconds));
  }

  /**
   * Proposes a command that may take the stream away or change what is read of it, with the session
   * frozen until the outcome is applied here, however long that takes; the caller waits a bounded time.
   */
  #change(session: StreamSession, command: Command): Promise<Outcome> {
    const proposal = this.#metadata.propose(command);
    const frozen = proposal.outcome.then(
      () => this.#refresh(session),
      (error: unknown) => {
        // Certainly not in the log: nothing changed. Else the outcome is open, and the session stays frozen for good.
        if (isPicoError(error, "unavailable")) this.#refresh(session);
        else return new Promise<void>(() => {});
      },
    );
    void frozen.then(() => {
      if (session.frozen === frozen) session.frozen = null;
    });
    session.frozen = frozen;
    return settle(this.#clock, proposal, session.entry.name);
  }

  /** Takes over what the view says of the stream now. */
  #refresh(session: StreamSession): void {
    const entry = this.#metadata.view.streamById(session.streamId);
    if (entry !== null && !entry.isDeleted && this.#isOurs(entry)) {
      session.entry = entry;
      return;
    }
    this.#table.remove(session, entry === null || entry.isDeleted ? "deleted" : "moved");
    this.#expiry.forget(session.streamId);
  }

  /** What becomes this node's is watched from the command on, whether its request still waits or anybody ever uses it. */
  #noteApplied(commands: readonly Command[], outcomes: readonly Outcome[]): void {
    for (const [at, command] of commands.entries()) {
      if (outcomes[at]?.applied !== true || (command.type !== "create_stream" && command.type !== "acquire_stream")) continue;
      const deadlineMs = this.#deadlineMs(command.streamId);
      if (deadlineMs !== null) this.#expiry.watch(command.streamId, deadlineMs);
    }
  }

  /** A session goes on with the deadline that touches of an earlier one moved. */
  #opened(session: StreamSession): void {
    session.deadlineMs = this.#expiry.takeKept(session.streamId) ?? this.#metadata.view.unownedDeadlineMs(session.entry);
    if (session.deadlineMs !== null) this.#expiry.watch(session.streamId, session.deadlineMs);
  }

  /** The deadline that holds for a stream this node owns; live readers keep a sliding one alive. */
  #deadlineMs(streamId: number): number | null {
    const session = this.#table.byId(streamId);
    if (session !== undefined) {
      if (session.waiterCount > 0) this.#touch(session);
      return session.deadlineMs;
    }
    const entry = this.#metadata.view.streamById(streamId);
    if (entry === null || entry.isDeleted || !this.#isOurs(entry)) {
      this.#expiry.forget(streamId);
      return null;
    }
    return this.#expiry.kept(streamId) ?? this.#metadata.view.unownedDeadlineMs(entry);
  }

  async #expireById(streamId: number): Promise<void> {
    const session = this.#table.byId(streamId);
    if (session !== undefined) {
      await this.#expire(session);
      return;
    }
    const deadlineMs = this.#deadlineMs(streamId);
    // One that is being opened is asked once it is.
    if (deadlineMs === null || this.#table.isNeeded(streamId)) return;
    const { outcome } = this.#metadata.propose({ type: "expire_stream", streamId, deadlineMs });
    this.#table.withhold(streamId, outcome);
    await outcome.catch((error) => this.#log.debug("a stream that is due could not be removed", { streamId, error }));
  }

  /** True: by the database's time it is not due. */
  async #expire(session: StreamSession): Promise<boolean> {
    if (session.frozen !== null) {
      await session.frozen;
      return false;
    }
    const { deadlineMs } = session;
    if (deadlineMs === null) return true;
    try {
      const outcome = await this.#change(session, { type: "expire_stream", streamId: session.streamId, deadlineMs });
      if (outcome.applied || outcome.code !== "not_due") return false;
      // What apply goes by may be later than what this session began with: its owner before may have ended since.
      session.deadlineMs = Math.max(deadlineMs, this.#metadata.view.unownedDeadlineMs(session.entry) ?? 0);
      return true;
    } catch (error) {
      if (!(error instanceof PicoError)) throw error;
      this.#log.debug("a stream that is due could not be removed", { stream: session.entry.name, error });
      return false;
    }
  }

  #scheduleSweep(): void {
    if (this.#isStopped) return;
    this.#sweepTimer = this.#clock.schedule(SWEEP_MS, () => {
      this.#table.sweep();
      this.#sweeps.succeeded();
      this.#scheduleSweep();
    });
  }
}
