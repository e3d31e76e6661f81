/**
 * A database file that another process may be writing to, opened to be read only: for backups. Reading
 * holds no lock that a writer waits for.
 */
import type { Database } from "bun:sqlite";
import fs from "node:fs";
import { PicoError } from "../lib/errors.ts";
import { LOG_PAGE_ROWS } from "../lib/limits.ts";
import type { LogRow } from "./sql-store.ts";
import { openSqliteReader } from "./sqlite-database.ts";
import { SqliteStatements } from "./sqlite-statements.ts";
import { databaseError } from "./sqlite-transaction.ts";

export class SqliteSource {
  readonly #path: string;
  readonly #database: Database;
  readonly #statements: SqliteStatements;

  /** Throws `database_failed`; `settings` where the file is no database of this program. */
  constructor(path: string) {
    this.#path = path;
    this.#database = openSqliteReader(path);
    this.#statements = new SqliteStatements(this.#database, () => Date.now());
    try {
      this.#assertOurs();
    } catch (error) {
      this.#database.close();
      throw error;
    }
  }

  /**
   * Writes what is committed at this moment to a new file, durably but for its directory entry. Blocks
   * until it is done. Throws `database_failed` or `storage_full`.
   */
  copyTo(path: string): void {
    try {
      this.#database.query("VACUUM INTO ?").run(path);
      const file = fs.openSync(path, "r");
      try {
        fs.fsyncSync(file);
      } finally {
        fs.closeSync(file);
      }
    } catch (error) {
      throw databaseError(`copying ${this.#path} to ${path}`, error, this.#path);
    }
  }

  /** The log rows above `after`; null where they are no longer all there. */
  readLogAbove(after: number): readonly LogRow[] | null {
    const rows: LogRow[] = [];
    for (let at = after; ; ) {
      const page = this.#statements.readLog(at, LOG_PAGE_ROWS);
      if (page.first > at + 1) return null;
      rows.push(...page.rows);
      const last = page.rows.at(-1);
      if (last === undefined || last.index >= page.head) return rows;
      at = last.index;
    }
  }

  close(): void {
    this.#database.close();
  }

  #assertOurs(): void {
    let table: unknown;
    try {
      table = this.#database.query("SELECT 1 FROM sqlite_schema WHERE name = 'pico_schema'").get();
    } catch (error) {
      throw databaseError(`opening ${this.#path}`, error, this.#path);
    }
    if (table !== null) return;
    throw new PicoError("settings", `${this.#path} is a database, but none of pico; name the node's own`, {
      path: this.#path,
      isStartup: true,
    });
  }
}
