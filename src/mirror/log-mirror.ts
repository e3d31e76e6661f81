/**
 * Copies the command log into the bucket, chunk behind chunk.
 *
 * Invariants:
 * - Rows are immutable and a chunk is created once, under the index of its first row. So several mirrors of one
 *   log may be at work: who finds a chunk there takes it, if its rows are ours, and goes on behind its last one.
 * - A row in the mirror that our database has otherwise, or not at all, means that the database was set back or that
 *   two of them use one bucket: `corrupt`, and nothing is written behind it (FAULTS D1).
 * - `coveredIndex` rises only behind a create that the store confirmed, or a chunk that was read back.
 */
import { assert } from "../lib/assert.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { MIRROR_CHUNK_ROWS_MAX, MIRROR_REPAIRS_MAX } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { LogRow, SqlStore } from "../sql/sql-store.ts";
import { listAll, type ObjectStore } from "../storage/object-store.ts";
import { decodeLogChunk, encodeLogChunk, type LogChunk } from "./log-chunk.ts";
import { logKey, logPrefix, type MirroredCluster, parseLogKey } from "./mirror-object.ts";

export interface LogMirrorOptions {
  readonly store: ObjectStore;
  readonly sql: SqlStore;
  readonly cluster: MirroredCluster;
  readonly log: Logger;
}

/** The last mirrored row. */
interface MirrorEnd {
  readonly index: number;
  /** Null where its chunk could not be read. */
  readonly rowId: string | null;
  readonly unbrokenFrom: number;
}

interface StoredChunk {
  readonly first: number;
  readonly repair: number;
  readonly bytes: number;
}

export class LogMirror {
  readonly #options: LogMirrorOptions;
  /** Null until the bucket was asked. */
  #end: MirrorEnd | null = null;
  /** Chunks whose last row is above the newest snapshot, as far as is known: for when the next is due. */
  #chunks: { readonly last: number; readonly bytes: number }[] = [];
  #round: Promise<void> | null = null;

  constructor(options: LogMirrorOptions) {
    this.#options = options;
  }

  /** Every row from `unbrokenFrom` up to here is in the bucket; 0 until the bucket was asked. */
  get coveredIndex(): number {
    return this.#end?.index ?? 0;
  }

  get unbrokenFrom(): number {
    return this.#end?.unbrokenFrom ?? 1;
  }

  /** Bytes and number of the chunks that a snapshot at `index` would stand for. */
  weightUpTo(index: number): { readonly bytes: number; readonly chunks: number } {
    const below = this.#chunks.filter(({ last }) => last <= index);
    return { bytes: below.reduce((sum, { bytes }) => sum + bytes, 0), chunks: below.length };
  }

  /** A snapshot stands for the log up to `index`. */
  forgetUpTo(index: number): void {
    this.#chunks = this.#chunks.filter(({ last }) => last > index);
  }

