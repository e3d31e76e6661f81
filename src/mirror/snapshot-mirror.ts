/**
 * Copies the stored snapshot into the bucket, so that a restore reads little log, and deletes what is no longer
 * needed for one.
 *
 * Invariants:
 * - The parts come from one consistent read of the database; the manifest is created when all of them are
 *   stored, and only behind a log that is mirrored up to the snapshot's index.
 * - A snapshot counts as complete once manifest and parts were read back, and add up to its number and sum of rows.
 * - Nothing is deleted but what lies below the newest complete snapshot but one. A manifest goes before its parts.
 *   What the store refuses to delete is tried again.
 */
import { equalBytes } from "../lib/bytes.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { MIRROR_PART_BYTES, OBJECT_DELETE_KEYS_MAX } from "../lib/limits.ts";
import { RowSum } from "../metadata/state-hash.ts";
import type { SnapshotHead, SnapshotRow, SqlStore } from "../sql/sql-store.ts";
import { type DeleteRefusal, listAll, type ObjectStore } from "../storage/object-store.ts";
import {
  checksumOf,
  logPrefix,
  type MirroredCluster,
  manifestKey,
  parseLogKey,
  parseSnapshotKey,
  partKey,
  snapshotPrefix,
} from "./mirror-object.ts";
import { encodeSnapshotManifest, encodeSnapshotPart, type SnapshotManifest } from "./mirrored-snapshot.ts";
import { readSnapshotManifest, verifyMirroredSnapshot } from "./snapshot-reader.ts";

export interface SnapshotMirrorOptions {
  readonly store: ObjectStore;
  readonly sql: SqlStore;
  readonly cluster: MirroredCluster;
  /** Resolves with true once the log is mirrored up to the index. */
  readonly coversLog: (index: number) => Promise<boolean>;
}

export class SnapshotMirror {
  readonly #options: SnapshotMirrorOptions;
  /** Indexes of snapshots with a manifest, ascending, that of the newest readable; null until the bucket was asked. */
  #indexes: readonly number[] | null = null;
  #newestBytes = 0;
  /** A snapshot was completed here, and lower objects may be left. */
  #hasOlder = false;

  constructor(options: SnapshotMirrorOptions) {
    this.#options = options;
  }

  /** Index of the newest snapshot with a readable manifest; 0 where none is known. */
  get newestIndex(): number {
    return this.#indexes?.at(-1) ?? 0;
  }

  /** Bytes of the newest one's parts; 0 until it was read. */
  get newestBytes(): number {
    return this.#newestBytes;
  }

  get hasOlder(): boolean {
    return this.#hasOlder;
  }

  /** Asks the bucket what is there. */
  async look(): Promise<void> {
    const { store, cluster } = this.#options;
    const indexes: number[] = [];
    for await (const { key } of listAll(store, snapshotPrefix(cluster.clusterId))) {
      const name = parseSnapshotKey(cluster.clusterId, key);
      if (name?.isManifest) indexes.push(name.index);
    }
    indexes.sort((left, right) => left - right);
    let newest: SnapshotManifest | null = null;
    // One that cannot be read stands for nothing, so that no delete may rely on it.
    for (let index = indexes.at(-1); index !== undefined && newest === null; index = indexes.at(-1)) {
      newest = await this.#readManifest(index);
      if (newest === null) indexes.pop();
    }
    this.#indexes = indexes;
    this.#newestBytes = newest === null ? 0 : bytesOf(newest);
  }

