/**
 * Transactions on a `bun:sqlite` connection, and what its errors mean. Bodies are synchronous: an await
 * inside would commit at once.
 */
import { type Database, SQLiteError } from "bun:sqlite";
import { assert, InvariantError } from "../lib/assert.ts";
import { messageOf, PicoError } from "../lib/errors.ts";

/**
 * Runs `body` holding the write lock from the start, and commits. On any error everything is rolled back:
 * `storage_full`, `database_failed`, `corrupt`, or what `body` threw; `unknown_outcome` only where the commit itself
 * failed in a way that leaves open whether it reached the disk.
 */
export function runWrite<T>(database: Database, operation: string, body: () => T): T {
  const result = runUncommitted(database, operation, "BEGIN IMMEDIATE", body);
  try {
    database.query("COMMIT").run();
  } catch (error) {
    abandon(database);
    throw commitError(operation, error, database.filename);
  }
  return result;
}

/** Runs `body` on one consistent state of the database. */
export function runRead<T>(database: Database, operation: string, body: () => T): T {
  const result = runUncommitted(database, operation, "BEGIN", body);
  abandon(database);
  return result;
}

/** The error of an operation on the file at `path` that certainly changed nothing: `corrupt` where SQLite finds the file damaged. */
export function databaseError(operation: string, error: unknown, path: string): Error {
  if (error instanceof PicoError || error instanceof InvariantError) return error;
  const sqlite = sqliteCodeOf(error);
  if (sqlite === "SQLITE_NOTADB" || sqlite?.startsWith("SQLITE_CORRUPT")) {
    return new PicoError(
      "corrupt",
      `${path} is damaged or no database: ${messageOf(error)}; restore it from a backup`,
      { where: path, operation },
      error,
    );
  }
  const isFull = sqlite === "SQLITE_FULL";
  const advice = isFull ? "; free space" : sqlite === "SQLITE_BUSY" ? "; another process holds the database" : "";
  return new PicoError(
    isFull ? "storage_full" : "database_failed",
    `${operation} failed in SQLite: ${messageOf(error)}${advice}`,
    { operation, sqlite },
    error,
  );
}

/** A whole number as it is bound: a plain number from 2^51 on may be taken for a float. */
export function integer(value: number): bigint {
  assert(Number.isSafeInteger(value), `${value} is a whole number that a double holds exactly`);
  return BigInt(value);
}

/** A whole number as it is read. Throws `corrupt` beyond 2^53. */
export function toNumber(value: bigint): number {
  const number = Number(value);
  if (!Number.isSafeInteger(number)) {
    throw new PicoError("corrupt", `the database holds the number ${value}, which is beyond 2^53`, { where: "sqlite" });
  }
  return number;
}

function runUncommitted<T>(database: Database, operation: string, begin: string, body: () => T): T {
  try {
    // A rollback that failed leaves its transaction open; nothing works before it is gone.
    abandon(database);
    database.query(begin).run();
    return body();
  } catch (error) {
    abandon(database);
    throw databaseError(operation, error, database.filename);
  }
}

/** Ends the open transaction, if any, without its changes. What fails here is tried again at the next begin. */
function abandon(database: Database): void {
  if (!database.inTransaction) return;
  try {
    database.query("ROLLBACK").run();
  } catch {
    // SQLite rolled back by itself, or the next begin reports the failure.
  }
}

/**
 * A commit is its last frame in the SQLite WAL, then a sync. Where the frame did not fit it did not happen;
 * where the sync failed, the frame may yet be found after a restart.
 */
function commitError(operation: string, error: unknown, path: string): Error {
  const sqlite = sqliteCodeOf(error);
  if (sqlite === "SQLITE_FULL" || sqlite === "SQLITE_BUSY") return databaseError(operation, error, path);
  return new PicoError(
    "unknown_outcome",
    `${operation} may have taken effect: SQLite failed to commit: ${messageOf(error)}`,
    { operation, sqlite },
    error,
  );
}

function sqliteCodeOf(error: unknown): string | null {
  return error instanceof SQLiteError ? (error.code ?? null) : null;
}
