/**
 * The operations of `SqlStore` as synchronous statements on a `bun:sqlite` connection that was opened by
 * `sqlite-database.ts`. The clock is an argument, so that a simulated cluster runs the very same statements.
 *
 * Invariants:
 * - Every method is one transaction; those that write take the write lock first, so that two processes
 *   never upgrade against each other.
 * - `log_head` is the highest index ever given out and changes only together with the insert of that row,
 *   so that indexes are dense and none is used twice, truncation or not.
 * - A heartbeat row that a fence has marked stays marked.
 */
import type { Database } from "bun:sqlite";
import { assert } from "../lib/assert.ts";
import { PicoError } from "../lib/errors.ts";
import { HEARTBEAT_LOAD_BYTES_MAX, LOG_PAGE_BYTES } from "../lib/limits.ts";
import { type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type {
  BatchInsert,
  BatchOutcome,
  Heartbeat,
  ImportPart,
  Lease,
  LogPage,
  LogRow,
  SnapshotHead,
  SnapshotRow,
  SnapshotWrite,
} from "./sql-store.ts";
import { prepareSqliteSchema } from "./sqlite-schema.ts";
import { readSnapshotHead, SqliteSnapshotCursor } from "./sqlite-snapshot.ts";
import { integer, runRead, runWrite, toNumber } from "./sqlite-transaction.ts";

interface LogColumns {
  readonly log_index: bigint;
  readonly at_ms: bigint;
  readonly row_id: string;
  readonly node_id: bigint;
  readonly node_epoch: bigint;
  readonly batch: bigint;
  readonly payload: Uint8Array;
}

interface LeaseColumns {
  readonly node_id: bigint | null;
  readonly node_epoch: bigint | null;
  readonly term: bigint;
  readonly expires_at_ms: bigint;
}

interface HeartbeatColumns {
  readonly node_id: bigint;
  readonly node_epoch: bigint;
  readonly counter: bigint;
  readonly applied_index: bigint;
  readonly recovering_node_id: bigint | null;
  readonly recovering_node_epoch: bigint | null;
  readonly load: string;
  readonly is_marked: bigint;
}

export class SqliteStatements {
  readonly #database: Database;
  readonly #databaseNowMs: () => number;

  /** `databaseNowMs` gives whole milliseconds since 1970, for all users of the database alike. */
  constructor(database: Database, databaseNowMs: () => number) {
    this.#database = database;
    this.#databaseNowMs = databaseNowMs;
  }

  open(clusterIdentity: string): { readonly clusterIdentity: string } {
    return runWrite(this.#database, "open", () => ({ clusterIdentity: prepareSqliteSchema(this.#database, clusterIdentity) }));
  }

  nowMs(): number {
    return this.#databaseNowMs();
  }

  insertBatch(insert: BatchInsert): BatchOutcome {
    return runWrite(this.#database, "insertBatch", () => {
      const taken = this.#findBatch(insert.proposer, insert.batch);
      if (taken !== null) return taken;
      for (const fence of insert.fences) {
        if (fence.counter !== null && this.#counterOf(fence.victim) !== fence.counter) {
          return { inserted: false, reason: "victim_alive", victim: fence.victim };
        }
      }
      for (const fence of insert.fences) this.#mark(fence.victim);
      return this.#insertRow(insert);
    });
  }

  readLog(after: number, limit: number): LogPage {
    return runRead(this.#database, "readLog", () => {
      const head = this.#head();
      const first = this.#database.query<{ first: bigint | null }, []>("SELECT min(log_index) AS first FROM log").get()?.first;
      // Most looks find nothing new.
      const last = integer(after);
      const rows = last >= head ? [] : this.#readRows(last, limit);
      return { rows: rows.map(toLogRow), first: first === null || first === undefined ? head + 1 : toNumber(first), head };
    });
  }

  rowIdAt(index: number): string | null {
    return runRead(this.#database, "rowIdAt", () => {
      const row = this.#database.query<{ row_id: string }, [bigint]>("SELECT row_id FROM log WHERE log_index = ?").get(integer(index));
      return row?.row_id ?? null;
    });
  }

  readSnapshot(onRows: (rows: readonly SnapshotRow[], head: SnapshotHead) => void): SnapshotHead {
    const cursor = new SqliteSnapshotCursor(this.#database);
    try {
      for (let rows = cursor.next(); rows.length > 0; rows = cursor.next()) onRows(rows, cursor.head);
      return cursor.head;
    } finally {
      cursor.close();
    }
  }

  writeSnapshot(write: SnapshotWrite): boolean {
    return runWrite(this.#database, "writeSnapshot", () => {
      if (readSnapshotHead(this.#database).index !== write.expectedIndex) return false;
      const upsert = this.#database.query<null, [string, Uint8Array]>(
        "INSERT INTO snapshot_rows (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
      );
      const remove = this.#database.query<null, [string]>("DELETE FROM snapshot_rows WHERE key = ?");
      for (const key of write.deletes) remove.run(key);
      for (const row of write.upserts) upsert.run(row.key, row.value);
      this.#putSnapshotHead(write.head);
      return true;
    });
  }

  importPart(part: ImportPart): void {
    runWrite(this.#database, "importPart", () => {
      if (this.#readLease().term > 0) throw this.#notImported("a node has used the database");
      const addRow = this.#database.query<null, [string, Uint8Array]>("INSERT INTO snapshot_rows (key, value) VALUES (?, ?)");
      for (const { key, value } of part.snapshotRows) addRow.run(key, value);
      if (part.snapshotHead !== null) this.#putSnapshotHead(part.snapshotHead);
      for (const row of part.logRows) {
        const head = this.#head();
        if (head > 0 && row.index !== head + 1) throw this.#notImported(`log row ${row.index} does not follow ${head}`);
        this.#database.query<null, [bigint]>("UPDATE log_head SET head = ?").run(integer(row.index));
        this.#putRow(row);
      }
    });
  }

  truncateLog(upTo: number, olderThanMs: number): number {
    return runWrite(this.#database, "truncateLog", () => {
      // A clock that steps back makes a later row older; what goes must be a prefix all the same.
      const { changes } = this.#database
        .query<null, [bigint, bigint]>(
          `DELETE FROM log WHERE log_index <= ?1
           AND log_index < coalesce((SELECT min(log_index) FROM log WHERE at_ms > ?2), ?1 + 1)`,
        )
        .run(integer(upTo), integer(this.#databaseNowMs() - olderThanMs));
      return changes;
    });
  }

  acquireLease(holder: RegistrationName, ttlMs: number): Lease {
    return runWrite(this.#database, "acquireLease", () => {
      const nowMs = this.#databaseNowMs();
      const lease = this.#readLease();
      const isOwn = sameRegistration(lease.holder, holder);
      const isTaken = lease.holder !== null && !isOwn && nowMs < lease.expiresAtMs && !this.#isOver(lease.holder);
      if (isTaken || this.#isOver(holder)) return { held: false, ...lease };
      const taken = { holder, term: isOwn ? lease.term : lease.term + 1, expiresAtMs: nowMs + ttlMs };
      this.#database
        .query<null, [bigint, bigint, bigint, bigint]>("UPDATE lease SET node_id = ?, node_epoch = ?, term = ?, expires_at_ms = ?")
        .run(integer(holder.nodeId), integer(holder.nodeEpoch), integer(taken.term), integer(taken.expiresAtMs));
      return { held: true, ...taken };
    });
  }

  releaseLease(holder: RegistrationName): void {
    runWrite(this.#database, "releaseLease", () => {
      this.#database
        .query<null, [bigint, bigint]>(
          "UPDATE lease SET node_id = NULL, node_epoch = NULL, expires_at_ms = 0 WHERE node_id = ? AND node_epoch = ?",
        )
        .run(integer(holder.nodeId), integer(holder.nodeEpoch));
    });
  }

  checkWrites(): void {
    runWrite(this.#database, "checkWrites", () => {
      // SQLite writes the page, though the row stays as it is.
      this.#database.run("UPDATE lease SET term = term");
    });
  }

  heartbeat(beat: Omit<Heartbeat, "isMarked">): { readonly refused: boolean; readonly nowMs: number } {
    assert(beat.counter >= 1, "heartbeats count from 1");
    assert(Buffer.byteLength(beat.load) <= HEARTBEAT_LOAD_BYTES_MAX, `load figures are at most ${HEARTBEAT_LOAD_BYTES_MAX} bytes`);
    return runWrite(this.#database, "heartbeat", () => {
      const nowMs = this.#databaseNowMs();
      if (this.#isOver(beat.registration)) return { refused: true, nowMs };
      this.#database
        .query<null, [bigint, bigint, bigint, bigint, bigint | null, bigint | null, string]>(
          `INSERT INTO heartbeats (node_id, node_epoch, counter, applied_index, recovering_node_id, recovering_node_epoch, load, is_marked, is_removed)
           VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 0, 0)
           ON CONFLICT (node_id, node_epoch) DO UPDATE SET counter = ?3, applied_index = ?4,
             recovering_node_id = ?5, recovering_node_epoch = ?6, load = ?7`,
        )
        .run(
          integer(beat.registration.nodeId),
          integer(beat.registration.nodeEpoch),
          integer(beat.counter),
          integer(beat.appliedIndex),
          beat.recovering === null ? null : integer(beat.recovering.nodeId),
          beat.recovering === null ? null : integer(beat.recovering.nodeEpoch),
          beat.load,
        );
      return { refused: false, nowMs };
    });
  }

  readHeartbeats(): readonly Heartbeat[] {
    return runRead(this.#database, "readHeartbeats", () =>
      this.#database
        .query<HeartbeatColumns, []>(
          `SELECT node_id, node_epoch, counter, applied_index, recovering_node_id, recovering_node_epoch, load, is_marked
           FROM heartbeats WHERE is_removed = 0 ORDER BY node_id, node_epoch`,
        )
        .all()
        .map(toHeartbeat),
    );
  }

  removeHeartbeat(registration: RegistrationName): void {
    runWrite(this.#database, "removeHeartbeat", () => {
      this.#mark(registration);
      this.#database
        .query<null, [bigint, bigint]>("UPDATE heartbeats SET is_removed = 1 WHERE node_id = ? AND node_epoch = ?")
        .run(integer(registration.nodeId), integer(registration.nodeEpoch));
      // The row of a later life refuses them too.
      this.#database.run(
        `DELETE FROM heartbeats WHERE is_removed = 1 AND EXISTS
           (SELECT 1 FROM heartbeats AS later WHERE later.node_id = heartbeats.node_id AND later.node_epoch > heartbeats.node_epoch)`,
      );
    });
  }

  #head(): number {
    const row = this.#database.query<{ head: bigint }, []>("SELECT head FROM log_head").get();
    assert(row !== null, "the log has its head row");
    return toNumber(row.head);
  }

  #findBatch(proposer: RegistrationName, batch: number): BatchOutcome | null {
    const row = this.#database
      .query<{ log_index: bigint; row_id: string }, [bigint, bigint, bigint]>(
        "SELECT log_index, row_id FROM log WHERE node_id = ? AND node_epoch = ? AND batch = ?",
      )
      .get(integer(proposer.nodeId), integer(proposer.nodeEpoch), integer(batch));
    if (row === null) return null;
    return { inserted: false, reason: "exists", index: toNumber(row.log_index), rowId: row.row_id };
  }

  #insertRow(insert: BatchInsert): BatchOutcome {
    this.#database.query("UPDATE log_head SET head = head + 1").run();
    const index = this.#head();
    const atMs = this.#databaseNowMs();
    this.#putRow({ ...insert, index, atMs });
    return { inserted: true, index, atMs };
  }

  #putRow(row: LogRow): void {
    this.#database
      .query<null, [bigint, bigint, string, bigint, bigint, bigint, Uint8Array]>(
        "INSERT INTO log (log_index, at_ms, row_id, node_id, node_epoch, batch, payload) VALUES (?, ?, ?, ?, ?, ?, ?)",
      )
      .run(
        integer(row.index),
        integer(row.atMs),
        row.rowId,
        integer(row.proposer.nodeId),
        integer(row.proposer.nodeEpoch),
        integer(row.batch),
        row.payload,
      );
  }

  #putSnapshotHead(head: SnapshotHead): void {
    this.#database
      .query<null, [bigint, string, bigint, string]>("UPDATE snapshot_head SET snapshot_index = ?, row_id = ?, row_count = ?, row_sum = ?")
      .run(integer(head.index), head.rowId, integer(head.rowCount), head.rowSum.toString(16));
  }

  #notImported(why: string): PicoError {
    return new PicoError("corrupt", `the restored rows do not fit the database: ${why}`, { where: "import" });
  }

  #readRows(after: bigint, limit: number): LogColumns[] {
    return this.#database
      .query<LogColumns, [bigint, bigint]>(
        `SELECT log_index, at_ms, row_id, node_id, node_epoch, batch, payload FROM log
         WHERE log_index > ?1 AND log_index <= ?2 ORDER BY log_index`,
      )
      .all(after, this.#lastOfPage(after, limit));
  }

  /** The index of the last row of a page of about `LOG_PAGE_BYTES`; a first row of any size fits. */
  #lastOfPage(after: bigint, limit: number): bigint {
    const sizes = this.#database
      .query<{ log_index: bigint; bytes: bigint }, [bigint, bigint]>(
        "SELECT log_index, length(payload) AS bytes FROM log WHERE log_index > ? ORDER BY log_index LIMIT ?",
      )
      .all(after, integer(limit));
    let last = after;
    let bytes = 0n;
    for (const row of sizes) {
      bytes += row.bytes;
      if (bytes > LOG_PAGE_BYTES && last > after) break;
      last = row.log_index;
    }
    return last;
  }

  /** The last counter of a registration; 0 where it has no row. */
  #counterOf(registration: RegistrationName): number {
    const row = this.#database
      .query<{ counter: bigint }, [bigint, bigint]>("SELECT counter FROM heartbeats WHERE node_id = ? AND node_epoch = ?")
      .get(integer(registration.nodeId), integer(registration.nodeEpoch));
    return row === null ? 0 : toNumber(row.counter);
  }

  /** Whether heartbeats of this registration are refused, and a lease of it is void: it is marked, or its node has a later life. */
  #isOver(registration: RegistrationName): boolean {
    const row = this.#database
      .query<{ found: bigint }, [bigint, bigint]>(
        "SELECT 1 AS found FROM heartbeats WHERE node_id = ?1 AND (node_epoch > ?2 OR (node_epoch = ?2 AND is_marked = 1)) LIMIT 1",
      )
      .get(integer(registration.nodeId), integer(registration.nodeEpoch));
    return row !== null;
  }

  /** Marks the row, and makes one where the registration never had a heartbeat. */
  #mark(registration: RegistrationName): void {
    this.#database
      .query<null, [bigint, bigint]>(
        `INSERT INTO heartbeats (node_id, node_epoch, counter, applied_index, load, is_marked, is_removed)
         VALUES (?, ?, 0, 0, '{}', 1, 0) ON CONFLICT (node_id, node_epoch) DO UPDATE SET is_marked = 1`,
      )
      .run(integer(registration.nodeId), integer(registration.nodeEpoch));
  }

  #readLease(): Omit<Lease, "held"> {
    const row = this.#database.query<LeaseColumns, []>("SELECT node_id, node_epoch, term, expires_at_ms FROM lease").get();
    assert(row !== null, "the lease has its row");
    return { holder: toRegistration(row.node_id, row.node_epoch), term: toNumber(row.term), expiresAtMs: toNumber(row.expires_at_ms) };
  }
}

function toRegistration(nodeId: bigint | null, nodeEpoch: bigint | null): RegistrationName | null {
  return nodeId === null || nodeEpoch === null ? null : { nodeId: toNumber(nodeId), nodeEpoch: toNumber(nodeEpoch) };
}

function toLogRow(row: LogColumns): LogRow {
  return {
    index: toNumber(row.log_index),
    atMs: toNumber(row.at_ms),
    rowId: row.row_id,
    proposer: { nodeId: toNumber(row.node_id), nodeEpoch: toNumber(row.node_epoch) },
    batch: toNumber(row.batch),
    payload: row.payload,
  };
}

function toHeartbeat(row: HeartbeatColumns): Heartbeat {
  return {
    registration: { nodeId: toNumber(row.node_id), nodeEpoch: toNumber(row.node_epoch) },
    counter: toNumber(row.counter),
    appliedIndex: toNumber(row.applied_index),
    recovering: toRegistration(row.recovering_node_id, row.recovering_node_epoch),
    load: row.load,
    isMarked: row.is_marked !== 0n,
  };
}