  /** What `look` found, asked once. */
  async known(): Promise<void> {
    if (this.#indexes === null) await this.look();
  }

  /**
   * Copies the stored snapshot. False where there is none above the newest mirrored one, or the log is not
   * mirrored up to it. Throws `corrupt` where the database's snapshot is damaged.
   */
  async take(): Promise<boolean> {
    const { cluster, coversLog } = this.#options;
    await this.known();
    const parts: { bytes: number; checksum: bigint }[] = [];
    const sum = new RowSum();
    let rows: SnapshotRow[] = [];
    let bytes = 0;
    const flush = async (index: number) => {
      const part = encodeSnapshotPart(cluster, index, parts.length, rows);
      await this.#create(partKey(cluster.clusterId, index, parts.length), part);
      parts.push({ bytes: part.length, checksum: checksumOf(part) });
      rows = [];
      bytes = 0;
    };
    const head = await this.#readSnapshot(async (page, { index }) => {
      for (const row of page) {
        sum.add(row.key, row.value);
        rows.push(row);
        bytes += row.key.length + row.value.length;
        if (bytes >= MIRROR_PART_BYTES) await flush(index);
      }
    });
    if (head === null) return false;
    if (sum.rowCount !== head.rowCount || sum.rowSum !== head.rowSum) {
      throw new PicoError(
        "corrupt",
        `the metadata snapshot in ${this.#options.sql.description} is damaged; the mirror keeps the one before`,
        {
          where: "metadata snapshot",
        },
      );
    }
    if (rows.length > 0) await flush(head.index);
    if (!(await coversLog(head.index))) return false;
    const manifest = { head, parts };
    await this.#create(manifestKey(cluster.clusterId, head.index), encodeSnapshotManifest(cluster, manifest));
    await this.#verify(manifest);
    this.#indexes = [...(this.#indexes ?? []).filter((index) => index !== head.index), head.index].sort((left, right) => left - right);
    this.#newestBytes = bytesOf(manifest);
    this.#hasOlder = true;
    return true;
  }

  /** Null where the stored snapshot is not above the newest mirrored one; then no row was handed over. */
  async #readSnapshot(onRows: (rows: readonly SnapshotRow[], head: SnapshotHead) => Promise<void>): Promise<SnapshotHead | null> {
    const stale = new Error("nothing to copy");
    try {
      const head = await this.#options.sql.readSnapshot(async (rows, { index, ...others }) => {
        if (index <= this.newestIndex) throw stale;
        await onRows(rows, { index, ...others });
      });
      return head.index <= this.newestIndex ? null : head;
    } catch (error) {
      if (error === stale) return null;
      throw error;
    }
  }

  /** Deletes what the newest complete snapshot but one makes needless. `isHeld`, asked before each delete: removal is held, or not this node's. Returns a key that the store refused, if any. */
  async removeOlder(isHeld: () => boolean): Promise<DeleteRefusal | null> {
    const { store, cluster } = this.#options;
    const { clusterId } = cluster;
    const keep = this.#indexes?.at(-2);
    if (!this.#hasOlder || isHeld()) return null;
    if (keep === undefined) {
      this.#hasOlder = false;
      return null;
    }
    const manifests: string[] = [];
    const parts: string[] = [];
    for await (const { key } of listAll(store, snapshotPrefix(clusterId))) {
      const name = parseSnapshotKey(clusterId, key);
      if (name === null || name.index >= keep) continue;
      (name.isManifest ? manifests : parts).push(key);
    }
    const chunks = await this.#chunksBelow(keep);
    // Where a manifest stays, its parts do.
    const first = await this.#delete(manifests, isHeld);
    const { isDone, refusal } = first.isDone ? await this.#delete([...parts, ...chunks], isHeld) : first;
    this.#hasOlder = !isDone;
    if (isDone) this.#indexes = (this.#indexes ?? []).filter((index) => index >= keep);
    return refusal;
  }

  /** Keys of chunks whose last row is below `index`, whose own row a restore needs. */
  async #chunksBelow(index: number): Promise<string[]> {
    const { store, cluster } = this.#options;
    const stored: { readonly key: string; readonly first: number }[] = [];
    for await (const { key } of listAll(store, logPrefix(cluster.clusterId))) {
      const name = parseLogKey(cluster.clusterId, key);
      if (name !== null && name.first <= index) stored.push({ key, first: name.first });
    }
    const from = stored.reduce((highest, { first }) => Math.max(highest, first), 0);
    return stored.filter(({ first }) => first < from).map(({ key }) => key);
  }

  /** `isDone`: all of them are gone. `refusal`: the first of those that were refused. */
  async #delete(keys: readonly string[], isHeld: () => boolean): Promise<{ isDone: boolean; refusal: DeleteRefusal | null }> {
    let refusal: DeleteRefusal | null = null;
    for (let at = 0; at < keys.length; at += OBJECT_DELETE_KEYS_MAX) {
      if (isHeld()) return { isDone: false, refusal };
      const outcomes = await this.#options.store.delete(keys.slice(at, at + OBJECT_DELETE_KEYS_MAX));
      for (const outcome of outcomes) if (!outcome.deleted) refusal ??= outcome;
    }
    return { isDone: refusal === null, refusal };
  }

  /** Rows, their order and the size of parts decide the bytes: what another mirror wrote under the key is the same, or of another program. */
  async #create(key: string, bytes: Uint8Array): Promise<void> {
    const { store } = this.#options;
    let doubt: unknown = null;
    try {
      if ((await store.create(key, bytes)) === "created") return;
    } catch (error) {
      if (!isPicoError(error, "unknown_outcome")) throw error;
      doubt = error;
    }
    const found = await store.read(key);
    if (found !== null && equalBytes(found, bytes)) return;
    const what = found === null ? "may not have been stored" : "is there with other bytes";
    throw new PicoError("storage_failed", `${key} ${what}; the mirror tries again`, { key }, doubt);
  }

  /** What does not read back is no reason to stop the node: the next snapshot will do. */
  async #verify(manifest: SnapshotManifest): Promise<void> {
    const { store, cluster } = this.#options;
    try {
      await verifyMirroredSnapshot(store, cluster.clusterId, manifest);
    } catch (error) {
      if (!isPicoError(error, "corrupt")) throw error;
      throw new PicoError("storage_failed", `the mirrored snapshot ${manifest.head.index} does not read back: ${error.message}`, {}, error);
    }
  }

  async #readManifest(index: number): Promise<SnapshotManifest | null> {
    const { store, cluster } = this.#options;
    try {
      return await readSnapshotManifest(store, cluster.clusterId, index);
    } catch (error) {
      if (isPicoError(error, "corrupt")) return null;
      throw error;
    }
  }
}

function bytesOf({ parts }: SnapshotManifest): number {
  return parts.reduce((sum, { bytes }) => sum + bytes, 0);
}
