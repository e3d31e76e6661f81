/**
 * What a node has as long as its registration lives: the proposer, the heartbeat, the lease, and the
 * rounds that the lease allows (snapshots, truncation, maintenance).
 */
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { HEARTBEAT_INTERVAL_MS, LEASE_TTL_MS, LOG_TRUNCATE_INTERVAL_MS, MAINTENANCE_INTERVAL_MS } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { LogRow, SqlStore } from "../sql/sql-store.ts";
import { BackgroundLoop } from "./background-loop.ts";
import type { DatabaseClock } from "./database-clock.ts";
import { HeartbeatSender } from "./heartbeat-sender.ts";
import { LeaseKeeper } from "./lease-keeper.ts";
import { LiveNodes } from "./live-nodes.ts";
import { LogTruncation } from "./log-truncation.ts";
import { Maintenance } from "./maintenance.ts";
import { Proposer } from "./proposer.ts";
import type { Snapshotter } from "./snapshotter.ts";
import type { MetadataState } from "./state.ts";

export interface MembershipOptions {
  readonly name: RegistrationName;
  readonly store: SqlStore;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly state: MetadataState;
  readonly snapshotter: Snapshotter;
  readonly databaseClock: DatabaseClock;
  /** Lowest and highest index in the log as last read. */
  readonly logSpan: () => { readonly first: number; readonly head: number };
  readonly onInserted: (row: LogRow) => void;
  readonly onFound: () => void;
  readonly onFatal: (error: unknown) => void;
}

/** What heartbeats tell; asked at each. */
export interface HeartbeatSources {
  readonly recovering: () => RegistrationName | null;
  /** JSON, at most 4 KiB. */
  readonly load: () => string;
}

export class Membership {
  readonly proposer: Proposer;
  readonly heartbeats: HeartbeatSender;
  readonly lease: LeaseKeeper;
  readonly #options: MembershipOptions;
  readonly #nodes: LiveNodes;
  readonly #truncation: LogTruncation;
  readonly #maintenance: Maintenance;
  readonly #saving: BackgroundLoop;
  readonly #beating: BackgroundLoop;
  readonly #loops: readonly BackgroundLoop[];
  #sources: HeartbeatSources | null = null;

  constructor(options: MembershipOptions) {
    const { name, store, clock, random, state, databaseClock, onInserted, onFound, onFatal } = options;
    this.#options = options;
    this.proposer = new Proposer({
      registration: name,
      store,
      clock,
      random,
      onInserted: (row, sentMs) => {
        databaseClock.observe(row.atMs, sentMs);
        onInserted(row);
      },
      onFound,
      onFatal,
    });
    this.lease = new LeaseKeeper({ registration: name, store, clock });
    this.heartbeats = new HeartbeatSender({
      registration: name,
      store,
      clock,
      databaseClock,
      facts: () => ({
        appliedIndex: state.appliedIndex,
        recovering: this.#sources?.recovering() ?? null,
        load: this.#sources?.load() ?? "{}",
      }),
      onFatal,
    });
    this.#nodes = new LiveNodes(state, clock);
    this.#truncation = new LogTruncation({ store, nodes: this.#nodes });
    this.#maintenance = new Maintenance({
      state,
      isAllowed: () => this.lease.isHeld && databaseClock.isSteady,
      databaseNowMs: () => databaseClock.nowMs(),
      propose: (command) => this.proposer.propose(command),
    });
    this.#saving = this.#newLoop("snapshot", "the metadata snapshot", LOG_TRUNCATE_INTERVAL_MS, () => this.#saveRound());
    this.#beating = this.#newLoop("heartbeat", "the heartbeat", HEARTBEAT_INTERVAL_MS, () => this.heartbeats.send());
    this.#loops = [
      this.#beating,
      this.#newLoop("lease", "the lease", LEASE_TTL_MS / 4, () => this.lease.renew()),
      this.#saving,
      this.#newLoop("log_truncation", "truncating the metadata log", LOG_TRUNCATE_INTERVAL_MS, () => this.#truncateRound()),
      this.#newLoop("maintenance", "metadata maintenance", MAINTENANCE_INTERVAL_MS, async () => {
        await this.#maintenance.round();
      }),
    ];
  }

  get name(): RegistrationName {
    return this.#options.name;
  }

  get loops(): readonly BackgroundLoop[] {
    return this.#sources === null ? [] : this.#loops;
  }

  start(sources: HeartbeatSources): void {
    assert(this.#sources === null, "the loops of a registration start once");
    this.#sources = sources;
    for (const loop of this.#loops) loop.start();
  }

  /** The lowest index that any live node has applied. Rejects as the database does. */
  async appliedByAll(): Promise<number> {
    return this.#nodes.appliedByAll(await this.#options.store.readHeartbeats());
  }

  /** Resolves when no round is under way any more. */
  async stopLoops(): Promise<void> {
    await Promise.all(this.#loops.map((loop) => loop.stop()));
  }

  /** From the registration on, so that nobody takes a node for dead that recovers for long. */
  startHeartbeats(): void {
    this.#beating.start();
  }

  /** After the registration has ended. Both steps only spare others a wait, so a failure is no error. */
  async leave(): Promise<void> {
    const { name, store, logger } = this.#options;
    await this.stopLoops();
    await this.lease.release().catch((error) => logger.warn("the lease was not released and will run out", { error }));
    await store.removeHeartbeat(name).catch((error) => logger.warn("the heartbeat row was not removed", { error }));
  }

  /** Rows were applied: a snapshot may be due. */
  noteApplied(): void {
    if (this.#options.snapshotter.isDue && this.lease.isHeld) this.#saving.wake();
  }

  async #saveRound(): Promise<void> {
    const { snapshotter } = this.#options;
    while (snapshotter.isDue && this.lease.isHeld) await snapshotter.write();
  }

  async #truncateRound(): Promise<void> {
    const { snapshotter, logSpan } = this.#options;
    const span = logSpan();
    snapshotter.noteTruncation(span.first);
    if (this.lease.isHeld) await this.#truncation.truncate(snapshotter.storedIndex, span);
  }

  #newLoop(name: string, task: string, intervalMs: number, round: () => Promise<void>): BackgroundLoop {
    const { clock, logger, onFatal } = this.#options;
    return new BackgroundLoop({ name, task, intervalMs, clock, logger, round, onFatal });
  }
}
