/**
 * The mirror of the command log in the bucket: with it the database file is not the only copy of what the cluster
 * knows. The lease holder copies in the background, never in the way of proposals; others copy only when they are
 * asked to cover an index, which is harmless beside it.
 *
 * What leaves the store waits for `cover`: so everything that a restore of the mirror names is there.
 */
import { backOffMs } from "../lib/back-off.ts";
import type { Clock } from "../lib/clock.ts";
import {
  MIRROR_CHUNKS_MAX,
  MIRROR_INTERVAL_MS,
  MIRROR_SNAPSHOT_INTERVAL_MS,
  MIRROR_SNAPSHOT_LOG_BYTES,
  PROBLEM_CHARACTERS_MAX,
  REMOVAL_RETRY_MS_MAX,
  REMOVAL_RETRY_MS_MIN,
} from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { LoopFigures } from "../lib/loop-record.ts";
import { boundedText } from "../lib/plain-text.ts";
import { BackgroundLoop } from "../metadata/background-loop.ts";
import { type HeldLog, isRemovalHeld } from "../metadata/removal-hold.ts";
import type { View } from "../metadata/view.ts";
import type { SqlStore } from "../sql/sql-store.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { LogMirror } from "./log-mirror.ts";
import { SnapshotMirror } from "./snapshot-mirror.ts";

/** What the mirror asks the metadata log; all of it costs nothing. */
export interface MirroredLog extends HeldLog {
  readonly view: HeldLog["view"] & Pick<View, "appliedIndex">;
  readonly clusterIdentity: string;
  readonly isLeaseHeld: boolean;
  /** Index of the stored snapshot, as far as this node knows. */
  readonly snapshotIndex: number;
}

export interface MirrorOptions {
  readonly store: ObjectStore;
  readonly sql: SqlStore;
  readonly metadata: MirroredLog;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onFatal: (error: unknown) => void;
  /** A snapshot is due once so much log is behind the last one, and more than half of that one's size. @default MIRROR_SNAPSHOT_LOG_BYTES */
  readonly snapshotLogBytes?: number;
}

/** For operators. */
export interface MirrorFigures {
  /** The log is in the bucket up to here, as far as this node knows; 0 before it asked. */
  readonly coveredIndex: number;
  /** Rows that are applied here and not there. */
  readonly behindRows: number;
  readonly snapshotIndex: number;
  readonly snapshotBytes: number;
}

export class Mirror {
  readonly #options: MirrorOptions;
  readonly #rows: LogMirror;
  readonly #snapshots: SnapshotMirror;
  readonly #loops: readonly BackgroundLoop[];
  /** Rounds of deletes in a row of which some were refused, and the monotonic time before which there is no other. */
  #refusals = 0;
  #removeNotBeforeMs = 0;
  /** One snapshot at a time. */
  #taking: Promise<boolean> | null = null;

