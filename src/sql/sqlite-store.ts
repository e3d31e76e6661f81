/**
 * The SQL store on SQLite: a worker thread runs the statements, this side sends calls and waits for
 * answers. Several processes of one host may share the file.
 *
 * Invariants:
 * - A call ends, by its answer, by its deadline, or by the death of the worker. A write whose answer is
 *   missing is `unknown_outcome`, a read `database_failed`.
 * - A worker that died is replaced at the next call, except for a database in memory, which died with it.
 */
import { InvariantError } from "../lib/assert.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { SQL_CALL_TIMEOUT_MS, SQL_CALLS_WAITING_MAX } from "../lib/limits.ts";
import type { RegistrationName } from "../lib/registration.ts";
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
} from "./sql-store.ts";
import { SQLITE_MEMORY_PATH } from "./sqlite-database.ts";
import { isReadOnly, type SqliteAnswer, type SqliteCall, type SqliteRequest } from "./sqlite-message.ts";

export interface SqliteStoreOptions {
  /** The database file, made if missing; `:memory:` for a database that goes with this store. */
  readonly path: string;
  readonly clock: Clock;
  /** Told once, at open, where the folder may be unfit for SQLite. */
  readonly onWarning?: (message: string) => void;
}

interface PendingCall {
  readonly worker: Worker;
  readonly call: SqliteCall;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
  readonly timer: Timer;
}

export class SqliteStore implements SqlStore {
  readonly description: string;
  readonly #path: string;
  readonly #clock: Clock;
  readonly #onWarning: (message: string) => void;
  readonly #pending = new Map<number, PendingCall>();
  readonly #wakes = new Set<() => void>();
  #lastId = 0;
  /** Resolves when a worker has opened the database; null before the first call and after a death. */
  #worker: Promise<Worker> | null = null;
  /** The thread behind `#worker`, also while it starts. */
  #thread: Worker | null = null;
  #lostMemory = false;
  #isClosed = false;

  constructor(options: SqliteStoreOptions) {
    this.#path = options.path;
    this.#clock = options.clock;
    this.#onWarning = options.onWarning ?? (() => undefined);
    this.description = `sqlite:${options.path}`;
  }

