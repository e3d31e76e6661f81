/**
 * A restore to the places of a node: the database is built in a file of its own beside the target, and gets the
 * target's name when it is whole. A restore that is cut short leaves that file and its lock, which the next one takes
 * over. The lock lets one restore at a time make a database of the name; the death of a process gives it up.
 */
import fs from "node:fs/promises";
import { dirname } from "node:path";
import type { Clock } from "../lib/clock.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { RESTORE_WAIT_MS } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import { SqliteStore } from "../sql/sqlite-store.ts";
import { makeFolder, syncFolder } from "../storage/durable-folder.ts";
import { inFiles } from "../storage/file-error.ts";
import { isUnwritten, lookAtPath } from "../storage/path-facts.ts";
import { ProcessLock } from "../storage/process-lock.ts";
import { formatS3Place, type S3Place } from "../storage/s3-place.ts";
import { openStoresAlone } from "./node-parts.ts";
import { type RestoreReport, restoreDatabase } from "./restore.ts";
import type { RestoreProgress } from "./restore-options.ts";
import type { StoredPlaces } from "./settings.ts";

export interface RestoreNodeOptions {
  readonly places: StoredPlaces;
  readonly nodeId: number;
  readonly isForced: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly onProgress: (progress: RestoreProgress) => void;
}

/** SQLite's own files beside a database. */
const COMPANIONS = ["", "-wal", "-shm", "-journal"];

/**
 * Throws `settings` (fact `isStartup`) where there is a database already, `locked` where another restore is making it,
 * and what `restoreDatabase` throws.
 */
export async function restoreNode(options: RestoreNodeOptions): Promise<RestoreReport> {
  const path = databasePath(options.places);
  await assertAbsent(path);
  const lock = await lockTarget(path);
  try {
    // The one that held the lock before may have put its database in place.
    await assertAbsent(path);
    const report = await restoreTo(path, options);
    // From here on the database refuses the next one, whichever lock that takes. Before, two could hold different files.
    await inFiles("remove", lock.path, () => fs.rm(lock.path, { force: true }));
    return report;
  } finally {
    lock.release();
  }
}

async function restoreTo(path: string, options: RestoreNodeOptions): Promise<RestoreReport> {
  const { places, nodeId, isForced, clock, random, log, onProgress } = options;
  const unfinished = unfinishedPath(path);
  const stores = await openStoresInTime(places, clock, log);
  try {
    const { store, wal } = stores;
    const openDatabase = async () => {
      await removeDatabase(unfinished);
      return new SqliteStore({ path: unfinished, clock, onWarning: (message) => log.warn(message) });
    };
    const { clusterId } = places;
    const report = await restoreDatabase({ store, wal, openDatabase, clusterId, nodeId, clock, random, log, isForced, onProgress });
    await putInPlace(unfinished, path);
    return report;
  } finally {
    await stores.close();
  }
}

async function lockTarget(path: string): Promise<ProcessLock> {
  await inFiles("make", dirname(path), () => makeFolder(dirname(path)));
  try {
    return ProcessLock.acquire(`${unfinishedPath(path)}-lock`);
  } catch (error) {
    if (!isPicoError(error, "locked")) throw error;
    const { holder } = error.facts;
    const who = typeof holder === "number" ? `process ${holder}` : "another process";
    throw new PicoError(
      "locked",
      `nothing restored: ${who} is restoring to ${path}; let it end, or stop it and restore again`,
      { path, holder: holder ?? null },
      error,
    );
  }
}

function unfinishedPath(path: string): string {
  return `${path}.unfinished`;
}

/** A node waits for its bucket; whoever restores is there to correct the place. */
async function openStoresInTime(places: StoredPlaces, clock: Clock, log: Logger): ReturnType<typeof openStoresAlone> {
  const waiting = new AbortController();
  const timer = clock.schedule(RESTORE_WAIT_MS, () => waiting.abort());
  try {
    return await openStoresAlone(places, log, waiting.signal);
  } catch (error) {
    if (!waiting.signal.aborted || !isPicoError(error, "unavailable")) throw error;
    const where = [places.storage, places.wal].flatMap((part) => (part.kind === "s3" ? [describePlace(part.place)] : []));
    throw new PicoError(
      "unavailable",
      `nothing restored: ${[...new Set(where)].join(" and ")} cannot be used, after ${RESTORE_WAIT_MS / 1000} seconds of trying; the warning before says why. Check the endpoint (--storage, AWS_ENDPOINT_URL) and the network, and restore again`,
      { retryAfterSeconds: 60 },
      error,
    );
  } finally {
    timer.cancel();
  }
}

function describePlace(place: S3Place): string {
  return `${formatS3Place(place)} at ${place.endpoint ?? "the endpoint of environment or profile"}`;
}

function databasePath({ metadata, storage }: StoredPlaces): string {
  if (metadata.kind === "postgres") {
    throw new PicoError(
      "settings",
      "a restore from the mirror makes a SQLite file; restore Postgres from the database's own backup, or name a file with --meta-url sqlite:PATH",
      { flag: "--meta-url", isStartup: true },
    );
  }
  if (metadata.kind !== "sqlite-file") {
    throw new PicoError("settings", "a database in memory cannot be restored; name a file with --meta-url sqlite:PATH or --data-dir", {
      flag: "--meta-url",
      isStartup: true,
    });
  }
  if (storage.kind === "memory") {
    throw new PicoError("settings", "objects in the memory of a node are gone with it; name the bucket with --storage", {
      flag: "--storage",
      isStartup: true,
    });
  }
  return metadata.path;
}

/** An empty file is none. */
async function assertAbsent(path: string): Promise<void> {
  for (const companion of COMPANIONS) {
    const name = `${path}${companion}`;
    if (await isUnwritten(name)) continue;
    throw new PicoError(
      "settings",
      `${name} is there already: a restore makes a database and replaces none; move it away, or name another place with --meta-url or --data-dir`,
      { path: name, isStartup: true },
    );
  }
}

async function removeDatabase(path: string): Promise<void> {
  for (const companion of COMPANIONS) await inFiles("remove", path, () => fs.rm(`${path}${companion}`, { force: true }));
}

/** The link fails where the name was taken meanwhile, which a rename would not. */
async function putInPlace(unfinished: string, path: string): Promise<void> {
  await inFiles("link", path, async () => {
    const file = await fs.open(unfinished, "r");
    try {
      await file.sync();
    } finally {
      await file.close();
    }
    if ((await lookAtPath(path))?.sizeBytes === 0) await fs.rm(path);
    await fs.link(unfinished, path);
    await fs.rm(unfinished);
    await syncFolder(dirname(path));
  });
}
