/** The real SQLite statements on a database in memory, as a `SqlStore` whose calls a test can make fail. */
import type { Database } from "bun:sqlite";
import type { Clock } from "../../src/lib/clock.ts";
import { PicoError } from "../../src/lib/errors.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import type {
  BatchInsert,
  BatchOutcome,
  Heartbeat,
  ImportPart,
  Lease,
  LogPage,
  SnapshotHead,
  SnapshotRow,
  SnapshotWrite,
  SqlStore,
} from "../../src/sql/sql-store.ts";
import { openMemoryDatabase } from "../../src/sql/sqlite-database.ts";
import { SqliteStatements } from "../../src/sql/sqlite-statements.ts";

/** `refuse`: it did not happen. `lose_request`, `lose_answer`: unknown to the caller; it did not, or did, happen. `hang`: no answer before `unhang`. */
export type Fault = "refuse" | "lose_request" | "lose_answer" | "hang";

export type Method = Exclude<keyof SqlStore, "description" | "onAppended" | "close">;

/** One database, for any number of stores. */
export class MemoryDatabase {
  readonly database: Database = openMemoryDatabase();
  readonly statements: SqliteStatements;
  /** Added to the clock's wall time. */
  clockOffsetMs = 0;

  constructor(clock: Clock) {
    this.statements = new SqliteStatements(this.database, () => clock.nowMs() + this.clockOffsetMs);
  }
}

export class MemorySqlStore implements SqlStore {
  readonly description = "memory";
  /** Asked before each call. */
  faultOf: (method: Method) => Fault | null = () => null;
  /** Runs after a call took effect and before it is answered. */
  afterCall: (method: Method) => void = () => undefined;
  readonly calls: Method[] = [];
  readonly #wakes = new Set<() => void>();
  readonly #hung = new Set<() => void>();

  constructor(readonly shared: MemoryDatabase) {}

  open(clusterIdentity: string): Promise<{ readonly clusterIdentity: string }> {
    return this.#call("open", (statements) => statements.open(clusterIdentity));
  }

  nowMs(): Promise<number> {
    return this.#call("nowMs", (statements) => statements.nowMs());
  }

  checkWrites(): Promise<void> {
    return this.#call("checkWrites", (statements) => statements.checkWrites());
  }

  async insertBatch(insert: BatchInsert): Promise<BatchOutcome> {
    const outcome = await this.#call("insertBatch", (statements) => statements.insertBatch(insert));
    for (const wake of this.#wakes) queueMicrotask(wake);
    return outcome;
  }

  readLog(after: number, limit: number): Promise<LogPage> {
    return this.#call("readLog", (statements) => statements.readLog(after, limit));
  }

  rowIdAt(index: number): Promise<string | null> {
    return this.#call("rowIdAt", (statements) => statements.rowIdAt(index));
  }

  async readSnapshot(onRows: (rows: readonly SnapshotRow[], head: SnapshotHead) => void | Promise<void>): Promise<SnapshotHead> {
    const pages: (readonly SnapshotRow[])[] = [];
    const head = await this.#call("readSnapshot", (statements) => statements.readSnapshot((rows) => pages.push(rows)));
    for (const rows of pages) await onRows(rows, head);
    return head;
  }

  importPart(part: ImportPart): Promise<void> {
    return this.#call("importPart", (statements) => statements.importPart(part));
  }

  writeSnapshot(write: SnapshotWrite): Promise<boolean> {
    return this.#call("writeSnapshot", (statements) => statements.writeSnapshot(write));
  }

  truncateLog(upTo: number, olderThanMs: number): Promise<number> {
    return this.#call("truncateLog", (statements) => statements.truncateLog(upTo, olderThanMs));
  }

  acquireLease(holder: RegistrationName, ttlMs: number): Promise<Lease> {
    return this.#call("acquireLease", (statements) => statements.acquireLease(holder, ttlMs));
  }

  releaseLease(holder: RegistrationName): Promise<void> {
    return this.#call("releaseLease", (statements) => statements.releaseLease(holder));
  }

  heartbeat(beat: Omit<Heartbeat, "isMarked">): Promise<{ readonly refused: boolean; readonly nowMs: number }> {
    return this.#call("heartbeat", (statements) => statements.heartbeat(beat));
  }

  readHeartbeats(): Promise<readonly Heartbeat[]> {
    return this.#call("readHeartbeats", (statements) => statements.readHeartbeats());
  }

  removeHeartbeat(registration: RegistrationName): Promise<void> {
    return this.#call("removeHeartbeat", (statements) => statements.removeHeartbeat(registration));
  }

  onAppended(wake: () => void): () => void {
    this.#wakes.add(wake);
    return () => this.#wakes.delete(wake);
  }

  async close(): Promise<void> {}

  /** Ends the calls that hang, as a time-out does. */
  unhang(): void {
    for (const reject of this.#hung) reject();
    this.#hung.clear();
  }

  async #call<T>(method: Method, run: (statements: SqliteStatements) => T): Promise<T> {
    this.calls.push(method);
    const fault = this.faultOf(method);
    if (fault === "hang") return new Promise<T>((_, reject) => this.#hung.add(() => reject(unanswered(method))));
    if (fault === "refuse") throw new PicoError("database_failed", `${method} was refused`);
    if (fault === "lose_request") throw unanswered(method);
    const answer = run(this.shared.statements);
    this.afterCall(method);
    if (fault === "lose_answer") throw unanswered(method);
    return answer;
  }
}

function unanswered(method: Method): PicoError {
  return new PicoError("unknown_outcome", `${method} was not answered`);
}
