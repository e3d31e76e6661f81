import type { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { isPicoError } from "../../src/lib/errors.ts";
import type { BatchInsert } from "../../src/sql/sql-store.ts";
import { openMemoryDatabase } from "../../src/sql/sqlite-database.ts";
import { SqliteStatements } from "../../src/sql/sqlite-statements.ts";

const node1 = { nodeId: 1, nodeEpoch: 100 };
const node2 = { nodeId: 2, nodeEpoch: 100 };
const identity = "a".repeat(32);

function batchOf(batch: number, payload = new Uint8Array(10)): BatchInsert {
  return { rowId: String(batch).padStart(32, "0"), proposer: node1, batch, payload, fences: [] };
}

function codeOf(call: () => unknown): string {
  try {
    call();
  } catch (error) {
    return isPicoError(error) ? error.code : `not a PicoError: ${String(error)}`;
  }
  return "returned";
}

describe("SQLite statements on a clock of the caller's", () => {
  let database: Database;
  let statements: SqliteStatements;
  let nowMs: number;
  beforeEach(() => {
    nowMs = 1000;
    database = openMemoryDatabase();
    statements = new SqliteStatements(database, () => nowMs);
    statements.open(identity);
  });
  afterEach(() => {
    database.close();
  });

  test("the clock is the caller's", () => {
    expect(statements.nowMs()).toBe(1000);
    expect(statements.insertBatch(batchOf(0))).toEqual({ inserted: true, index: 1, atMs: 1000 });
    nowMs = 500;
    expect(statements.insertBatch(batchOf(1))).toEqual({ inserted: true, index: 2, atMs: 500 });
  });

  test("truncation by age removes a prefix, also where the clock stepped back between rows", () => {
    for (const [batch, atMs] of [1000, 5000, 2000, 9000].entries()) {
      nowMs = atMs;
      statements.insertBatch(batchOf(batch));
    }
    nowMs = 10_000;
    // Row 3 is old enough, but row 2 before it is not.
    expect(statements.truncateLog(4, 6000)).toBe(1);
    expect(statements.readLog(0, 10).rows.map((row) => row.index)).toEqual([2, 3, 4]);
    expect(statements.truncateLog(2, 0)).toBe(1);
    expect(statements.readLog(0, 10).first).toBe(3);
    expect(statements.truncateLog(4, 2000)).toBe(1);
    expect(statements.truncateLog(4, 0)).toBe(1);
    expect(statements.readLog(0, 10)).toEqual({ rows: [], first: 5, head: 4 });
  });

  test("a lease is held until its expiry and not a millisecond longer", () => {
    expect(statements.acquireLease(node1, 100)).toEqual({ held: true, holder: node1, term: 1, expiresAtMs: 1100 });
    nowMs = 1099;
    expect(statements.acquireLease(node2, 100)).toEqual({ held: false, holder: node1, term: 1, expiresAtMs: 1100 });
    nowMs = 1100;
    expect(statements.acquireLease(node2, 100)).toEqual({ held: true, holder: node2, term: 2, expiresAtMs: 1200 });
    statements.releaseLease(node1);
    expect(statements.acquireLease(node1, 100).held).toBe(false);
  });

  test("numbers up to 2^53 - 1 are kept exactly, and fractions are a broken invariant", () => {
    const proposer = { nodeId: -(2 ** 31), nodeEpoch: Number.MAX_SAFE_INTEGER };
    statements.insertBatch({ ...batchOf(0), proposer, batch: Number.MAX_SAFE_INTEGER });
    expect(statements.readLog(0, 1).rows[0]).toMatchObject({ proposer, batch: Number.MAX_SAFE_INTEGER });
    expect(() => statements.readLog(1.5, 1)).toThrow("broken invariant");
  });

  test("a stored number beyond 2^53 is damage, never a rounded value", () => {
    database.run("UPDATE log_head SET head = 9007199254740993");
    expect(codeOf(() => statements.readLog(0, 1))).toBe("corrupt");
  });

  test("a schema of a later program is refused before anything is written", () => {
    database.run("UPDATE pico_schema SET version = 2");
    expect(codeOf(() => statements.open(identity))).toBe("incompatible");
  });

  test("a full database refuses the insert whole, reads on, and takes inserts again when there is space", () => {
    statements.insertBatch(batchOf(0));
    statements.heartbeat({ registration: node2, counter: 1, appliedIndex: 0, recovering: null, load: "{}" });
    database.run("PRAGMA max_page_count = 1");
    const large = { ...batchOf(1, new Uint8Array(1_000_000)), fences: [{ victim: node2, counter: 1 }] };
    expect(codeOf(() => statements.insertBatch(large))).toBe("storage_full");
    expect(statements.readLog(0, 10).head).toBe(1);
    expect(statements.readHeartbeats()[0]?.isMarked).toBe(false);
    database.run("PRAGMA max_page_count = 1000000");
    expect(statements.insertBatch(large)).toMatchObject({ inserted: true, index: 2 });
    expect(statements.readHeartbeats()[0]?.isMarked).toBe(true);
  });

  test("a refused write leaves no transaction open and no trace", () => {
    database.run("DROP TABLE heartbeats");
    const fencing = { ...batchOf(0), fences: [{ victim: node2, counter: null }] };
    expect(codeOf(() => statements.insertBatch(fencing))).toBe("database_failed");
    expect(database.inTransaction).toBe(false);
    expect(statements.insertBatch(batchOf(0))).toMatchObject({ inserted: true, index: 1 });
  });

  test("a transaction that a failed rollback left open keeps nothing out, and nothing of it stays", () => {
    statements.insertBatch(batchOf(0));
    database.run("BEGIN IMMEDIATE");
    database.run("DELETE FROM log");
    expect(statements.readLog(0, 10).head).toBe(1);
    expect(statements.readLog(0, 10).rows).toHaveLength(1);
    database.run("BEGIN IMMEDIATE");
    database.run("DELETE FROM log");
    expect(statements.insertBatch(batchOf(1))).toMatchObject({ inserted: true, index: 2 });
    expect(statements.readLog(0, 10).rows).toHaveLength(2);
  });

  test("a read-only database refuses every write by name and answers reads", () => {
    statements.insertBatch(batchOf(0));
    database.run("PRAGMA query_only = ON");
    expect(codeOf(() => statements.insertBatch(batchOf(1)))).toBe("database_failed");
    expect(codeOf(() => statements.acquireLease(node1, 100))).toBe("database_failed");
    expect(codeOf(() => statements.removeHeartbeat(node1))).toBe("database_failed");
    expect(codeOf(() => statements.checkWrites())).toBe("database_failed");
    const head = { index: 1, rowId: "", rowCount: 0, rowSum: 0n };
    expect(codeOf(() => statements.writeSnapshot({ expectedIndex: 0, head, upserts: [], deletes: [] }))).toBe("database_failed");
    expect(codeOf(() => statements.truncateLog(1, 0))).toBe("database_failed");
    expect(statements.readLog(0, 10).head).toBe(1);
  });

  test("a repeated batch of a truncated row is inserted again: only the log's reader can tell", () => {
    statements.insertBatch(batchOf(0));
    nowMs += 1;
    statements.truncateLog(1, 0);
    expect(statements.insertBatch(batchOf(0))).toMatchObject({ inserted: true, index: 2 });
  });
});
