/**
 * A node without its sockets: metadata log, engine and streams, joined over the seams that it is given.
 * The product and the simulator run the same one.
 *
 * Life: `open` loads the metadata, and nothing is written; `start` registers, recovers what earlier lives
 * of this node left, and serves; `stop` uploads everything and ends the registration; `abandon` gives up
 * as a crash would.
 *
 * A start that cannot write (full disk, database away) is tried again until it can. Where the WAL's lock
 * proves that nobody else writes it, reads are served from the replay meanwhile (FAULTS W10).
 */
import { BlockCache } from "../engine/block-cache.ts";
import { CompactionLoop } from "../engine/compaction-loop.ts";
import { COMPACTION_SETTINGS, type CompactionSettings } from "../engine/compaction-settings.ts";
import { DataObjectReaders } from "../engine/data-object-readers.ts";
import { Engine, type EngineSettings } from "../engine/engine.ts";
import { ObjectRemoval } from "../engine/object-removal.ts";
import { Recovery, type RecoveryProgress } from "../engine/recovery.ts";
import { RemovalGate } from "../engine/removal-gate.ts";
import { ScrubSchedule } from "../engine/scrub-schedule.ts";
import { Scrubber } from "../engine/scrubber.ts";
import { Uploader } from "../engine/uploader.ts";
import type { WalStore } from "../engine/wal-store.ts";
import { backOffMs } from "../lib/back-off.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { DEADLINES_PER_COMMAND_MAX, REMOVAL_INTERVAL_MS, SCRUB_LOOK_MS, START_RETRY_MS_MAX, START_RETRY_MS_MIN } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { LoopFigures } from "../lib/loop-record.ts";
import type { Random } from "../lib/random.ts";
import { formatRegistration, type RegistrationName, sameRegistration } from "../lib/registration.ts";
import { BackgroundLoop } from "../metadata/background-loop.ts";
import type { Addresses } from "../metadata/command.ts";
import { COMMAND_VERSION } from "../metadata/command-format.ts";
import type { RegistrationEntry } from "../metadata/entries.ts";
import { MetadataLog } from "../metadata/metadata-log.ts";
import { alive, awaitStandstill } from "../metadata/predecessor-watch.ts";
import { Mirror } from "../mirror/mirror.ts";
import type { Router } from "../ownership/router.ts";
import { ViewRouter } from "../ownership/view-router.ts";
import type { SqlStore } from "../sql/sql-store.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { StreamIds } from "../streams/stream-ids.ts";
import { Streams } from "../streams/streams.ts";
import { assertDatabaseFitsStores } from "./database-witness.ts";
import type { LifeLock } from "./life-lock.ts";

export interface NodeCoreSettings extends EngineSettings {
  readonly nodeId: number;
  /** Null: max(now, last registered + 1). */
  readonly nodeEpoch: number | null;
  readonly slots: number;
  readonly failoverTimeoutMs: number;
  readonly blockCacheBytes: number;
  /** The command log is mirrored into the store. @default false */
  readonly isMirrored?: boolean;
  /** See `MirrorOptions`. */
  readonly mirrorSnapshotLogBytes?: number;
  /** Between two scrubs by themselves; 0: none. */
  readonly scrubIntervalMs: number;
  /** @default COMPACTION_SETTINGS */
  readonly compaction?: CompactionSettings;
}

export interface NodeCoreComponents {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly sql: SqlStore;
  readonly store: ObjectStore;
  readonly wal: WalStore;
  readonly settings: NodeCoreSettings;
  /** Where it does not prove the predecessor dead, a start waits until that one's heartbeat has stood still for the failover limit. */
  readonly lifeLock: LifeLock;
}

/** `degraded`: reads only, until the start can write. */
export type NodePhase = "opening" | "starting" | "degraded" | "recovering" | "serving" | "stopping" | "stopped";