  async open(clusterIdentity: string): Promise<{ readonly clusterIdentity: string }> {
    return (await this.#call({ method: "open", clusterIdentity })) as { clusterIdentity: string };
  }

  async nowMs(): Promise<number> {
    return (await this.#call({ method: "nowMs" })) as number;
  }

  async checkWrites(): Promise<void> {
    await this.#call({ method: "checkWrites" });
  }

  async insertBatch(insert: BatchInsert): Promise<BatchOutcome> {
    const call: SqliteCall = { method: "insertBatch", insert: { ...insert, payload: ownBytes(insert.payload) } };
    const outcome = (await this.#call(call)) as BatchOutcome;
    // Apart from this call, so that no listener can turn a success into an error.
    if (outcome.inserted) for (const wake of this.#wakes) queueMicrotask(wake);
    return outcome;
  }

  async readLog(after: number, limit: number): Promise<LogPage> {
    return (await this.#call({ method: "readLog", after, limit })) as LogPage;
  }

  async rowIdAt(index: number): Promise<string | null> {
    return (await this.#call({ method: "rowIdAt", index })) as string | null;
  }

  async readSnapshot(onRows: (rows: readonly SnapshotRow[], head: SnapshotHead) => void | Promise<void>): Promise<SnapshotHead> {
    const { cursor, head } = (await this.#call({ method: "snapshotBegin" })) as { cursor: number; head: SnapshotHead };
    try {
      for (;;) {
        const rows = (await this.#call({ method: "snapshotNext", cursor })) as readonly SnapshotRow[];
        if (rows.length === 0) return head;
        await onRows(rows, head);
      }
    } finally {
      // Where the worker died, the transaction died with it.
      await this.#call({ method: "snapshotEnd", cursor }).catch(() => undefined);
    }
  }

  async writeSnapshot(write: SnapshotWrite): Promise<boolean> {
    const upserts = write.upserts.map((row) => ({ key: row.key, value: ownBytes(row.value) }));
    return (await this.#call({ method: "writeSnapshot", write: { ...write, upserts } })) as boolean;
  }

  async importPart(part: ImportPart): Promise<void> {
    const snapshotRows = part.snapshotRows.map((row) => ({ key: row.key, value: ownBytes(row.value) }));
    const logRows = part.logRows.map((row) => ({ ...row, payload: ownBytes(row.payload) }));
    await this.#call({ method: "importPart", part: { ...part, snapshotRows, logRows } });
  }

  async truncateLog(upTo: number, olderThanMs: number): Promise<number> {
    return (await this.#call({ method: "truncateLog", upTo, olderThanMs })) as number;
  }

  async acquireLease(holder: RegistrationName, ttlMs: number): Promise<Lease> {
    return (await this.#call({ method: "acquireLease", holder, ttlMs })) as Lease;
  }

  async releaseLease(holder: RegistrationName): Promise<void> {
    await this.#call({ method: "releaseLease", holder });
  }

  async heartbeat(beat: Omit<Heartbeat, "isMarked">): Promise<{ readonly refused: boolean; readonly nowMs: number }> {
    return (await this.#call({ method: "heartbeat", beat })) as { refused: boolean; nowMs: number };
  }

  async readHeartbeats(): Promise<readonly Heartbeat[]> {
    return (await this.#call({ method: "readHeartbeats" })) as readonly Heartbeat[];
  }

  async removeHeartbeat(registration: RegistrationName): Promise<void> {
    await this.#call({ method: "removeHeartbeat", registration });
  }

  /** Wakes for inserts of this store only; those of other processes are found by polling. */
  onAppended(wake: () => void): () => void {
    // Wrapped, so that one function given twice is called, and ended, twice.
    const entry = () => wake();
    this.#wakes.add(entry);
    return () => this.#wakes.delete(entry);
  }

  /** Waits for the calls under way, closes the file and ends the thread. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#wakes.clear();
    const worker = await this.#worker?.catch(() => null);
    if (worker === null || worker === undefined) return;
    // A worker that does not answer is ended all the same; SQLite recovers from that as from a crash.
    await this.#send(worker, { method: "stop" }).catch(() => undefined);
    worker.terminate();
  }

  async #call(call: SqliteCall): Promise<unknown> {
    if (this.#isClosed) throw new PicoError("database_failed", `${call.method} refused: the database is closed`);
    if (this.#lostMemory) throw new PicoError("database_failed", `${call.method} refused: the database in memory is lost with its thread`);
    if (this.#pending.size >= SQL_CALLS_WAITING_MAX) {
      throw new PicoError("database_failed", `${call.method} refused: ${SQL_CALLS_WAITING_MAX} calls wait for the database`);
    }
    this.#worker ??= this.#startWorker();
    return this.#send(await this.#worker, call);
  }

  async #startWorker(): Promise<Worker> {
    const worker = new Worker(sqliteWorkerUrl());
    this.#thread = worker;
    worker.onmessage = (event: MessageEvent<SqliteAnswer>) => this.#settle(event.data);
    worker.onerror = (event) => this.#onDeath(worker, event.message);
    worker.addEventListener("close", () => this.#onDeath(worker, "the thread ended"));
    try {
      const warning = (await this.#send(worker, { method: "start", path: this.#path })) as string | null;
      if (warning !== null) this.#onWarning(warning);
      return worker;
    } catch (error) {
      if (this.#thread === worker) this.#forgetWorker();
      worker.terminate();
      throw error;
    }
  }

  #send(worker: Worker, call: SqliteCall): Promise<unknown> {
    this.#lastId += 1;
    const id = this.#lastId;
    return new Promise((resolve, reject) => {
      const timer = this.#clock.schedule(SQL_CALL_TIMEOUT_MS, () => {
        this.#pending.delete(id);
        reject(noAnswer(call, `no answer within ${SQL_CALL_TIMEOUT_MS} ms`));
      });
      this.#pending.set(id, { worker, call, resolve, reject, timer });
      const request: SqliteRequest = { id, call };
      worker.postMessage(request);
    });
  }

  #settle(answer: SqliteAnswer): void {
    const pending = this.#pending.get(answer.id);
    // A deadline was faster.
    if (pending === undefined) return;
    this.#pending.delete(answer.id);
    pending.timer.cancel();
    if (!answer.isError) pending.resolve(answer.value);
    else if (answer.code === null) pending.reject(new InvariantError(answer.message));
    else pending.reject(new PicoError(answer.code, answer.message, answer.facts));
  }

  /** Comes once or twice for a worker, and may come when it was replaced long ago. */
  #onDeath(worker: Worker, reason: string): void {
    if (this.#thread === worker) {
      this.#forgetWorker();
      if (this.#path === SQLITE_MEMORY_PATH) this.#lostMemory = true;
    }
    for (const [id, pending] of [...this.#pending]) {
      if (pending.worker !== worker) continue;
      this.#pending.delete(id);
      pending.timer.cancel();
      pending.reject(noAnswer(pending.call, reason));
    }
  }

  #forgetWorker(): void {
    this.#worker = null;
    this.#thread = null;
  }
}

/** A view would be sent with all of the buffer behind it. */
function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : bytes.slice();
}

function noAnswer(call: SqliteCall, reason: string): PicoError {
  const facts = { operation: call.method };
  if (isReadOnly(call)) return new PicoError("database_failed", `${call.method} failed in the SQLite thread: ${reason}`, facts);
  return new PicoError("unknown_outcome", `${call.method} may have taken effect: ${reason} in the SQLite thread`, facts);
}

/**
 * The worker's module. In a compiled executable this file is part of the main entry, which lies at the root
 * of the embedded files, while the worker keeps its path below the entries' common folder, `src`. Both
 * `src/cli/main.ts` and `src/sql/sqlite-worker.ts` must be entries of the build.
 */
function sqliteWorkerUrl(): URL {
  const isCompiled = /\/(\$bunfs|~BUN)\//.test(import.meta.url);
  return new URL(isCompiled ? "./sql/sqlite-worker.ts" : "./sqlite-worker.ts", import.meta.url);
}
