/** A database with a log, a store, and mirrors between them. */
import { formatRegistration, type RegistrationName } from "../../src/lib/registration.ts";
import type { Command } from "../../src/metadata/command.ts";
import { encodeBatch, encodeCommand } from "../../src/metadata/command-format.ts";
import { LogTailer } from "../../src/metadata/log-tailer.ts";
import { loadState } from "../../src/metadata/snapshot-loader.ts";
import { Snapshotter } from "../../src/metadata/snapshotter.ts";
import type { MetadataState } from "../../src/metadata/state.ts";
import { Mirror, type MirroredLog } from "../../src/mirror/mirror.ts";
import { MemoryDatabase, MemorySqlStore } from "../metadata/memory-sql-store.ts";
import { PLAIN, registerCommand } from "../metadata/state-fixture.ts";
import { FaultyStore } from "../support/faulty-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLog } from "../support/silent-log.ts";

export const IDENTITY = "0123456789abcdef0123456789abcdef";
export const CLUSTER = "c";
export const NODE: RegistrationName = { nodeId: 1, nodeEpoch: 1 };

let fixtures = 0;

export class MirrorFixture {
  readonly clock = new ManualClock();
  readonly store: FaultyStore;
  readonly fatal: unknown[] = [];
  database = new MemoryDatabase(this.clock);
  sql = new MemorySqlStore(this.database);
  /** So that no two databases have a row in common by chance. */
  #rows = ++fixtures * 1_000_000;
  #batches = new Map<string, number>();
  #streams = 0;

  constructor(store = new FaultyStore()) {
    this.store = store;
    this.database.statements.open(IDENTITY);
    this.add(NODE, [registerCommand(NODE)]);
  }

  /** Adds a row. */
  add(proposer: RegistrationName, commands: readonly Command[]): void {
    const key = formatRegistration(proposer);
    const batch = this.#batches.get(key) ?? 0;
    this.#batches.set(key, batch + 1);
    this.#rows += 1;
    const rowId = this.#rows.toString(16).padStart(32, "0");
    this.database.statements.insertBatch({ rowId, proposer, batch, payload: encodeBatch(commands.map(encodeCommand)), fences: [] });
  }

  /** Adds rows, each with a stream. */
  addStreams(count: number): void {
    for (let i = 0; i < count; i++) {
      this.#streams += 1;
      const name = `s/${this.#streams}`;
      this.add(NODE, [{ type: "create_stream", streamId: this.#streams, name, settings: PLAIN, isClosed: false, fork: null }]);
    }
  }

  get head(): number {
    return this.database.statements.readLog(0, 1).head;
  }

  /** The state at the head. */
  async state(sql = this.sql): Promise<MetadataState> {
    const state = await loadState(sql);
    const tailer = new LogTailer({
      store: sql,
      state,
      clock: this.clock,
      onApplied: () => undefined,
      onFatal: (error) => this.fatal.push(error),
    });
    await tailer.read();
    return state;
  }

  /** Stores a snapshot at the head. */
  async snapshot(): Promise<number> {
    const before = this.database.statements.readSnapshot(() => undefined).index;
    const state = await this.state();
    if (!(await new Snapshotter({ store: this.sql, state, clock: this.clock }, before).write())) throw new Error("no snapshot");
    return state.appliedIndex;
  }

  mirror(log: Partial<MirroredLog> = {}, logger = silentLog): Mirror {
    const { store, sql, clock, fatal } = this;
    const database = this.database;
    const metadata: MirroredLog = {
      clusterIdentity: IDENTITY,
      isLeaseHeld: true,
      isDatabaseClockSteady: true,
      databaseNowMs: () => clock.nowMs(),
      get view() {
        return { appliedIndex: database.statements.readLog(0, 1).head, removalHeldUntilMs: null };
      },
      get snapshotIndex() {
        return database.statements.readSnapshot(() => undefined).index;
      },
    };
    // Getters stay such: what a test says may change under the mirror.
    Object.defineProperties(metadata, Object.getOwnPropertyDescriptors(log));
    return new Mirror({ store, sql, metadata, clusterId: CLUSTER, clock, log: logger, onFatal: (error) => fatal.push(error) });
  }

  /** The database as it was `rows` log rows ago. */
  loseRows(rows: number): void {
    const head = this.head - rows;
    this.database.database.run(`DELETE FROM log WHERE log_index > ${head}`);
    this.database.database.run(`UPDATE log_head SET head = ${head}`);
  }

  /** Another database, empty. */
  loseDatabase(identity = "f".repeat(32)): void {
    this.database = new MemoryDatabase(this.clock);
    this.sql = new MemorySqlStore(this.database);
    this.database.statements.open(identity);
  }

  /** Flips a bit of a stored object. */
  async damage(key: string): Promise<void> {
    const bytes = await this.store.inner.read(key);
    if (bytes === null) throw new Error(`no object ${key}`);
    bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
    await this.store.inner.delete([key]);
    await this.store.inner.create(key, bytes);
  }
}
