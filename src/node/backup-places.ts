/**
 * Where a backup reads and writes, checked before anything is copied.
 */
import { PicoError } from "../lib/errors.ts";
import { formatPostgresPlace, type PostgresPlace } from "../sql/postgres-place.ts";
import { makeFolder } from "../storage/durable-folder.ts";
import { inFiles } from "../storage/file-error.ts";
import { lookAtPath, namesInFolder, type PathFacts } from "../storage/path-facts.ts";
import { formatS3Place, type S3Place } from "../storage/s3-place.ts";
import type { StoredPlaces } from "./settings.ts";

/** The places of the node, all of them in files. */
export interface BackupSources {
  readonly clusterId: string;
  readonly metadataPath: string;
  readonly objectsDirectory: string;
  readonly walDirectory: string;
}

/** Throws `settings` (fact `isStartup`) where a place is missing or in memory. */
export async function findSources({ clusterId, metadata, storage, wal }: StoredPlaces): Promise<BackupSources> {
  if (metadata.kind === "sqlite-memory") throw notInFiles("the metadata");
  if (metadata.kind === "postgres") throw inPostgres("the metadata", metadata.place);
  if (wal.kind === "postgres") throw inPostgres("the WAL", wal.place);
  if (storage.kind === "memory") throw notInFiles("the storage");
  if (wal.kind === "memory") throw notInFiles("the WAL");
  if (storage.kind === "s3") throw inBucket("the storage", storage.place);
  if (wal.kind === "s3") throw inBucket("the WAL", wal.place);
  const sources = { clusterId, metadataPath: metadata.path, objectsDirectory: storage.directory, walDirectory: wal.directory };
  await assertPlace(sources.metadataPath, "metadata", "--data-dir or --meta-url", "file");
  await assertPlace(sources.objectsDirectory, "objects", "--data-dir or --storage", "folder");
  await assertPlace(sources.walDirectory, "write-ahead log", "--data-dir or --wal", "folder");
  return sources;
}

async function assertPlace(path: string, what: string, flags: string, kind: PathFacts["kind"]): Promise<void> {
  const facts = await lookAtPath(path);
  if (facts?.kind === kind) return;
  throw refusedPlace(
    `there is no node's state here: ${path}, its ${what}, ${facts === null ? "is missing" : "is something else"}; name the node's own with ${flags}`,
    path,
  );
}

/** Makes the folder if missing; throws `settings` (fact `isStartup`) unless it is empty. */
export async function prepareTarget(target: string): Promise<void> {
  await inFiles("open", target, () => makeFolder(target));
  if ((await namesInFolder(target)).length > 0) throw refusedPlace(`--to ${target} is not empty; name a new or an empty folder`, target);
}

function notInFiles(what: string): PicoError {
  return new PicoError("settings", `${what} is in the memory of the node and cannot be backed up from outside; use files`, {
    isStartup: true,
  });
}

function inPostgres(what: string, place: PostgresPlace): PicoError {
  return new PicoError(
    "settings",
    `${what} is in ${formatPostgresPlace(place)}, and pico backup copies files; use the backup of the database (pg_dump, or that of its vendor)`,
    { isStartup: true },
  );
}

function inBucket(what: string, place: S3Place): PicoError {
  return new PicoError(
    "settings",
    `${what} is in the bucket ${formatS3Place(place)}, and pico backup copies files; copy the bucket with the tools of its vendor (aws s3 sync, mc mirror)`,
    { isStartup: true },
  );
}

function refusedPlace(message: string, path: string): PicoError {
  return new PicoError("settings", message, { path, isStartup: true });
}
