/**
 * The command log that a restore makes of the mirror: the newest complete snapshot and the log behind it, in a database
 * of its own, loaded and applied by the real metadata log. A damaged snapshot gives way to the one before.
 */
import { isPicoError, PicoError } from "../lib/errors.ts";
import { decodeBatch } from "../metadata/command-format.ts";
import { MetadataLog } from "../metadata/metadata-log.ts";
import { mirrorPrefix } from "../mirror/mirror-object.ts";
import { type DamagedChunk, findMirror, type MirrorContents, readMirroredLog } from "../mirror/mirror-reader.ts";
import { mirroredRows, readSnapshotManifest } from "../mirror/snapshot-reader.ts";
import type { LogRow, SqlStore } from "../sql/sql-store.ts";
import type { RestoreOptions } from "./restore-options.ts";

export class RestoredLog {
  readonly #options: RestoreOptions;
  /** Index of the snapshot that the log was put behind; 0: there was none, and all of the log. */
  readonly snapshotIndex: number;
  readonly sql: SqlStore;
  readonly #createdIds = new Set<number>();
  readonly #losses: string[] = [];
  /** Keys of the chunks that were listed. */
  readonly #chunkKeys: ReadonlySet<string>;
  #metadata: MetadataLog | null = null;

  private constructor(options: RestoreOptions, contents: MirrorContents, snapshotIndex: number, sql: SqlStore) {
    this.#options = options;
    this.#chunkKeys = new Set(contents.chunks.map(({ key }) => key));
    this.snapshotIndex = snapshotIndex;
    this.sql = sql;
  }

  /**
   * `problems` gets what was passed over. Throws `settings` (fact `isStartup`) where the store has no mirror, `corrupt`
   * where none of it can be used; what was opened is closed then.
   */
  static async load(options: RestoreOptions, problems: string[]): Promise<RestoredLog> {
    const { store, clusterId } = options;
    const contents = await findMirror(store, clusterId);
    if (contents.chunks.length === 0 && contents.snapshots.length === 0) {
      throw new PicoError(
        "settings",
        `${store.description} has no mirror of a command log below ${mirrorPrefix(clusterId)}; name the node's own --storage and --cluster-id`,
        { isStartup: true },
      );
    }
    for (const index of [...contents.snapshots, 0]) {
      try {
        return await RestoredLog.#loadFrom(options, contents, index);
      } catch (error) {
        if (!isPicoError(error, "corrupt")) throw error;
        problems.push(`${index === 0 ? "the log from its start" : `the snapshot at ${index}`} could not be used: ${error.message}`);
      }
    }
    throw new PicoError("corrupt", `not restored: the mirror in ${store.description} is damaged: ${problems.join("; ")}`, {
      where: mirrorPrefix(clusterId),
    });
  }

  static async #loadFrom(options: RestoreOptions, contents: MirrorContents, snapshotIndex: number): Promise<RestoredLog> {
    const loading = new RestoredLog(options, contents, snapshotIndex, await options.openDatabase());
    try {
      await loading.#read(contents);
      return loading;
    } catch (error) {
      await loading.close();
      throw error;
    }
  }

  get metadata(): MetadataLog {
    if (this.#metadata === null) throw new PicoError("internal", "a restored log is used before it is loaded");
    return this.#metadata;
  }

  /** Streams that the restored rows create: ids of a block are given out in order. */
  get createdIds(): ReadonlySet<number> {
    return this.#createdIds;
  }

  /** What the mirror had and cannot be read: only `isForced` passes over it. */
  get losses(): readonly string[] {
    return this.#losses;
  }

  /** Whether somebody wrote to the mirror since it was listed. */
  async isOvertaken(): Promise<boolean> {
    const { store, clusterId } = this.#options;
    const { chunks } = await findMirror(store, clusterId);
    return chunks.some(({ key }) => !this.#chunkKeys.has(key));
  }

  async close(): Promise<void> {
    await this.#metadata?.stop();
    await this.sql.close();
  }

  /** Throws `corrupt` where snapshot and log do not fit together, or are damaged. */
  async #read(contents: MirrorContents): Promise<void> {
    const { store, clusterId, clock, random, log, onProgress } = this.#options;
    const { sql, snapshotIndex } = this;
    let identity = snapshotIndex === 0 ? null : await this.#importSnapshot();
    let rows = 0;
    const from = Math.max(1, snapshotIndex);
    const end = await readMirroredLog(store, clusterId, contents.chunks, from, async (logRows, clusterIdentity) => {
      if (identity === null) await sql.open(clusterIdentity);
      identity ??= clusterIdentity;
      if (identity !== clusterIdentity) throw new PicoError("corrupt", `two databases were mirrored below ${mirrorPrefix(clusterId)}`, {});
      await sql.importPart({ snapshotRows: [], snapshotHead: null, logRows });
      this.#noteCreates(logRows);
      rows += logRows.length;
      onProgress({ step: "log", done: rows });
    });
    if (end.resumesAt !== null) {
      throw new PicoError(
        "corrupt",
        `the mirrored log breaks off at ${end.lastIndex} and goes on at ${end.resumesAt} (${reasonsOf(end.damage) || "objects between are missing"})`,
        { where: mirrorPrefix(clusterId) },
      );
    }
    if (end.lastIndex < from) throw new PicoError("corrupt", `the log has no row ${from}: ${reasonsOf(end.damage)}`, {});
    this.#metadata = await MetadataLog.open({
      store: sql,
      clock,
      random,
      logger: log,
      onFatal: (error) => log.error("the restore failed", { error }),
    });
    for (const { streamId } of this.#metadata.view.streams()) this.#createdIds.add(streamId);
    // Only what no other chunk holds: a chunk that reads back damaged is written again by the node that finds it.
    const lostTail = end.damage.filter(({ first }) => first > end.lastIndex);
    if (lostTail.length > 0) this.#losses.push(`the last commands of the log cannot be read (${reasonsOf(lostTail)})`);
  }

  #noteCreates(rows: readonly LogRow[]): void {
    for (const row of rows) {
      for (const command of decodeBatch(row.payload, `log row ${row.index}`).commands) {
        if (command.type === "create_stream") this.#createdIds.add(command.streamId);
      }
    }
  }

  /** Returns the cluster identity. */
  async #importSnapshot(): Promise<string> {
    const { store, clusterId, onProgress } = this.#options;
    const { sql, snapshotIndex: index } = this;
    const manifest = await readSnapshotManifest(store, clusterId, index);
    if (manifest === null) throw new PicoError("corrupt", `the snapshot at ${index} has lost its manifest`, {});
    await sql.open(manifest.clusterIdentity);
    let rows = 0;
    for await (const snapshotRows of mirroredRows(store, clusterId, manifest)) {
      await sql.importPart({ snapshotRows, snapshotHead: null, logRows: [] });
      rows += snapshotRows.length;
      onProgress({ step: "snapshot", done: rows });
    }
    await sql.importPart({ snapshotRows: [], snapshotHead: manifest.head, logRows: [] });
    return manifest.clusterIdentity;
  }
}

function reasonsOf(damage: readonly DamagedChunk[]): string {
  return damage.map(({ reason }) => reason).join("; ");
}
