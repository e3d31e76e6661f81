/**
 * The metadata log of one node: state, tailer and membership, joined.
 *
 * Life: `open` loads the snapshot and the log behind it; `register` begins this node's registration;
 * `start` begins the background work; `end` ends the registration; `stop` ends everything. Before
 * `register` the view is complete and followed, and nothing can be proposed.
 *
 * Invariants:
 * - The view is changed by applied rows only; no answer of SQL changes it otherwise.
 * - `onFatal` is called once. After it nothing is applied and nothing is proposed.
 * - Completion comes before observers: outcomes are settled before listeners run, and a listener that
 *   throws stops neither the others nor the log (FAULTS A5).
 */
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { DurationHistogram } from "../lib/duration-histogram.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { fencedNode } from "../lib/fenced-node.ts";
import { LOG_POLL_MS } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { LoopFigures } from "../lib/loop-record.ts";
import { type Random, randomHex } from "../lib/random.ts";
import { formatRegistration, type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { SentAt } from "../lib/sent-at.ts";
import type { Lease, SqlStore } from "../sql/sql-store.ts";
import type { CommandRow } from "./apply.ts";
import { BackgroundLoop } from "./background-loop.ts";
import type { Command, Outcome } from "./command.ts";
import { commandVersionOf } from "./command-format.ts";
import { DatabaseClock } from "./database-clock.ts";
import type { RegistrationEntry } from "./entries.ts";
import { LogTailer } from "./log-tailer.ts";
import { type HeartbeatSources, Membership } from "./membership.ts";
import type { Metadata, Proposal } from "./metadata.ts";
import type { CommandOf } from "./outcome.ts";
import type { FenceMark } from "./proposer.ts";
import { loadState } from "./snapshot-loader.ts";
import { type SnapshotFigures, Snapshotter } from "./snapshotter.ts";
import type { MetadataState } from "./state.ts";
import type { HashedRows } from "./state-hash.ts";
import type { View } from "./view.ts";

export interface MetadataLogOptions {
  readonly store: SqlStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  /** The log cannot go on: this node is fenced, or log or state cannot be trusted. The node must stop. */
  readonly onFatal: (error: unknown) => void;
}

type AppliedListener = (commands: readonly Command[], outcomes: readonly Outcome[], proposer: RegistrationName) => void;

/** The command log as this node sees it; for operators. */
export interface MetadataFigures {
  readonly appliedIndex: number;
  /** Rows of the log, as last read, that are not applied yet. */
  readonly unappliedCount: number;
  /** Monotonic time at which the last row was applied since the start; null: none was. */
  readonly lastAppliedMs: number | null;
  /** Commands that wait for a batch. */
  readonly waitingCount: number;
  /** From a proposal to its applied outcome. */
  readonly proposals: DurationHistogram;
  readonly snapshot: SnapshotFigures;
  readonly isLeaseHeld: boolean;
}

/** Of a node that is not registered. */
const NO_PROPOSALS = new DurationHistogram();

/** Loads of a snapshot that the log was truncated past meanwhile, before `open` gives up. */
const OPEN_TRIES_MAX = 5;

export class MetadataLog implements Metadata {
  readonly #options: MetadataLogOptions;
  readonly #state: MetadataState;
  readonly #tailer: LogTailer;
  readonly #tailLoop: BackgroundLoop;
  readonly #snapshotter: Snapshotter;
  readonly #databaseClock: DatabaseClock;
  readonly #endWakes: () => void;
  readonly #listeners = new Set<AppliedListener>();
  #membership: Membership | null = null;
  #lastAppliedMs: number | null = null;
  #failure: PicoError | null = null;
  /** False while `open` is at work: until then a failure is its rejection. */
  #isOpen = false;
  #isEnding = false;

  /**
   * Prepares the database, loads the snapshot and applies the log up to its present head. Rejects with
   * `corrupt` or `incompatible` where either cannot be trusted, and as the database does.
   */
  static async open(options: MetadataLogOptions): Promise<MetadataLog> {
    const { store, random } = options;
    const { clusterIdentity } = await store.open(randomHex(random, 16));
    for (let tries = 1; ; tries++) {
      const log = new MetadataLog(options, await loadState(store), clusterIdentity);
      try {
        await log.#begin();
        return log;
      } catch (error) {
        await log.stop();
        // Another node wrote a snapshot and truncated the log between the two reads.
        if (!isPicoError(error, "fenced_node") || tries >= OPEN_TRIES_MAX) throw error;
      }
    }
  }

  private constructor(
    options: MetadataLogOptions,
    state: MetadataState,
    /** 32 hex digits that name the cluster, chosen when the database was made. */
    readonly clusterIdentity: string,
  ) {
    const { store, clock, logger } = options;
    const onFatal = (error: unknown) => this.#fail(error);
    this.#options = options;
    this.#state = state;
    this.#databaseClock = new DatabaseClock(clock);
    this.#snapshotter = new Snapshotter({ store, state, clock }, state.appliedIndex);
    this.#tailer = new LogTailer({ store, state, clock, onApplied: (row, outcomes) => this.#takeRow(row, outcomes), onFatal });
    const round = () => this.#tailer.read();
    const task = "reading the metadata log";
    this.#tailLoop = new BackgroundLoop({ name: "log_tailer", task, intervalMs: LOG_POLL_MS, clock, logger, round, onFatal });
    this.#endWakes = store.onAppended(() => {
      // The answer of an own insert brings its row without a read.
      if (this.#membership?.proposer.isSending !== true) this.#tailLoop.wake();
    });
  }

  get view(): View {
    return this.#state;
  }

  get registration(): RegistrationName | null {
    const name = this.#membership?.name ?? null;
    return name !== null && this.#state.registration(name) !== null ? name : null;
  }

  databaseNowMs(): number {
    return this.#databaseClock.nowMs();
  }

  get isDatabaseClockSteady(): boolean {
    return this.#databaseClock.isSteady;
  }

  get isAnswerOverdue(): boolean {
    return this.#membership?.proposer.isOverdue ?? false;
  }

  get lastHeartbeat(): SentAt | null {
    return this.#membership?.heartbeats.lastSuccess ?? null;
  }

  /** Whether this node may do maintenance now. */
  get isLeaseHeld(): boolean {
    return this.#membership?.lease.isHeld ?? false;
  }

  /** The lease as last seen; null before the first look. */
  get lease(): Lease | null {
    return this.#membership?.lease.lease ?? null;
  }

  /** The lowest index that any live node has applied; 0 before this node is registered. Rejects as the database does. */
  async appliedByAll(): Promise<number> {
    return (await this.#membership?.appliedByAll()) ?? 0;
  }

  /** The next ids that the state would give out. */
  get nextIds(): { readonly nextStreamId: number; readonly nextObjectId: number } {
    const { nextStreamId, nextObjectId } = this.#state.counters;
    return { nextStreamId, nextObjectId };
  }

  /** Index of the stored snapshot, as far as this node knows. */
  get snapshotIndex(): number {
    return this.#snapshotter.storedIndex;
  }

  get snapshotFigures(): SnapshotFigures {
    return this.#snapshotter.figures;
  }

  /** Hash of the state at the applied index: equal on all nodes there. */
  stateHash(): HashedRows & { readonly index: number } {
    return { index: this.#state.appliedIndex, ...this.#state.hash() };
  }

  /** The background loops; those of a registration once it works. */
  get loops(): readonly LoopFigures[] {
    return [this.#tailLoop, ...(this.#membership?.loops ?? [])].map((loop) => loop.record);
  }

  get figures(): MetadataFigures {
    const { appliedIndex } = this.#state;
    const proposer = this.#membership?.proposer;
    return {
      appliedIndex,
      unappliedCount: Math.max(0, this.#tailer.span.head - appliedIndex),
      lastAppliedMs: this.#lastAppliedMs,
      waitingCount: proposer?.waitingCount ?? 0,
      proposals: proposer?.durations ?? NO_PROPOSALS,
      snapshot: this.#snapshotter.figures,
      isLeaseHeld: this.isLeaseHeld,
    };
  }

  /** `fences` for a `fence` command: the victim with the heartbeat counter that was seen. It is refused as `node_alive` if that moved. */
  propose(command: Command, fences: readonly FenceMark[] = []): Proposal {
    const older = this.#olderThan(commandVersionOf(command.type));
    if (older !== null) {
      const who = formatRegistration(older.name);
      return neverSent(
        new PicoError("unavailable", `${command.type} refused: node ${who} runs an older program that cannot read it; upgrade it first`, {
          retryAfterSeconds: 60,
        }),
      );
    }
    if (this.#membership !== null) return this.#membership.proposer.propose(command, fences);
    return neverSent(this.#failure ?? new PicoError("unavailable", "this node is not registered", { retryAfterSeconds: 1 }));
  }

  /** A live registration whose program does not speak the version, so that the command would stop it (FAULTS U1). */
  #olderThan(version: number): RegistrationEntry | null {
    if (version === 1) return null;
    for (const entry of this.#state.registrations()) if (entry.state === "live" && entry.commandVersion < version) return entry;
    return null;
  }

  catchUp(): Promise<void> {
    return this.#tailer.catchUp();
  }

  onApplied(listener: AppliedListener): () => void {
    // Wrapped, so that one function given twice is called, and ended, twice.
    const entry: AppliedListener = (commands, outcomes, proposer) => listener(commands, outcomes, proposer);
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /**
   * Registers this node. `predecessorCounter`: the heartbeat counter last seen of the registration that
   * the command replaces; null where a lock proves its death. After a refusal the node is not registered,
   * and another epoch may be tried. Rejects as a proposal does.
   */
  async register(command: CommandOf<"register">, predecessorCounter: number | null): Promise<Outcome> {
    assert(this.#membership === null, "a node registers once");
    const { node, replaces } = command;
    const membership = this.#newMembership(node);
    this.#membership = membership;
    const fences = replaces === null ? [] : [{ victim: { nodeId: node.nodeId, nodeEpoch: replaces }, counter: predecessorCounter }];
    try {
      const outcome = await membership.proposer.propose(command, fences).outcome;
      if (outcome.applied) membership.startHeartbeats();
      else this.#membership = null;
      return outcome;
    } catch (error) {
      // It was certainly not inserted, or this log has stopped.
      this.#membership = null;
      throw error;
    }
  }

  /** Begins lease, snapshots, truncation and maintenance; heartbeats began with the registration. */
  start(sources: HeartbeatSources): void {
    assert(this.#membership !== null, "a node is registered before its loops start");
    this.#membership.start(sources);
  }

  /**
   * Ends this node's registration gracefully: `lastNumber` is its last WAL number, which must be the
   * committed one. An applied end is final: the background work stops and nothing can be proposed any
   * more; the log is still followed until `stop`. Rejects as a proposal does.
   */
  async end(lastNumber: number): Promise<Outcome> {
    const membership = this.#membership;
    assert(membership !== null, "only a registered node ends its registration");
    this.#isEnding = true;
    const { outcome } = membership.proposer.propose({ type: "end", victim: membership.name, lastNumber, heir: null });
    const ended = await outcome;
    if (ended.applied) await membership.leave();
    else this.#isEnding = false;
    return ended;
  }

  /** Ends all work. What waits to be sent is rejected with `unavailable`, what is sent with `unknown_outcome`. */
  async stop(): Promise<void> {
    this.#endWakes();
    this.#tailer.stop();
    this.#membership?.proposer.stop(new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 }), false);
    await this.#membership?.stopLoops();
    await this.#tailLoop.stop();
  }

  async #begin(): Promise<void> {
    const { store, clock } = this.#options;
    const sentMs = clock.monotonicMs();
    this.#databaseClock.observe(await store.nowMs(), sentMs);
    await this.#tailer.read();
    if (this.#failure !== null) throw this.#failure;
    this.#isOpen = true;
    this.#tailLoop.start();
  }

  #newMembership(name: RegistrationName): Membership {
    const { store, clock, random, logger } = this.#options;
    return new Membership({
      name,
      store,
      clock,
      random,
      logger,
      state: this.#state,
      snapshotter: this.#snapshotter,
      databaseClock: this.#databaseClock,
      logSpan: () => this.#tailer.span,
      onInserted: (row) => this.#tailer.offer(row),
      onFound: () => this.#tailLoop.wake(),
      onFatal: (error) => this.#fail(error),
    });
  }

  #takeRow(row: CommandRow, outcomes: readonly Outcome[]): void {
    const membership = this.#membership;
    this.#lastAppliedMs = this.#options.clock.monotonicMs();
    this.#snapshotter.noteApplied(row.commands.length);
    if (membership !== null && sameRegistration(row.proposer, membership.name)) membership.proposer.settle(row.batch, row.rowId, outcomes);
    membership?.noteApplied();
    for (const listener of [...this.#listeners]) {
      try {
        listener(row.commands, outcomes, row.proposer);
      } catch (error) {
        this.#options.logger.error("a listener of the metadata log failed", { error, index: row.index });
      }
    }
    this.#checkOwnLife(row.proposer);
  }

  /** `by`: the proposer of the row that was applied last. */
  #checkOwnLife(by: RegistrationName): void {
    const membership = this.#membership;
    const state = membership === null ? undefined : this.#state.registration(membership.name)?.state;
    if (membership === null || state === undefined || state === "live") return;
    if (state === "ended" && this.#isEnding)
      membership.proposer.stop(new PicoError("fenced_node", "this node's registration has ended"), true);
    else this.#fail(fencedNode(membership.name, by, "the command log says so"));
  }

  #fail(error: unknown): void {
    if (this.#failure !== null) return;
    this.#failure = isPicoError(error) ? error : new PicoError("internal", `the metadata log stopped: ${messageOf(error)}`, {}, error);
    this.#tailer.stop();
    const isFenced = isPicoError(error, "fenced_node");
    const refusal = isFenced
      ? this.#failure
      : new PicoError("unavailable", "the metadata log has stopped", { retryAfterSeconds: 1 }, error);
    this.#membership?.proposer.stop(refusal, this.#isDead());
    if (this.#isOpen) this.#options.onFatal(error);
  }

  /**
   * True once the fence of this node is applied: what is not settled by then lies above it in the log, if
   * anywhere, and is refused. A refused heartbeat alone does not say that.
   */
  #isDead(): boolean {
    const name = this.#membership?.name;
    const state = name === undefined ? undefined : this.#state.registration(name)?.state;
    return state === "fenced" || state === "ended";
  }
}

function neverSent(reason: PicoError): Proposal {
  const outcome = Promise.reject(reason);
  outcome.catch(() => undefined);
  return { outcome, isSent: false, withdraw: () => false };
}
