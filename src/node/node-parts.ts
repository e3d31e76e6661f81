/** Opens the seams that the settings name, and closes them in the other order. */
import { join } from "node:path";
import type { WalStore } from "../engine/wal-store.ts";
import { LocalDiskWal } from "../engine/wal-store-local.ts";
import { ObjectWal } from "../engine/wal-store-object.ts";
import { systemClock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import { systemRandom } from "../lib/random.ts";
import { openPostgresStore } from "../sql/postgres-opener.ts";
import type { PostgresStore } from "../sql/postgres-store.ts";
import type { SqlStore } from "../sql/sql-store.ts";
import { SQLITE_MEMORY_PATH } from "../sql/sqlite-database.ts";
import { SqliteStore } from "../sql/sqlite-store.ts";
import { CountedObjectStore, StoreCounts, type StoreFigures } from "../storage/counted-object-store.ts";
import { FileObjectStore } from "../storage/file-object-store.ts";
import { NodeLocalDirectory } from "../storage/local-directory-node.ts";
import { MemoryObjectStore } from "../storage/memory-object-store.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { isUnwritten } from "../storage/path-facts.ts";
import { openS3ObjectStore } from "../storage/s3-opener.ts";
import { type S3Place, sameS3Place } from "../storage/s3-place.ts";
import { admitBucket } from "./bucket-admission.ts";
import { EXCLUSIVE_LIFE, type LifeLock, UNPROVEN_LIFE } from "./life-lock.ts";
import { assertDatabaseNotMissing, type StartSeams } from "./missing-database.ts";
import { NodeIdLock } from "./node-id-lock.ts";
import { awaitPostgres } from "./postgres-admission.ts";
import { openPostgresWal } from "./postgres-wal.ts";
import type { MetadataSettings, Settings, StorageSettings } from "./settings.ts";

export interface NodeParts {
  readonly sql: SqlStore;
  readonly store: ObjectStore;
  readonly wal: WalStore;
  /** Calls to buckets and the directory of data objects; a WAL on local disk is no store of objects. */
  readonly storeFigures: StoreFigures;
  readonly lifeLock: LifeLock;
  close(): Promise<void>;
}

/**
 * The lock comes first: held, it proves that no other process of this node id lives on this host, and nothing
 * is touched before. The database comes last: where it is missing none is made beside stores that need another one.
 * Throws `locked`, `storage_failed`, `storage_full`, and what `admitBucket`, `awaitPostgres` and `assertDatabaseNotMissing` throw.
 */
export async function openParts(settings: Settings, log: Logger, stopping: AbortSignal): Promise<NodeParts> {
  const opened: { close(): Promise<void> }[] = [];
  const close = async () => {
    for (const part of opened.reverse()) await part.close();
  };
  let lock: NodeIdLock | null = null;
  try {
    if (settings.metadata.kind === "sqlite-file" && settings.wal.kind !== "local") {
      const directory = new NodeLocalDirectory(join(`${settings.metadata.path}.nodes`, String(settings.nodeId)));
      // A WAL in memory is nobody's to take over.
      lock = await NodeIdLock.take({ directory, clock: systemClock, log, canGoWithout: settings.wal.kind !== "memory" });
      opened.push(lock);
    }
    const stores = await openStores(settings, log, stopping, opened);
    const { clusterId, isMirrored, metadata, wal } = settings;
    const beside = { ...stores, clusterId, isMirrored };
    const seams = { clock: systemClock, random: systemRandom, log, stopping };
    if (metadata.kind === "sqlite-file") {
      const { path } = metadata;
      await assertDatabaseNotMissing({ lack: `there is no database at ${path}`, isMissing: () => isUnwritten(path) }, beside, seams);
    }
    const sql = await openSql(metadata, log);
    opened.push(sql);
    if (sql instanceof SqliteStore) return { sql, ...stores, lifeLock: lock ?? EXCLUSIVE_LIFE, close };
    await awaitPostgres("--meta-url", () => sql.schemaVersion(), seams);
    const lack = `the database ${sql.description} is empty`;
    await assertDatabaseNotMissing({ lack, isMissing: async () => (await sql.schemaVersion()) === null }, beside, seams);
    return { sql, ...stores, lifeLock: wal.kind === "local" ? EXCLUSIVE_LIFE : UNPROVEN_LIFE, close };
  } catch (error) {
    await close();
    throw error;
  }
}

type StoreSettings = Pick<Settings, "clusterId" | "storage" | "wal">;
type StoreParts = Pick<NodeParts, "store" | "wal" | "storeFigures">;

/** Object store and WAL alone. Throws as `openParts`; a WAL on local disk is locked. */
export async function openStoresAlone(
  settings: StoreSettings,
  log: Logger,
  stopping: AbortSignal,
): Promise<StoreParts & { close(): Promise<void> }> {
  const opened: { close(): Promise<void> }[] = [];
  const close = async () => {
    for (const part of opened.reverse()) await part.close();
  };
  try {
    return { ...(await openStores(settings, log, stopping, opened)), close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** What it opens goes to `opened` at once, to be closed in the other order. */
async function openStores(
  settings: StoreSettings,
  log: Logger,
  stopping: AbortSignal,
  opened: { close(): Promise<void> }[],
): Promise<StoreParts> {
  const counts = new StoreCounts(systemClock);
  const openBucket = async (place: S3Place): Promise<ObjectStore> => {
    const bucket = await openS3ObjectStore({ place, clock: systemClock, random: systemRandom, log });
    opened.push(bucket);
    await admitBucket({ store: bucket, clusterId: settings.clusterId, clock: systemClock, random: systemRandom, log, stopping });
    return new CountedObjectStore(bucket, counts, log);
  };
  const { storage, wal: walSettings } = settings;
  if (storage.kind === "s3" && walSettings.kind === "s3" && sameS3Place(storage.place, walSettings.place)) {
    const store = await openBucket(storage.place);
    return { store, wal: new ObjectWal(store, settings.clusterId, walSettings.parameters.inFlightMax), storeFigures: counts.figures };
  }
  const wal = await openWal(settings, openBucket, { clock: systemClock, random: systemRandom, log, stopping });
  opened.push(wal);
  const store = storage.kind === "s3" ? await openBucket(storage.place) : new CountedObjectStore(await openStore(storage), counts, log);
  opened.push(store);
  return { store, wal, storeFigures: counts.figures };
}

type OpenBucket = (place: S3Place) => Promise<ObjectStore>;

async function openWal({ wal, clusterId }: StoreSettings, openBucket: OpenBucket, seams: StartSeams): Promise<WalStore> {
  if (wal.kind === "postgres") return openPostgresWal(wal, clusterId, seams);
  if (wal.kind === "s3") return new ObjectWal(await openBucket(wal.place), clusterId, wal.parameters.inFlightMax);
  if (wal.kind === "memory") return new ObjectWal(new MemoryObjectStore(systemClock), clusterId, wal.parameters.inFlightMax);
  return LocalDiskWal.open({ directory: new NodeLocalDirectory(wal.directory), random: systemRandom });
}

async function openStore(storage: Exclude<StorageSettings, { kind: "s3" }>): Promise<ObjectStore> {
  if (storage.kind === "memory") return new MemoryObjectStore(systemClock);
  return FileObjectStore.open({ path: storage.directory, clock: systemClock, random: systemRandom });
}

async function openSql(metadata: MetadataSettings, log: Logger): Promise<SqliteStore | PostgresStore> {
  const onWarning = (message: string) => log.warn(message);
  if (metadata.kind === "postgres") {
    return openPostgresStore({ place: metadata.place, clock: systemClock, random: systemRandom, onWarning });
  }
  const path = metadata.kind === "sqlite-memory" ? SQLITE_MEMORY_PATH : metadata.path;
  return new SqliteStore({ path, clock: systemClock, onWarning });
}
