/**
 * A look at a database file without a change to anything, for a diagnosis: schema version, last write, and whether its
 * pages hold together.
 *
 * Where SQLite's `-wal` and `-shm` files are there, it is read through them, as a backup does; readers hold nothing that
 * a writer waits for. Where they are not, SQLite is told that nobody writes, so that it makes none: made by another
 * user, they would keep the node out. With a `-wal` alone neither would do, and nothing is looked at.
 */
import { constants, Database } from "bun:sqlite";
import fs from "node:fs";
import { pathToFileURL } from "node:url";
import { MIB, SQLITE_BUSY_MS } from "../lib/limits.ts";
import { toNumber } from "./sqlite-transaction.ts";

/** A larger file is not read as a whole: that takes long, and its readers keep SQLite's log from being cut. */
const CHECKED_BYTES_MAX = 64 * MIB;

export interface SqliteInspection {
  readonly sizeBytes: number;
  /** Null: the file is no database of ours. */
  readonly schemaVersion: number | null;
  /** It was made, and no row was ever put into its log. */
  readonly isEmpty: boolean;
  /** Time of the newest row of the log, as its writer saw it; null where there is none. */
  readonly lastWriteMs: number | null;
  /** What SQLite finds wrong with the pages; empty: nothing. Null: too large to be checked. */
  readonly damage: string | null;
}

/** Null where the file cannot be read without making another one. Throws what SQLite and the file system throw. */
export function inspectSqliteFile(path: string): SqliteInspection | null {
  const sizeBytes = fs.statSync(path).size;
  const database = openUnchanged(path);
  if (database === null) return null;
  try {
    database.run(`PRAGMA busy_timeout = ${SQLITE_BUSY_MS}`);
    const isOurs = database.query("SELECT 1 FROM sqlite_schema WHERE name = 'pico_schema'").get() !== null;
    if (!isOurs) return { sizeBytes, schemaVersion: null, isEmpty: false, lastWriteMs: null, damage: null };
    return {
      sizeBytes,
      schemaVersion: readVersion(database),
      isEmpty: readIsEmpty(database),
      lastWriteMs: readLastWrite(database),
      damage: readDamage(database, sizeBytes),
    };
  } finally {
    database.close();
  }
}

function openUnchanged(path: string): Database | null {
  const hasLog = (fs.statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0;
  if (hasLog) return fs.existsSync(`${path}-shm`) ? new Database(path, { readonly: true, safeIntegers: true, strict: true }) : null;
  return new Database(`${pathToFileURL(path).href}?immutable=1`, constants.SQLITE_OPEN_READONLY | constants.SQLITE_OPEN_URI);
}

function readVersion(database: Database): number | null {
  const version = database.query<{ version: bigint | number }, []>("SELECT version FROM pico_schema").get()?.version;
  return version === undefined ? null : toNumber(BigInt(version));
}

/** A truncated log keeps its head. */
function readIsEmpty(database: Database): boolean {
  return database.query("SELECT 1 FROM log_head WHERE head = 0").get() !== null;
}

function readLastWrite(database: Database): number | null {
  const atMs = database.query<{ at_ms: bigint | number }, []>("SELECT at_ms FROM log ORDER BY log_index DESC LIMIT 1").get()?.at_ms;
  return atMs === undefined ? null : toNumber(BigInt(atMs));
}

function readDamage(database: Database, sizeBytes: number): string | null {
  if (sizeBytes > CHECKED_BYTES_MAX) return null;
  const answer = database.query<{ quick_check: string }, []>("PRAGMA quick_check(1)").get()?.quick_check ?? "no answer";
  return answer === "ok" ? "" : answer;
}
