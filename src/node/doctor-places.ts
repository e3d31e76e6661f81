/** Folders of a node: whether they are there or can be made, have room, and who holds them. */
import fs from "node:fs/promises";
import { dirname, join } from "node:path";
import { messageOf } from "../lib/errors.ts";
import { formatBytes } from "../lib/format-count.ts";
import { BACKLOG_BYTES_DEFAULT, OBJECT_BYTES_TARGET, WAL_FILE_BYTES } from "../lib/limits.ts";
import { type MountKind, mountKindOf } from "../sql/mount-table.ts";
import { errnoOf, isAbsence } from "../storage/file-error.ts";
import type { Finding } from "./doctor.ts";
import type { Settings } from "./settings.ts";

/** Room for the next file of the WAL and the next data object; without it nothing is written. */
const FREE_BYTES_MIN = WAL_FILE_BYTES + OBJECT_BYTES_TARGET;
/** Room for what may wait for an upload, a few times. */
const FREE_BYTES_WELL = 4 * BACKLOG_BYTES_DEFAULT;

/** The process that took the lock of a folder last. */
export interface LockHolder {
  readonly processId: number;
  /** It still holds it: a node runs here. */
  readonly isAlive: boolean;
}

/** Null: the last one gave the lock up, or there was none. */
export async function findHolder(directory: string): Promise<LockHolder | null> {
  const lockPath = join(directory, "~lock");
  const text = await fs.readFile(`${lockPath}.holder`, "utf8").catch(() => "");
  const processId = /^\d+$/.test(text.trim()) ? Number(text) : null;
  if (processId === null) return null;
  return { processId, isAlive: (await isLocked(lockPath, processId)) ?? isRunning(processId) };
}

/** The system's own table of locks, which tells without touching the lock; null where there is none. */
async function isLocked(lockPath: string, processId: number): Promise<boolean | null> {
  try {
    const { ino } = await fs.stat(lockPath);
    const locks = await fs.readFile("/proc/locks", "utf8");
    // number: POSIX ADVISORY WRITE pid major:minor:inode start end
    return locks.split("\n").some((line) => new RegExp(`\\s${processId} [0-9a-f]+:[0-9a-f]+:${ino}\\s`).test(line));
  } catch {
    return null;
  }
}

