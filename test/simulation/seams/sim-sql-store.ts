/** `SqlStore` of one process on the simulated database: each method is one call through a `ServiceLink`. */
import { PicoError } from "../../../src/lib/errors.ts";
import type { RegistrationName } from "../../../src/lib/registration.ts";
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
} from "../../../src/sql/sql-store.ts";
import type { SimProcess } from "../world/process.ts";
import type { ServiceLink } from "./service-link.ts";
import type { SimDatabase } from "./sim-database.ts";

/** Rows handed over at a time. */
const SNAPSHOT_PAGE_ROWS = 100;
/** Of a wake-up hint getting lost, in a storm. */
const LOSE_WAKE_CHANCE = 0.2;

export class SimSqlStore implements SqlStore {
  readonly description = "sim://database";
  readonly #lossCount: number;

  constructor(
    private readonly database: SimDatabase,
    private readonly link: ServiceLink,
    private readonly process: SimProcess,
  ) {
    this.#lossCount = database.lossCount;
  }

  open(clusterIdentity: string): Promise<{ readonly clusterIdentity: string }> {
    return this.#call("open", "write", () => this.database.statements.open(clusterIdentity));
  }

  nowMs(): Promise<number> {
    return this.#call("nowMs", "read", () => this.database.nowMs());
  }

  checkWrites(): Promise<void> {
    return this.#call("checkWrites", "write", () => this.database.statements.checkWrites());
  }

  insertBatch(insert: BatchInsert): Promise<BatchOutcome> {
    const sent = { ...insert, payload: insert.payload.slice() };
    return this.#call(`insertBatch ${insert.batch}`, "write", () => this.database.insertBatch(sent));
  }

  readLog(after: number, limit: number): Promise<LogPage> {
    return this.#call(`readLog ${after}`, "read", () => this.database.statements.readLog(after, limit));
  }

  rowIdAt(index: number): Promise<string | null> {
    return this.#call(`rowIdAt ${index}`, "read", () => this.database.statements.rowIdAt(index));
  }

  async readSnapshot(onRows: (rows: readonly SnapshotRow[], head: SnapshotHead) => void | Promise<void>): Promise<SnapshotHead> {
    const { head, rows } = await this.#call("readSnapshot", "read", () => {
      const read: SnapshotRow[] = [];
      const head = this.database.statements.readSnapshot((page) => read.push(...page));
      return { head, rows: read };
    });
    for (let at = 0; at < rows.length; at += SNAPSHOT_PAGE_ROWS) await onRows(rows.slice(at, at + SNAPSHOT_PAGE_ROWS), head);
    return head;
  }

  writeSnapshot(write: SnapshotWrite): Promise<boolean> {
    return this.#call(`writeSnapshot ${write.head.index}`, "write", () => this.database.writeSnapshot(write));
  }

  importPart(part: ImportPart): Promise<void> {
    return this.#call("importPart", "write", () => this.database.statements.importPart(part));
  }

  truncateLog(upTo: number, olderThanMs: number): Promise<number> {
    return this.#call(`truncateLog ${upTo}`, "write", () => this.database.statements.truncateLog(upTo, olderThanMs));
  }

  acquireLease(holder: RegistrationName, ttlMs: number): Promise<Lease> {
    return this.#call("acquireLease", "write", () => this.database.statements.acquireLease(holder, ttlMs));
  }

  releaseLease(holder: RegistrationName): Promise<void> {
    return this.#call("releaseLease", "write", () => this.database.statements.releaseLease(holder));
  }

  heartbeat(beat: Omit<Heartbeat, "isMarked">): Promise<{ readonly refused: boolean; readonly nowMs: number }> {
    return this.#call(`heartbeat ${beat.counter}`, "write", () => this.database.statements.heartbeat(beat));
  }

  readHeartbeats(): Promise<readonly Heartbeat[]> {
    return this.#call("readHeartbeats", "read", () => this.database.statements.readHeartbeats());
  }

  removeHeartbeat(registration: RegistrationName): Promise<void> {
    return this.#call("removeHeartbeat", "write", () => this.database.statements.removeHeartbeat(registration));
  }

  /** Hints come late, or not at all. */
  onAppended(wake: () => void): () => void {
    const { service } = this.link;
    const end = this.database.watch(() => {
      const isLost = service.world.faultsOn && service.prng.chance(LOSE_WAKE_CHANCE);
      if (isLost || this.process.isDead) return;
      const delayMs = service.prng.around(service.weather.delayMs);
      service.world.scheduler.schedule(delayMs, `${this.process.name} database wake`, () => this.process.deliver(wake));
    });
    this.process.onDeath(end);
    return end;
  }

  async close(): Promise<void> {
    this.link.close();
  }

  /** What comes late reaches the file that was opened, and not the one that is in its place now. */
  #call<T>(name: string, kind: "read" | "write", effect: () => T): Promise<T> {
    return this.link.call(name, kind, () => {
      if (this.database.lossCount !== this.#lossCount)
        throw new PicoError("unavailable", "this database is lost, and another one is in its place");
      return effect();
    });
  }
}
