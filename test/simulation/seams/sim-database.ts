/**
 * The simulated database: the real SQLite statements on an in-memory database, under a clock of its own
 * that can be stepped. What is in it is durable. `SimSqlStore` is the way of one process to it.
 */
import type { Database } from "bun:sqlite";
import type { BatchInsert, BatchOutcome, LogRow, SnapshotWrite } from "../../../src/sql/sql-store.ts";
import { openMemoryDatabase } from "../../../src/sql/sqlite-database.ts";
import { SqliteStatements } from "../../../src/sql/sqlite-statements.ts";
import { WALL_ORIGIN_MS } from "../world/sim-clock.ts";
import type { World } from "../world/world.ts";

export class SimDatabase {
  #statements: SqliteStatements;
  #connection: Database;
  /** Its clock is ahead of true time by so much. */
  offsetMs = 0;
  /** By how much its clock was set back so far, all times together. */
  setBackMs = 0;
  /** How often it was lost. */
  lossCount = 0;
  /** Called after each row that was added, with that row. */
  onRow: (row: LogRow) => void = () => {};
  /** Called after it was lost. */
  onLost: () => void = () => {};
  /** Called after each snapshot that was written. */
  onSnapshot: (write: SnapshotWrite) => void = () => {};
  readonly #wakes = new Set<() => void>();

  constructor(private readonly world: World) {
    this.#connection = openMemoryDatabase();
    this.#statements = new SqliteStatements(this.#connection, () => this.nowMs());
  }

  get statements(): SqliteStatements {
    return this.#statements;
  }

  /** What it holds is gone for good, and an empty one is in its place. */
  lose(): void {
    this.lossCount += 1;
    this.#connection.close();
    this.#connection = openMemoryDatabase();
    this.#statements = new SqliteStatements(this.#connection, () => this.nowMs());
    this.onLost();
  }

  nowMs(): number {
    return Math.floor(WALL_ORIGIN_MS + this.world.nowMs + this.offsetMs);
  }

  stepClock(byMs: number): void {
    this.offsetMs += byMs;
    if (byMs < 0) this.setBackMs -= byMs;
  }

  insertBatch(insert: BatchInsert): BatchOutcome {
    const outcome = this.statements.insertBatch(insert);
    if (outcome.inserted) {
      const row = this.statements.readLog(outcome.index - 1, 1).rows[0];
      if (row === undefined) throw this.world.failed(`row ${outcome.index} is not in the log right after its insert`);
      else this.onRow(row);
      for (const wake of this.#wakes) wake();
    }
    return outcome;
  }

  writeSnapshot(write: SnapshotWrite): boolean {
    const isWritten = this.statements.writeSnapshot(write);
    if (isWritten) this.onSnapshot(write);
    return isWritten;
  }

  /** `wake` is called at each insert. Returns a function that ends it. */
  watch(wake: () => void): () => void {
    this.#wakes.add(wake);
    return () => this.#wakes.delete(wake);
  }

  close(): void {
    this.#connection.close();
  }
}
