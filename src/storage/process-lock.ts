/**
 * A lock that one process holds on a path and that only its release or its death gives up: not a pause,
 * and no time-out. `node:fs` has no file locks, but SQLite takes one from the operating system: a database
 * in an exclusive transaction. The database stays empty; nothing is ever written to it.
 *
 * Whoever opens and closes the lock's file otherwise, in the holding process, drops the lock: POSIX locks
 * belong to the process and the file. So the holder's process id is in a file beside it.
 */
import { Database, SQLiteError } from "bun:sqlite";
import fs from "node:fs";
import { PicoError } from "../lib/errors.ts";
import { fileError } from "./file-error.ts";

const HOLDER_SUFFIX = ".holder";

/** A lock that nobody refers to would be collected as garbage, its database closed, and the lock dropped. */
const heldLocks = new Set<ProcessLock>();

export class ProcessLock {
  readonly path: string;
  readonly #database: Database;
  #isHeld = true;

  private constructor(path: string, database: Database) {
    this.path = path;
    this.#database = database;
  }

  /**
   * Takes the lock or throws at once: `locked`, with the holder's process id as the fact `holder` where it
   * can be told, or `storage_failed` where the folder is missing or cannot be written.
   */
  static acquire(path: string): ProcessLock {
    let database: Database | null = null;
    try {
      database = new Database(path, { create: true, readwrite: true });
      database.run("PRAGMA busy_timeout = 0");
      database.run("BEGIN EXCLUSIVE");
      fs.writeFileSync(path + HOLDER_SUFFIX, `${process.pid}\n`);
      const lock = new ProcessLock(path, database);
      heldLocks.add(lock);
      return lock;
    } catch (error) {
      database?.close();
      throw isBusy(error) ? lockedError(path, error) : fileError("lock", path, null, error);
    }
  }

  /** Gives the lock up; again, it does nothing. The files stay, so that no two processes lock different ones. */
  release(): void {
    if (!this.#isHeld) return;
    this.#isHeld = false;
    heldLocks.delete(this);
    fs.rmSync(this.path + HOLDER_SUFFIX, { force: true });
    this.#database.close();
  }
}

function isBusy(error: unknown): boolean {
  return error instanceof SQLiteError && (error.code ?? "").startsWith("SQLITE_BUSY");
}

function lockedError(path: string, cause: unknown): PicoError {
  const holder = readHolder(path);
  const who = holder === null ? "another process" : `process ${holder}`;
  return new PicoError("locked", `${who} holds ${path}; stop it, or choose another folder`, { path, holder }, cause);
}

/** Null in the moment between the lock and the note of its holder, or where the note cannot be read. */
function readHolder(path: string): number | null {
  try {
    const holder = Number(fs.readFileSync(path + HOLDER_SUFFIX, "utf8"));
    return Number.isSafeInteger(holder) && holder > 0 ? holder : null;
  } catch {
    // The refusal stands, whoever it is.
    return null;
  }
}
