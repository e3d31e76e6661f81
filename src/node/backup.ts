/**
 * A copy of a node's state while the node runs, made from its files alone: what a power cut at one moment
 * would have left, so that starting a node on the copy is a recovery like any other.
 *
 * The moment is that of the metadata's copy; everything acknowledged before it is in the backup:
 *
 * 1. The metadata, in one read of the database. It is loaded and verified, and names what else belongs to it.
 * 2. Every live data object that it names. Objects never change, so any time of copying is right.
 * 3. The WAL segments behind its committed position, as far as they follow each other.
 * 4. A look at the log behind the copy: were segments committed since that step 3 did not find, the node may
 *    have trimmed them before. Then 1 to 4 begin again; objects are not copied twice.
 *
 * An object that was removed before step 2 came to it begins 1 to 4 again as well: the next metadata does not name it
 * any more. Rounds get shorter, since each copies only what is new; so no removal has to be held for them.
 *
 * The metadata alone would not do: a trim, a fork or a create may refer to records that are in the WAL only.
 *
 * Invariants:
 * - The node is never asked, nothing of it is locked, and no byte of it is changed.
 * - The metadata gets its name last, when everything else is on the disk: a backup that was cut short is
 *   no data directory.
 */
import fs from "node:fs/promises";
import { join } from "node:path";
import { LocalDiskWal } from "../engine/wal-store-local.ts";
import { inspectWal } from "../engine/wal-takeover.ts";
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import { type RegistrationName, sameRegistration } from "../lib/registration.ts";
import { decodeBatch } from "../metadata/command-format.ts";
import { type ObjectEntry, objectKey, type RegistrationEntry } from "../metadata/entries.ts";
import { MetadataLog } from "../metadata/metadata-log.ts";
import { SqliteSource } from "../sql/sqlite-source.ts";
import { SqliteStore } from "../sql/sqlite-store.ts";
import { makeFolder, syncFolder } from "../storage/durable-folder.ts";
import { inFiles } from "../storage/file-error.ts";
import { FileObjectStore } from "../storage/file-object-store.ts";
import { NodeLocalDirectory } from "../storage/local-directory-node.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { type BackupSources, findSources, prepareTarget } from "./backup-places.ts";
import { lateSyncDirectory, WalSource } from "./backup-wal.ts";
import { hasSurelyWritten, missingWal } from "./database-witness.ts";
import type { StoredPlaces } from "./settings.ts";

export interface BackupOptions {
  /** Where the node keeps its state. */
  readonly places: StoredPlaces;
  /** Absolute; absent, or an empty folder. Becomes a data directory. */
  readonly target: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Told before each unit of work. */
  readonly onProgress: (progress: BackupProgress) => void;
}

export interface BackupProgress {
  readonly step: "metadata" | "objects" | "wal";
  /** Units of the step that are done, and all of them: objects, or segments of one WAL. 0 of 0 for the metadata. */
  readonly done: number;
  readonly total: number;
}

export interface BackupReport {
  /** Index in the command log at which the copy stands, and the hash of the state there, 16 hex digits. */
  readonly appliedIndex: number;
  readonly stateHash: string;
  readonly streams: number;
  readonly objects: number;
  readonly objectBytes: number;
  readonly segments: number;
  readonly segmentBytes: number;
}

/** What the copied metadata says. */
interface CopiedMetadata {
  readonly appliedIndex: number;
  readonly stateHash: string;
  readonly streams: number;
  readonly objects: readonly ObjectEntry[];
  /** Whose WALs are not wholly uploaded. */
  readonly unended: readonly RegistrationEntry[];
}

interface WalFigures {
  readonly segments: number;
  readonly segmentBytes: number;
}

const METADATA_NAME = "meta.db";
const UNFINISHED_NAME = "meta.db.unfinished";
/** Uploads that may come between; a node uploads once a minute, or a hundred MiB. */
const ROUNDS_MAX = 20;
const FAILED_OPENS_MAX = 3;

/**
 * Copies the state into `target`. Throws `settings` (fact `isStartup`) where a place is not what it should be,
 * `corrupt` where something that the metadata names is missing or damaged, `unavailable` where the node uploads
 * faster than its WAL can be copied, and what the file system and SQLite throw. A failed backup stays as it is.
 */
export async function backUp(options: BackupOptions): Promise<BackupReport> {
  const sources = await findSources(options.places);
  await prepareTarget(options.target);
  return new Backup(options, sources).run();
}

