/**
 * Reading a whole snapshot from SQLite, page by page, within one read transaction, so that head and rows
 * belong together while others write.
 */
import type { Database } from "bun:sqlite";
import { PicoError } from "../lib/errors.ts";
import { SNAPSHOT_PAGE_ROWS } from "../lib/limits.ts";
import type { SnapshotHead, SnapshotRow } from "./sql-store.ts";
import { databaseError, toNumber } from "./sqlite-transaction.ts";

interface HeadColumns {
  readonly snapshot_index: bigint;
  readonly row_id: string;
  readonly row_count: bigint;
  readonly row_sum: string;
}

/** The head, within the caller's transaction. */
export function readSnapshotHead(database: Database): SnapshotHead {
  const head = database.query<HeadColumns, []>("SELECT snapshot_index, row_id, row_count, row_sum FROM snapshot_head").get();
  if (head === null) throw new PicoError("corrupt", "the database has no snapshot head", { where: "snapshot_head" });
  return {
    index: toNumber(head.snapshot_index),
    rowId: head.row_id,
    rowCount: toNumber(head.row_count),
    rowSum: BigInt(`0x${head.row_sum}`),
  };
}

/** An open read transaction; the connection can do nothing else until `close`. */
export class SqliteSnapshotCursor {
  readonly head: SnapshotHead;
  readonly #database: Database;
  #lastKey: string | null = null;

  /** Throws `database_failed`; no transaction is open then. */
  constructor(database: Database) {
    this.#database = database;
    try {
      database.run("BEGIN");
      this.head = readSnapshotHead(database);
    } catch (error) {
      this.close();
      throw databaseError("readSnapshot", error, this.#database.filename);
    }
  }

  /** The next rows in the order of keys, at most `SNAPSHOT_PAGE_ROWS`; none at the end. */
  next(): readonly SnapshotRow[] {
    try {
      const last = this.#lastKey;
      const rows =
        last === null
          ? this.#database.query<SnapshotRow, []>(`SELECT key, value FROM snapshot_rows ORDER BY key LIMIT ${SNAPSHOT_PAGE_ROWS}`).all()
          : this.#database
              .query<SnapshotRow, [string]>(`SELECT key, value FROM snapshot_rows WHERE key > ? ORDER BY key LIMIT ${SNAPSHOT_PAGE_ROWS}`)
              .all(last);
      this.#lastKey = rows.at(-1)?.key ?? last;
      return rows;
    } catch (error) {
      throw databaseError("readSnapshot", error, this.#database.filename);
    }
  }

  close(): void {
    if (this.#database.inTransaction) this.#database.run("ROLLBACK");
  }
}