  constructor(options: MirrorOptions) {
    const { store, sql, metadata, clusterId, clock, log, onFatal } = options;
    const cluster = { clusterId, clusterIdentity: metadata.clusterIdentity };
    this.#options = options;
    this.#rows = new LogMirror({ store, sql, cluster, log });
    this.#snapshots = new SnapshotMirror({ store, sql, cluster, coversLog: (index) => this.#copyUpTo(index) });
    const loop = (name: string, task: string, intervalMs: number, round: () => Promise<void>) =>
      new BackgroundLoop({ name, task, intervalMs, clock, logger: log, round, onFatal });
    this.#loops = [
      loop("mirror", "mirroring the metadata log", MIRROR_INTERVAL_MS, () => this.#logRound()),
      loop("mirror_snapshot", "mirroring the metadata snapshot", MIRROR_SNAPSHOT_INTERVAL_MS, () => this.#snapshotRound()),
    ];
  }

  get loops(): readonly LoopFigures[] {
    return this.#loops.map((loop) => loop.record);
  }

  get figures(): MirrorFigures {
    const { coveredIndex } = this.#rows;
    return {
      coveredIndex,
      behindRows: Math.max(0, this.#options.metadata.view.appliedIndex - coveredIndex),
      snapshotIndex: this.#snapshots.newestIndex,
      snapshotBytes: this.#snapshots.newestBytes,
    };
  }

  start(): void {
    for (const loop of this.#loops) loop.start();
  }

  async stop(): Promise<void> {
    await Promise.all(this.#loops.map((loop) => loop.stop()));
  }

  /**
   * True once a restore would bring back the log up to `index`, which is in the database: copies what is missing.
   * False where it cannot yet. Throws `corrupt` where the bucket has another log, and as database and store do.
   */
  async cover(index: number): Promise<boolean> {
    if (!(await this.#copyUpTo(index))) return false;
    if (this.#rows.unbrokenFrom === 1) return true;
    await this.#snapshots.known();
    if (!this.#hasBase) await this.takeSnapshot();
    return this.#hasBase;
  }

  /**
   * For a start, before anything is written: throws `corrupt` where the bucket's mirror is not that of this database,
   * or ahead of it.
   */
  async check(): Promise<void> {
    await this.#rows.find();
  }

  /** Whether a snapshot stands for what came before the unbroken log. Its own row must be in that. */
  get #hasBase(): boolean {
    const { unbrokenFrom } = this.#rows;
    return unbrokenFrom === 1 || this.#snapshots.newestIndex >= unbrokenFrom;
  }

  async #copyUpTo(index: number): Promise<boolean> {
    // A copy that was under way may have read the log before the row was there.
    for (let round = 0; round < 2 && this.#rows.coveredIndex < index; round++) await this.#rows.copy();
    return this.#rows.coveredIndex >= index;
  }

  async #logRound(): Promise<void> {
    const { metadata } = this.#options;
    if (metadata.isLeaseHeld && metadata.view.appliedIndex > this.#rows.coveredIndex) await this.#rows.copy();
  }

  async #snapshotRound(): Promise<void> {
    const { metadata } = this.#options;
    if (!metadata.isLeaseHeld) return;
    if (this.#isSnapshotDue()) {
      await this.#snapshots.known();
      this.#rows.forgetUpTo(this.#snapshots.newestIndex);
      if (this.#isSnapshotDue()) await this.takeSnapshot();
    }
    await this.#removeOlder();
  }

  /** A store that refuses is asked ever more slowly: each try walks over all that is left (FAULTS G4). */
  async #removeOlder(): Promise<void> {
    const { metadata, clock, log } = this.#options;
    if (clock.monotonicMs() < this.#removeNotBeforeMs) return;
    const refusal = await this.#snapshots.removeOlder(() => !metadata.isLeaseHeld || isRemovalHeld(metadata));
    if (refusal !== null) {
      this.#refusals += 1;
      // One node asks, so that nothing is left to chance.
      const waitMs = backOffMs({ fraction: () => 1 }, this.#refusals, REMOVAL_RETRY_MS_MIN, REMOVAL_RETRY_MS_MAX);
      this.#removeNotBeforeMs = clock.monotonicMs() + waitMs;
      if (this.#refusals > 1) return;
      const { key, code, message } = refusal;
      log.warn(
        "the store refuses to delete what the mirror needs no more, which stays and is tried again: check the right to delete objects",
        {
          key,
          code,
          reason: boundedText(message, PROBLEM_CHARACTERS_MAX),
        },
      );
    } else if (this.#refusals > 0 && !this.#snapshots.hasOlder) {
      this.#refusals = 0;
      log.info("the store takes deletes of the mirror again");
    }
  }

  /** Its cost follows what changed: only so much log makes a whole snapshot worth it. */
  #isSnapshotDue(): boolean {
    const { snapshotIndex } = this.#options.metadata;
    if (snapshotIndex <= this.#snapshots.newestIndex) return false;
    if (!this.#hasBase) return true;
    const { bytes, chunks } = this.#rows.weightUpTo(snapshotIndex);
    return (
      chunks >= MIRROR_CHUNKS_MAX ||
      bytes > Math.max(this.#options.snapshotLogBytes ?? MIRROR_SNAPSHOT_LOG_BYTES, this.#snapshots.newestBytes / 2)
    );
  }

  /** Mirrors the stored snapshot, whether it is due or not. False where that is mirrored already. */
  takeSnapshot(): Promise<boolean> {
    this.#taking ??= this.#snapshots
      .take()
      .then((isTaken) => {
        this.#rows.forgetUpTo(this.#snapshots.newestIndex);
        return isTaken;
      })
      .finally(() => {
        this.#taking = null;
      });
    return this.#taking;
  }
}