class Backup {
  readonly #options: BackupOptions;
  readonly #sources: BackupSources;
  readonly #unfinishedPath: string;
  /** Bytes by id of the objects that are copied. */
  readonly #copiedObjects = new Map<number, number>();
  /** Objects that were missing in an earlier round; they may have been replaced meanwhile. */
  readonly #missingObjects = new Set<number>();
  #failedOpens = 0;

  constructor(options: BackupOptions, sources: BackupSources) {
    this.#options = options;
    this.#sources = sources;
    this.#unfinishedPath = join(options.target, UNFINISHED_NAME);
  }

  async run(): Promise<BackupReport> {
    const { clock, random, target } = this.#options;
    const metadata = new SqliteSource(this.#sources.metadataPath);
    const from = await FileObjectStore.open({ path: this.#sources.objectsDirectory, clock, random });
    const to = await FileObjectStore.open({ path: join(target, "objects"), clock, random });
    try {
      for (let round = 1; round <= ROUNDS_MAX; round++) {
        const report = await this.#tryOnce(metadata, from, to);
        if (report !== null) return report;
      }
    } finally {
      metadata.close();
      await from.close();
      await to.close();
    }
    throw new PicoError(
      "unavailable",
      `the node uploaded its WAL, or removed objects, during each of ${ROUNDS_MAX} tries to copy it; remove ${target} and try again when there is less to write, or behind pico admin gc hold`,
      { retryAfterSeconds: 60 },
    );
  }

  /** Null: the node moved on in between. */
  async #tryOnce(metadata: SqliteSource, from: ObjectStore, to: ObjectStore): Promise<BackupReport | null> {
    const copied = await this.#copyMetadata(metadata);
    if (!(await this.#copyObjects(copied, from, to))) return null;
    const wal = await this.#copyWals(metadata, copied);
    if (wal === null) return null;
    await this.#finish();
    const { appliedIndex, stateHash, streams, objects } = copied;
    const objectBytes = objects.reduce((sum, { objectId }) => sum + (this.#copiedObjects.get(objectId) ?? 0), 0);
    return { appliedIndex, stateHash, streams, objects: objects.length, objectBytes, ...wal };
  }

  async #copyMetadata(metadata: SqliteSource): Promise<CopiedMetadata> {
    const { clock, random, log, onProgress } = this.#options;
    onProgress({ step: "metadata", done: 0, total: 0 });
    const path = this.#unfinishedPath;
    await inFiles("remove", path, () => fs.rm(path, { force: true }));
    metadata.copyTo(path);
    const store = new SqliteStore({ path, clock });
    try {
      const copy = await MetadataLog.open({
        store,
        clock,
        random,
        logger: log,
        onFatal: (error) => log.error("the copy failed", { error }),
      });
      const { index, rowSum } = copy.stateHash();
      const objects = [...copy.view.objects()].filter(({ state }) => state === "live");
      const unended = [...copy.view.registrations()].filter(({ state }) => state !== "ended");
      await copy.stop();
      assertOneNode(unended);
      return {
        appliedIndex: index,
        stateHash: rowSum.toString(16).padStart(16, "0"),
        streams: copy.view.streamCount,
        objects,
        unended,
      };
    } finally {
      await store.close();
    }
  }

  /** False where an object is missing for the first time. */
  async #copyObjects({ objects }: CopiedMetadata, from: ObjectStore, to: ObjectStore): Promise<boolean> {
    const { onProgress } = this.#options;
    const missing: ObjectEntry[] = [];
    for (const [done, entry] of objects.entries()) {
      onProgress({ step: "objects", done, total: objects.length });
      if (this.#copiedObjects.has(entry.objectId)) continue;
      const key = objectKey(this.#sources.clusterId, entry);
      const bytes = await from.read(key);
      if (bytes === null) {
        if (this.#missingObjects.has(entry.objectId)) throw missingObject(key, from);
        missing.push(entry);
        continue;
      }
      assertSize(key, from, bytes.length, entry.summary?.sizeBytes ?? null);
      await to.create(key, bytes);
      this.#copiedObjects.set(entry.objectId, bytes.length);
    }
    for (const { objectId } of missing) this.#missingObjects.add(objectId);
    return missing.length === 0;
  }

  /** Null where the files were changed under the reading. */
  async #copyWals(metadata: SqliteSource, copied: CopiedMetadata): Promise<WalFigures | null> {
    const total = { segments: 0, segmentBytes: 0 };
    const path = join(this.#options.target, "wal");
    await inFiles("remove", path, () => fs.rm(path, { recursive: true, force: true }));
    await inFiles("create", path, () => makeFolder(path));
    for (const entry of copied.unended) {
      const figures = await this.#copyWal(metadata, copied, entry, path);
      if (figures === null) return null;
      total.segments += figures.segments;
      total.segmentBytes += figures.segmentBytes;
    }
    return total;
  }

  async #copyWal(metadata: SqliteSource, copied: CopiedMetadata, entry: RegistrationEntry, path: string): Promise<WalFigures | null> {
    const { name, fencedNumber, committedNumber } = entry;
    const { random, clock, onProgress } = this.#options;
    const position = fencedNumber ?? committedNumber;
    const from = await this.#openWal(name, position);
    if (from === null) return null;
    const to = await LocalDiskWal.open({ directory: lateSyncDirectory(new NodeLocalDirectory(path)), random });
    let segmentBytes = 0;
    let number = position + 1;
    try {
      // Also where no segment follows: a node takes a WAL without files for one that got lost.
      await to.begin(name);
      for (let bytes = await from.read(number); bytes !== null; bytes = await from.read(number)) {
        onProgress({ step: "wal", done: number - position - 1, total: from.count });
        await to.create(name, number, bytes);
        segmentBytes += bytes.length;
        number += 1;
      }
      const trouble = await from.troubleAt(number);
      const trimmable = committedSince(metadata, copied.appliedIndex, name);
      if (trimmable === null || trimmable >= number) return null;
      // A file that was trimmed, or is used again, would look like that too, but there is none.
      if (trouble !== null) throw trouble;
      if (hasSurelyWritten(entry) && !(await from.isPresent())) {
        // It may have ended since the metadata was copied; the next round knows.
        this.#failedOpens += 1;
        if (this.#failedOpens >= FAILED_OPENS_MAX) throw missingWal(entry, from.description);
        return null;
      }
      const { lastNumber } = await inspectWal({ store: to, clock, random, registration: name, position });
      assert(lastNumber === number - 1, "a copied WAL reads back to its last segment");
    } finally {
      await from.close();
      await to.close();
    }
    return { segments: number - position - 1, segmentBytes };
  }

  /** Null where a file was trimmed away between the list and the reading; a folder that cannot be read stays so. */
  async #openWal(name: RegistrationName, position: number): Promise<WalSource | null> {
    try {
      return await WalSource.open(this.#sources.walDirectory, name, position, this.#options.random);
    } catch (error) {
      this.#failedOpens += 1;
      if (!isPicoError(error, "storage_failed") || this.#failedOpens >= FAILED_OPENS_MAX) throw error;
      return null;
    }
  }

  async #finish(): Promise<void> {
    const { target } = this.#options;
    await inFiles("sync", target, async () => {
      await syncFolder(join(target, "wal"));
      await syncFolder(target);
      await fs.rename(this.#unfinishedPath, join(target, METADATA_NAME));
      await syncFolder(target);
    });
  }
}

/**
 * The highest number of a WAL that was committed, or proposed to be, since the copy of the metadata: what lies
 * above it is not trimmed. 0 where there was no commit; null where the log does not reach back that far any more.
 */
function committedSince(metadata: SqliteSource, index: number, wal: RegistrationName): number | null {
  let highest = 0;
  const rows = metadata.readLogAbove(index);
  for (const row of rows ?? []) {
    for (const command of decodeBatch(row.payload, `command log row ${row.index}`).commands) {
      if (command.type === "commit" && sameRegistration(command.wal, wal)) highest = Math.max(highest, command.to);
      if (command.type === "end" && sameRegistration(command.victim, wal)) highest = Math.max(highest, command.lastNumber);
    }
  }
  return rows === null ? null : highest;
}

/** The WALs of other nodes are where those run. */
function assertOneNode(unended: readonly RegistrationEntry[]): void {
  const ids = [...new Set(unended.map(({ name }) => name.nodeId))];
  if (ids.length <= 1) return;
  throw new PicoError(
    "settings",
    `the nodes ${ids.join(", ")} share this state and each has a WAL of its own; stop all but one of them first`,
    {
      isStartup: true,
    },
  );
}

function assertSize(key: string, store: ObjectStore, found: number, expected: number | null): void {
  if (found === expected) return;
  throw new PicoError(
    "corrupt",
    `the data object ${key} in ${store.description} has ${found} bytes instead of ${expected}; nothing was backed up`,
    {
      where: key,
    },
  );
}

function missingObject(key: string, store: ObjectStore): PicoError {
  return new PicoError(
    "corrupt",
    `the metadata names the data object ${key}, which is not in ${store.description}; is this the node's storage, and --cluster-id its cluster?`,
    { where: key },
  );
}