  /**
   * Copies what the log holds and the bucket does not; a call while another is at work shares it. Throws `corrupt`
   * where the bucket has another log, and as database and store do.
   */
  copy(): Promise<void> {
    this.#round ??= this.#copyAll().finally(() => {
      this.#round = null;
    });
    return this.#round;
  }

  /** Asks the bucket what it has, if it was not asked yet. Throws as `copy`. */
  async find(): Promise<MirrorEnd> {
    this.#end ??= await this.#findEnd();
    return this.#end;
  }

  async #copyAll(): Promise<void> {
    const { sql } = this.#options;
    let isFresh = this.#end === null;
    for (;;) {
      const { index, rowId } = await this.find();
      // From the last mirrored row on, which must still be ours.
      const page = await sql.readLog(Math.max(0, index - 1), MIRROR_CHUNK_ROWS_MAX);
      if (page.head < index) throw this.#setBack(index, `ends at ${page.head}`);
      const last = page.rows.find((row) => row.index === index);
      if (last !== undefined && rowId !== null && last.rowId !== rowId) throw this.#setBack(index, "has another row there");
      const rows = page.rows.filter((row) => row.index > index);
      const first = rows[0];
      if (first === undefined) return;
      const isBroken = first.index > index + 1;
      if (isBroken && !isFresh) {
        // Others may have copied it meanwhile, or the bucket may have gone on with another database.
        this.#end = await this.#findEnd();
        isFresh = true;
        continue;
      }
      // The log was truncated while nobody copied it: a snapshot must stand for what is missing.
      await this.#put({ rows, unbrokenFrom: isBroken ? first.index : this.unbrokenFrom });
    }
  }

  /** What is there already; `corrupt` where that is not this log. */
  async #findEnd(): Promise<MirrorEnd> {
    const { store, cluster } = this.#options;
    const stored: StoredChunk[] = [];
    for await (const { key, sizeBytes } of listAll(store, logPrefix(cluster.clusterId))) {
      const name = parseLogKey(cluster.clusterId, key);
      if (name !== null) stored.push({ ...name, bytes: sizeBytes });
    }
    stored.sort((left, right) => left.first - right.first || left.repair - right.repair);
    this.#chunks = stored.slice(0, -1).map(({ bytes }, at) => ({ last: (stored[at + 1]?.first ?? 1) - 1, bytes }));
    const newest = stored.at(-1);
    if (newest === undefined) return { index: 0, rowId: null, unbrokenFrom: 1 };
    const chunk = await this.#read(newest.first, newest.repair);
    if (chunk === "damaged") {
      // Its rows are copied again, under another key.
      const before = stored.findLast(({ first }) => first < newest.first);
      const earlier = before === undefined ? null : await this.#read(before.first, before.repair);
      if (earlier === null || earlier === "damaged") return { index: newest.first - 1, rowId: null, unbrokenFrom: newest.first };
      await this.#checkOurs(earlier.rows);
      return {
        index: newest.first - 1,
        rowId: null,
        unbrokenFrom: lastOf(earlier) === newest.first - 1 ? earlier.unbrokenFrom : newest.first,
      };
    }
    if (chunk === null) {
      throw new PicoError(
        "storage_failed",
        `${logKey(cluster.clusterId, newest.first)} is listed and cannot be read; the mirror tries again`,
        {},
      );
    }
    await this.#checkOurs(chunk.rows);
    this.#note(chunk, newest.bytes);
    return endOf(chunk);
  }

  async #put(chunk: LogChunk): Promise<void> {
    const { store, cluster, log } = this.#options;
    const first = chunk.rows[0]?.index ?? 0;
    const bytes = encodeLogChunk(cluster, chunk);
    for (let repair = 0; repair <= MIRROR_REPAIRS_MAX; repair++) {
      const key = logKey(cluster.clusterId, first, repair);
      const outcome = await store.create(key, bytes).catch((error: unknown) => {
        if (isPicoError(error, "unknown_outcome")) return error;
        throw error;
      });
      if (outcome === "created") return this.#advance(chunk, bytes.length);
      const found = await this.#read(first, repair);
      if (found === null) {
        throw new PicoError("storage_failed", `${key} may not have been stored; the mirror tries again`, { key }, outcome);
      }
      if (found !== "damaged") {
        await this.#checkSame(chunk, found);
        return this.#advance(found, bytes.length);
      }
      log.warn("a chunk of the mirrored log reads back damaged and is written again", { key });
    }
    throw new PicoError("storage_failed", `${logKey(cluster.clusterId, first)} and its repairs all read back damaged`, {});
  }

  #advance(chunk: LogChunk, bytes: number): void {
    this.#end = endOf(chunk);
    this.#note(chunk, bytes);
  }

  #note(chunk: LogChunk, bytes: number): void {
    this.#chunks.push({ last: lastOf(chunk), bytes });
  }

  /** Null where it is not there. Throws `corrupt` for one of another database, `incompatible` for one of a newer program. */
  async #read(first: number, repair: number): Promise<LogChunk | "damaged" | null> {
    const { store, cluster, log } = this.#options;
    const key = logKey(cluster.clusterId, first, repair);
    const bytes = await store.read(key);
    if (bytes === null) return null;
    try {
      const chunk = decodeLogChunk(bytes, cluster.clusterId, first, key);
      if (chunk.clusterIdentity === cluster.clusterIdentity) return chunk;
    } catch (error) {
      if (!isPicoError(error, "corrupt")) throw error;
      log.warn("a chunk of the mirrored log cannot be read", { key, reason: messageOf(error) });
      return "damaged";
    }
    throw new PicoError(
      "corrupt",
      `the bucket ${store.description} has the mirror of another database (${key}); name the right bucket and --cluster-id, or move the database of this start away and make that one with pico restore`,
      { where: key },
    );
  }

  /** A chunk that came first must hold our rows; it may end before or behind what we had. */
  async #checkSame(ours: LogChunk, found: LogChunk): Promise<void> {
    for (const [at, row] of found.rows.entries()) {
      const own = ours.rows[at];
      if (own !== undefined && own.rowId !== row.rowId) throw this.#setBack(row.index, "has another row there");
    }
    if (found.rows.length > ours.rows.length) await this.#checkOurs(found.rows);
  }

  /** Row ids are random: where the last one is the same, so is everything before. */
  async #checkOurs(rows: readonly LogRow[]): Promise<void> {
    const { sql } = this.#options;
    const last = rows.at(-1);
    assert(last !== undefined, "a chunk has rows");
    const rowId = await sql.rowIdAt(last.index);
    if (rowId === last.rowId) return;
    const page = await sql.readLog(last.index, 1);
    if (page.head < last.index) throw this.#setBack(last.index, `ends at ${page.head}`);
    if (rowId !== null) throw this.#setBack(last.index, "has another row there");
    // Truncated: there is nothing left to compare.
  }

  #setBack(index: number, what: string): PicoError {
    const { sql, store } = this.#options;
    return new PicoError(
      "corrupt",
      `the mirror in ${store.description} holds row ${index} of the command log, and ${sql.description} ${what}: the database was lost or set back, ` +
        "or another one goes on with this bucket. Nothing was deleted. Go on with the newest database, or make one from the bucket with pico restore",
      { where: "the mirror of the command log", index },
    );
  }
}

function endOf({ rows, unbrokenFrom }: LogChunk): MirrorEnd {
  const last = rows.at(-1);
  assert(last !== undefined, "a chunk has rows");
  return { index: last.index, rowId: last.rowId, unbrokenFrom };
}

function lastOf(chunk: LogChunk): number {
  return chunk.rows.at(-1)?.index ?? 0;
}