export class NodeCore {
  readonly metadata: MetadataLog;
  readonly engine: Engine;
  readonly blockCache: BlockCache;
  readonly streams: Streams;
  readonly router: Router;
  readonly compaction: CompactionLoop;
  /** What every delete in the store asks first. */
  readonly removalGate: RemovalGate;
  readonly removal: ObjectRemoval;
  /** The copy of the command log in the store; null: there is none. */
  readonly mirror: Mirror | null;
  readonly scrubber: Scrubber;
  /** Resolves when the node had to stop by itself, with the reason. */
  readonly failed: Promise<unknown>;
  readonly #components: NodeCoreComponents;
  readonly #uploader: Uploader;
  /** Work that the lease allows, on the store. */
  readonly #loops: readonly Pick<BackgroundLoop, "start" | "stop" | "record">[];
  readonly #ids: StreamIds;
  /** Registrations whose streams are served here, by `formatRegistration`. */
  readonly #own = new Set<string>();
  readonly #recoveries = new Map<string, Recovery>();
  readonly #stopping = new AbortController();
  readonly #fail: (error: unknown) => void;
  #phase: NodePhase = "starting";
  /** What ended the node by itself: a start that it cut short is refused with this. */
  #cause: unknown = null;
  #recovery: RecoveryProgress | null = null;

  /** Loads the metadata. Rejects with `corrupt` or `incompatible` where it cannot be trusted, and as the database does. */
  static async open(components: NodeCoreComponents): Promise<NodeCore> {
    const { promise, resolve } = Promise.withResolvers<unknown>();
    const { sql, clock, random, log } = components;
    const metadata = await MetadataLog.open({ store: sql, clock, random, logger: log, onFatal: resolve });
    return new NodeCore(components, metadata, promise, resolve);
  }

