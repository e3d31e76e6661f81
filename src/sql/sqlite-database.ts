/**
 * Opens SQLite the way that `sqlite-statements.ts` needs it: whole numbers as bigint, a write-ahead
 * journal that is synced at each commit (SQLite's own defaults are neither durable nor shareable here),
 * and a bounded wait for other processes.
 */
import { Database } from "bun:sqlite";
import fs from "node:fs";
import { dirname, resolve } from "node:path";
import { messageOf, PicoError } from "../lib/errors.ts";
import { SQLITE_BUSY_MS } from "../lib/limits.ts";
import { mountKindOf } from "./mount-table.ts";
import { databaseError } from "./sqlite-transaction.ts";

/** The path of a database that lives in memory and goes with its connection. */
export const SQLITE_MEMORY_PATH = ":memory:";

const MOUNT_TABLE_PATH = "/proc/self/mountinfo";

/** A connection to a database in memory, for one user. */
export function openMemoryDatabase(): Database {
  return new Database(SQLITE_MEMORY_PATH, { safeIntegers: true, strict: true });
}

/**
 * A connection that reads and writes the file, which is made if missing, its folder too.
 * Throws `database_failed`, or `settings` where the folder is shared with other hosts.
 */
export function openSqliteFile(path: string): { readonly database: Database; readonly warning: string | null } {
  try {
    const folder = dirname(resolve(path));
    makeFolder(folder);
    const warning = checkFolder(folder);
    const database = new Database(path, { create: true, readwrite: true, safeIntegers: true, strict: true });
    try {
      database.run(`PRAGMA busy_timeout = ${SQLITE_BUSY_MS}`);
      const journal = database.query<{ journal_mode: string }, []>("PRAGMA journal_mode = WAL").get()?.journal_mode;
      if (journal !== "wal") throw new Error(`journal mode is ${journal}, not wal`);
      database.run("PRAGMA synchronous = FULL");
    } catch (error) {
      database.close();
      throw error;
    }
    return { database, warning };
  } catch (error) {
    throw databaseError(`opening ${path}`, error, path);
  }
}

/** A second connection to an existing file, for long reads beside the writes of the first. */
export function openSqliteReader(path: string): Database {
  try {
    const database = new Database(path, { readonly: true, safeIntegers: true, strict: true });
    database.run(`PRAGMA busy_timeout = ${SQLITE_BUSY_MS}`);
    return database;
  } catch (error) {
    throw databaseError(`opening ${path}`, error, path);
  }
}

/** SQLite syncs the folder of its file, but not the folders above, which are made here. */
function makeFolder(folder: string): void {
  const firstMade = fs.mkdirSync(folder, { recursive: true });
  if (firstMade === undefined) return;
  for (let made = folder; made.length >= firstMade.length; made = dirname(made)) {
    const parent = fs.openSync(dirname(made), "r");
    try {
      fs.fsyncSync(parent);
    } finally {
      fs.closeSync(parent);
    }
  }
}

/** A warning where the folder may be shared with other hosts; throws `settings` where it certainly is. */
function checkFolder(folder: string): string | null {
  let table: string;
  try {
    table = fs.readFileSync(MOUNT_TABLE_PATH, "utf8");
  } catch (error) {
    return process.platform === "linux" ? `cannot tell what kind of file system holds ${folder}: ${messageOf(error)}` : null;
  }
  const mount = mountKindOf(table, fs.realpathSync(folder));
  if (mount?.kind === "network") {
    throw new PicoError(
      "settings",
      `SQLite refused: ${folder} is on a network file system (${mount.fileSystem}), which would corrupt the database; use a local folder, or Postgres`,
      { folder, fileSystem: mount.fileSystem },
    );
  }
  if (mount?.kind !== "unsure") return null;
  return `${folder} is on ${mount.fileSystem}: SQLite is safe there only if the folder is used by one host and its locks work`;
}