function isRunning(processId: number): boolean {
  try {
    process.kill(processId, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === "EPERM";
  }
}

export async function* examinePlaces(settings: Settings, holder: LockHolder | null): AsyncGenerator<Finding, void, undefined> {
  for (const { what, folder, isDatabase, flags } of foldersOf(settings)) {
    if (folder === null) yield { level: "warn", what, detail: `in memory: gone when the node ends; ${flags} names a place on disk` };
    else yield* examineFolder(what, folder, isDatabase, flags);
  }
  if (settings.wal.kind === "local") yield describeHolder(settings.wal.directory, holder);
}

interface NodeFolder {
  readonly what: string;
  /** Null: in memory. */
  readonly folder: string | null;
  readonly isDatabase: boolean;
  readonly flags: string;
}

function foldersOf({ metadata, storage, wal }: Settings): readonly NodeFolder[] {
  const folders: readonly NodeFolder[] = [
    {
      what: "metadata folder",
      folder: metadata.kind === "sqlite-file" ? dirname(metadata.path) : null,
      isDatabase: true,
      flags: "--data-dir or --meta-url",
    },
    {
      what: "objects folder",
      folder: storage.kind === "file" ? storage.directory : null,
      isDatabase: false,
      flags: "--data-dir or --storage",
    },
    { what: "WAL folder", folder: wal.kind === "local" ? wal.directory : null, isDatabase: true, flags: "--data-dir or --wal" },
  ];
  // Buckets and databases are another's part (doctor-buckets.ts, doctor-database.ts).
  const isElsewhere: Readonly<Record<string, boolean>> = {
    "metadata folder": metadata.kind === "postgres",
    "objects folder": storage.kind === "s3",
    "WAL folder": wal.kind === "s3" || wal.kind === "postgres",
  };
  return folders.filter(({ what }) => isElsewhere[what] !== true);
}

async function* examineFolder(what: string, folder: string, isDatabase: boolean, flags: string): AsyncGenerator<Finding, void, undefined> {
  const found = await findExisting(folder);
  if (typeof found === "string") {
    yield { level: "fail", what, detail: `${folder} cannot be used: ${found}; mend it, or name another place with ${flags}` };
    return;
  }
  const { path } = found;
  const refusal = await fs.access(path, fs.constants.W_OK | fs.constants.X_OK).then(
    () => null,
    (error: unknown) => errnoOf(error) ?? messageOf(error),
  );
  if (refusal !== null) {
    yield {
      level: "fail",
      what,
      detail: `${path} cannot be written (${refusal}); give its user the right, or name another place with ${flags}`,
    };
    return;
  }
  yield {
    level: "ok",
    what,
    detail: path === folder ? `${folder} is there and can be written` : `${folder} is not there yet and can be made`,
  };
  yield* examineRoom(what, path, flags);
  yield* examineMount(what, path, isDatabase, flags);
}

/** The folder, or the nearest one above it that is there; or why there is none. */
async function findExisting(folder: string): Promise<{ readonly path: string } | string> {
  for (let path = folder; ; path = dirname(path)) {
    try {
      if ((await fs.stat(path)).isDirectory()) return { path };
      return `${path} is no folder`;
    } catch (error) {
      if (!isAbsence(error) || path === dirname(path)) return messageOf(error);
    }
  }
}

async function* examineRoom(what: string, path: string, flags: string): AsyncGenerator<Finding, void, undefined> {
  const { bavail, bsize } = await fs.statfs(path);
  const freeBytes = bavail * bsize;
  const free = `${formatBytes(freeBytes)} free`;
  const remedy = `make room, or name another place with ${flags}`;
  const at = `${what.replace(" folder", "")} space`;
  if (freeBytes < FREE_BYTES_MIN)
    yield { level: "fail", what: at, detail: `${free}, appends need ${formatBytes(FREE_BYTES_MIN)}; ${remedy}` };
  else if (freeBytes < FREE_BYTES_WELL)
    yield { level: "warn", what: at, detail: `${free}, less than ${formatBytes(FREE_BYTES_WELL)}; ${remedy}` };
  else yield { level: "ok", what: at, detail: free };
}

async function* examineMount(what: string, path: string, isDatabase: boolean, flags: string): AsyncGenerator<Finding, void, undefined> {
  const mount = await readMountKind(path);
  if (mount === null || mount.kind === "local") return;
  const at = `${what.replace(" folder", "")} file system`;
  const isFatal = mount.kind === "network" && what === "metadata folder";
  const risk = isDatabase ? "locks may not hold there, and SQLite may be damaged" : "its errors and delays become those of the node";
  yield {
    level: isFatal ? "fail" : "warn",
    what: at,
    detail: `${path} is on ${mount.fileSystem}, which may be shared with other hosts: ${risk}; use a local disk (${flags})`,
  };
}

/** Null where the system does not tell. */
async function readMountKind(path: string): Promise<MountKind | null> {
  try {
    return mountKindOf(await fs.readFile("/proc/self/mountinfo", "utf8"), await fs.realpath(path));
  } catch {
    return null;
  }
}

function describeHolder(directory: string, holder: LockHolder | null): Finding {
  const what = "lock";
  if (holder === null) return { level: "ok", what, detail: `no node runs on ${directory}` };
  const { processId, isAlive } = holder;
  if (isAlive) return { level: "ok", what, detail: `a node runs on ${directory}: process ${processId}; a second one would be refused` };
  return {
    level: "ok",
    what,
    detail: `process ${processId} ended without a stop; nothing to do: the next start recovers what was acknowledged`,
  };
}