  private constructor(components: NodeCoreComponents, metadata: MetadataLog, failed: Promise<unknown>, fail: (error: unknown) => void) {
    const { clock, random, log, store, wal, settings } = components;
    const { clusterId } = settings;
    this.#components = components;
    this.metadata = metadata;
    this.failed = failed;
    this.#fail = fail;
    const { mirrorSnapshotLogBytes: snapshotLogBytes } = settings;
    const mirror = settings.isMirrored
      ? new Mirror({
          store,
          sql: components.sql,
          metadata,
          clusterId,
          clock,
          log,
          onFatal: fail,
          ...(snapshotLogBytes === undefined ? {} : { snapshotLogBytes }),
        })
      : null;
    this.mirror = mirror;
    this.removalGate = new RemovalGate({
      store,
      clusterId,
      clusterIdentity: metadata.clusterIdentity,
      metadata,
      log,
      ...(mirror === null ? {} : { cover: (index: number) => mirror.cover(index) }),
    });
    this.#uploader = new Uploader({ clusterId, clock, random, log, metadata, store });
    this.blockCache = new BlockCache(settings.blockCacheBytes);
    const readers = new DataObjectReaders(store, this.blockCache, clusterId);
    this.engine = new Engine({
      clock,
      random,
      log,
      metadata,
      wal,
      readers,
      uploader: this.#uploader,
      gate: this.removalGate,
      isCleaner: () => metadata.isLeaseHeld,
      settings,
      onFatal: fail,
    });
    this.removal = new ObjectRemoval({
      clusterId,
      clock,
      random,
      log,
      store,
      metadata,
      gate: this.removalGate,
      isAllowed: () => metadata.isLeaseHeld && metadata.isDatabaseClockSteady && this.#phase === "serving",
      appliedByAll: () => metadata.appliedByAll(),
    });
    const walStore = wal.objects === undefined || wal.objects === store ? null : wal.objects;
    this.scrubber = new Scrubber({ clusterId, clock, random, log, metadata, store, walStore, gate: this.removalGate });
    const { scrubIntervalMs: intervalMs } = settings;
    const scrubs = new ScrubSchedule({ scrubber: this.scrubber, intervalMs, isLeaseHeld: () => metadata.isLeaseHeld, clock });
    this.compaction = new CompactionLoop({
      clusterId,
      clock,
      random,
      log,
      metadata,
      store,
      settings: settings.compaction ?? COMPACTION_SETTINGS,
      isAllowed: () => metadata.isLeaseHeld && this.#phase === "serving",
      onFatal: fail,
    });
    this.#loops = [
      new BackgroundLoop({
        name: "removal",
        task: "removing destroyed objects",
        intervalMs: REMOVAL_INTERVAL_MS,
        clock,
        logger: log,
        round: () => this.removal.round(),
        onFatal: fail,
      }),
      new BackgroundLoop({
        name: "scrub",
        task: "looking whether a scrub is due",
        intervalMs: SCRUB_LOOK_MS,
        clock,
        logger: log,
        round: async () => scrubs.look(),
        onFatal: fail,
      }),
      this.compaction,
    ];
    this.#ids = new StreamIds(metadata);
    const isOwn = (name: RegistrationName) => this.#own.has(formatRegistration(name));
    this.streams = new Streams({ clock, log, metadata, engine: this.engine, ids: this.#ids, isOwn });
    this.router = new ViewRouter(metadata.view, settings.nodeId, isOwn, (name) => this.streams.isInUse(name));
    // From the first sign that the node is over nothing is acknowledged any more.
    void failed.then((error) => {
      this.#cause = error;
      this.abandon();
    });
  }

  /** All background loops that run or have run. */
  get loops(): readonly LoopFigures[] {
    const own = this.metadata.registration === null ? [] : this.#loops.map((loop) => loop.record);
    return [...this.metadata.loops, ...this.engine.loops, ...this.streams.loops, ...(this.mirror?.loops ?? []), ...own];
  }

  get phase(): NodePhase {
    return this.#phase;
  }

  get recovery(): RecoveryProgress | null {
    return this.#recovery;
  }

  get isReady(): boolean {
    return this.#phase === "serving";
  }

  /** Resolves when the node serves. Rejects where it never will: `fenced_node`, `corrupt`, `incompatible`; or when it is stopped. */
  async start(addresses: Addresses): Promise<void> {
    const { clock, random, log, wal } = this.#components;
    for (let attempt = 1; ; attempt++) {
      try {
        return await this.#startOnce(addresses);
      } catch (error) {
        if (!isPassing(error) || this.#stopping.signal.aborted) throw this.#cause ?? error;
        if (attempt === 1) log.warn("the node cannot start yet and tries again; reads may be served meanwhile", { error });
      }
      if (wal.kind === "local") await this.#serveReads();
      await sleep(clock, backOffMs(random, attempt, START_RETRY_MS_MIN, START_RETRY_MS_MAX), this.#stopping.signal);
      if (this.#stopping.signal.aborted) {
        throw this.#cause ?? new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 });
      }
    }
  }

  async #startOnce(addresses: Addresses): Promise<void> {
    const { settings, wal } = this.#components;
    const self = this.metadata.registration ?? (await this.#register(addresses));
    await this.#mirrorRegistration();
    this.#phase = "recovering";
    for (const victim of this.#unended()) {
      if (sameRegistration(victim, self)) continue;
      await this.#recoveryOf(victim).run(self);
      // It holds all that it replayed.
      this.#recoveries.delete(formatRegistration(victim));
    }
    if (wal.kind === "local") await this.#makeRoom();
    await this.engine.start(self);
    this.#assertNotStopping();
    this.#own.add(formatRegistration(self));
    this.metadata.start({
      recovering: () => null,
      load: () => JSON.stringify({ streams: this.streams.sessionCount, backlogBytes: this.engine.backlogBytes, slots: settings.slots }),
    });
    this.mirror?.start();
    this.streams.start();
    this.#phase = "serving";
    for (const loop of this.#loops) loop.start();
  }

  /**
   * Whoever acknowledges anything is known to a restore of the mirror, which fences it and reads its WAL: a process that
   * goes on beside a restored database must not be able to.
   */
  async #mirrorRegistration(): Promise<void> {
    const { mirror, metadata } = this;
    if (mirror === null || (await mirror.cover(metadata.view.appliedIndex))) return;
    throw new PicoError("unavailable", "the registration is not in the mirror of the command log yet", { retryAfterSeconds: 1 });
  }

  /** A stop or an end may come while the start waits for a store: no loop may begin behind it. */
  #assertNotStopping(): void {
    if (!this.#stopping.signal.aborted) return;
    this.engine.abandon();
    throw new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 });
  }

  /** Files of earlier lives may fill the disk that those of this one need. Not for long: a trim may have to wait for more than the disk. */
  async #makeRoom(): Promise<void> {
    const { clock, log } = this.#components;
    const trimmed = this.engine.trimmer.trimNow().catch((error) => {
      log.debug("the WAL of an ended registration could not be removed yet", { error });
    });
    await Promise.race([trimmed, sleep(clock, START_RETRY_MS_MAX, this.#stopping.signal)]);
  }

  async #register(addresses: Addresses): Promise<RegistrationName> {
    const { clock, settings, sql, store, wal } = this.#components;
    const { nodeId, slots, failoverTimeoutMs, clusterId } = settings;
    const { metadata } = this;
    const { clusterIdentity } = metadata;
    const rowIdAt = (index: number) => sql.rowIdAt(index);
    await this.mirror?.check();
    await assertDatabaseFitsStores({ metadata, wal, store, clusterId, clusterIdentity, rowIdAt, nodeId });
    const replaces = this.metadata.view.node(nodeId)?.lastEpoch ?? null;
    const predecessor = this.metadata.view.currentRegistration(nodeId);
    const counter = await this.#standstillOf(predecessor);
    const nodeEpoch = settings.nodeEpoch ?? Math.max(clock.nowMs(), (replaces ?? -1) + 1);
    const node = { nodeId, nodeEpoch };
    const outcome = await this.metadata.register(
      {
        type: "register",
        node,
        addresses,
        wal: { kind: wal.kind, description: wal.description },
        slots,
        failoverTimeoutMs,
        commandVersion: COMMAND_VERSION,
        replaces,
      },
      counter,
    );
    if (!outcome.applied && outcome.code === "node_alive" && predecessor !== null) throw alive(predecessor);
    if (!outcome.applied) throw refusedRegistration(node, outcome.code, outcome.facts.lastEpoch);
    await this.#components.lifeLock.noteLife(nodeEpoch);
    const firstStreamId = outcome.facts.firstStreamId;
    if (firstStreamId !== undefined) this.#ids.add(firstStreamId);
    return node;
  }

  /** The heartbeat counter that the registration names; null where a lock proves that nobody sends them any more. */
  async #standstillOf(predecessor: RegistrationEntry | null): Promise<number | null> {
    const { clock, log, sql, lifeLock } = this.#components;
    if (predecessor === null || predecessor.state !== "live" || lifeLock.provesDeathOf(predecessor.name.nodeEpoch)) return null;
    log.warn("another process of this node id may live; it is replaced if its heartbeat stands still", {
      registration: formatRegistration(predecessor.name),
      waitMs: predecessor.failoverTimeoutMs,
    });
    return awaitStandstill(predecessor, { sql, clock, log, signal: this.#stopping.signal });
  }

  /** Earlier lives of this node that are not ended, oldest first. */
  #unended(): RegistrationName[] {
    const { nodeId } = this.#components.settings;
    const names: RegistrationName[] = [];
    for (const { name, state } of this.metadata.view.registrations()) {
      if (name.nodeId === nodeId && state !== "ended") names.push(name);
    }
    return names.sort((left, right) => left.nodeEpoch - right.nodeEpoch);
  }

  #recoveryOf(victim: RegistrationName): Recovery {
    const { clock, random, log, wal } = this.#components;
    const key = formatRegistration(victim);
    let recovery = this.#recoveries.get(key);
    if (recovery === undefined) {
      const { metadata, engine } = this;
      const report = (progress: RecoveryProgress) => {
        this.#recovery = progress;
      };
      const signal = this.#stopping.signal;
      const { cache, trimmer } = engine;
      recovery = new Recovery({ clock, random, log, metadata, wal, cache, uploader: this.#uploader, trimmer, signal, report }, victim);
      this.#recoveries.set(key, recovery);
    }
    return recovery;
  }

  /**
   * Replays what earlier lives left, without writing, and answers reads of their streams. This life has written
   * nothing: what it inherited from those that are ended is in data objects.
   */
  async #serveReads(): Promise<void> {
    const { log } = this.#components;
    try {
      for (const name of this.#unended()) {
        if (!sameRegistration(name, this.metadata.registration)) {
          const entry = this.metadata.view.registration(name);
          await this.#recoveryOf(name).inspect(entry?.fencedNumber ?? entry?.committedNumber ?? 0);
        }
        this.#own.add(formatRegistration(name));
      }
      this.#phase = "degraded";
    } catch (error) {
      log.warn("what earlier lives of this node left cannot be read yet", { error });
    }
  }

  /** Uploads everything, stores deadlines, ends the registration. Rejects where that cannot be done; then `abandon`. */
  async stop(): Promise<void> {
    if (this.#cause !== null) throw this.#cause;
    const wasServing = this.#phase === "serving";
    this.#phase = "stopping";
    this.#stopLoops();
    this.streams.stop();
    if (wasServing) {
      const lastNumber = await this.engine.stop();
      // What is answered from here on would not be this node's to answer, nor would a touch outlive it.
      this.streams.abandon();
      await this.#storeDeadlines();
      const outcome = await this.metadata.end(lastNumber);
      if (!outcome.applied) throw new PicoError("internal", `the end of the registration was refused (${outcome.code})`);
      const self = this.metadata.registration;
      if (self !== null) await this.engine.removeWal(self);
      await this.#mirrorEnd();
    }
    this.#stopping.abort();
    await this.metadata.stop();
    await this.scrubber.stop();
    this.#phase = "stopped";
  }

  /** So that the bucket alone has all of it; the next start makes up for a failure. */
  async #mirrorEnd(): Promise<void> {
    if (this.mirror === null) return;
    await this.mirror.stop();
    await this.mirror.cover(this.metadata.view.appliedIndex).catch((error) => {
      this.#components.log.warn("the end of this node is not in the mirror of the command log", { error });
    });
  }

  /** Gives up at once: nothing is acknowledged or uploaded from here on. */
  abandon(): void {
    this.#phase = "stopped";
    this.#stopping.abort();
    this.#stopLoops();
    this.removalGate.close();
    this.streams.abandon();
    this.engine.abandon();
    void this.mirror?.stop();
    this.metadata.stop().catch((error) => this.#components.log.warn("the metadata log did not stop cleanly", { error }));
  }

  /** A call under way may go on: a delete that was allowed stays so. */
  #stopLoops(): void {
    // The call of the store that it is in may take its time: a stop waits for that at its end.
    void this.scrubber.stop();
    for (const loop of this.#loops) void loop.stop();
  }

  async #storeDeadlines(): Promise<void> {
    const moved = [...this.streams.movedDeadlines()];
    for (let at = 0; at < moved.length; at += DEADLINES_PER_COMMAND_MAX) {
      const deadlines = moved.slice(at, at + DEADLINES_PER_COMMAND_MAX);
      const outcome = await this.metadata.propose({ type: "store_deadlines", deadlines }).outcome;
      if (!outcome.applied) throw new PicoError("internal", `deadlines of streams were not stored (${outcome.code})`);
    }
  }

  /** For the composition root: ends the node as if it had failed. */
  fail(error: unknown): void {
    this.#components.log.error("the node stops", { reason: messageOf(error) });
    this.#fail(error);
  }
}

/** May pass by itself: worth another try of the start. */
function isPassing(error: unknown): boolean {
  return (
    isPicoError(error, "unavailable") ||
    isPicoError(error, "storage_failed") ||
    isPicoError(error, "storage_full") ||
    isPicoError(error, "database_failed") ||
    isPicoError(error, "unknown_outcome")
  );
}

function refusedRegistration(node: RegistrationName, code: string, lastEpoch: number | undefined): PicoError {
  if (code === "epoch_conflict") {
    return new PicoError(
      "settings",
      `node epoch ${node.nodeEpoch} of node ${node.nodeId} is not above ${lastEpoch ?? 0}, the last one registered: leave --node-epoch out or raise it`,
      { flag: "--node-epoch", isStartup: true },
    );
  }
  if (code === "stale_version") {
    return new PicoError("incompatible", "this program is older than what the cluster speaks: start the newer one");
  }
  return new PicoError("internal", `the registration of node ${node.nodeId} was refused (${code})`);
}
