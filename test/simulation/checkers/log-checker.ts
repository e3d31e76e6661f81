/**
 * Follows the command log with the real `apply`, from its first row, beside all nodes: the reference
 * state that nodes and snapshots must agree with, and the record of which streams lived when.
 *
 * Checked at each row: the state's invariants, that what an applied commit names is in the store, that no
 * id comes back. Checked at each snapshot: its rows are the state at its index. What is created and deleted in the
 * store: `store-checker.ts`.
 */

import { apply } from "../../../src/metadata/apply.ts";
import type { Command, Outcome } from "../../../src/metadata/command.ts";
import { decodeBatch } from "../../../src/metadata/command-format.ts";
import { objectKey } from "../../../src/metadata/entries.ts";
import { checkInvariants } from "../../../src/metadata/invariants.ts";
import { MetadataState } from "../../../src/metadata/state.ts";
import { type HashedRows, RowSum } from "../../../src/metadata/state-hash.ts";
import type { LogRow, SnapshotWrite } from "../../../src/sql/sql-store.ts";
import type { DatabaseTime, LifeFacts, LifeLog } from "../model/life-facts.ts";
import type { SimBucket } from "../seams/sim-bucket.ts";
import type { SimDatabase } from "../seams/sim-database.ts";
import type { World } from "../world/world.ts";
import { type Laggard, StoreChecker } from "./store-checker.ts";

const INVARIANTS_EVERY_ROWS = 4;

export class LogChecker implements LifeLog {
  #state = new MetadataState();
  /** Every row from the first on. */
  #rows: LogRow[] = [];
  /** The database was lost: the next row tells how far back the log was restored. */
  #isLost = false;
  readonly #hashes = new Map<number, HashedRows>();
  readonly #lives = new Map<number, LifeFacts>();
  readonly #livesOf = new Map<string, LifeFacts[]>();
  readonly store: StoreChecker;
  /** Rows that created and removed each stream. */
  readonly #lifeIndexes = new Map<number, { readonly created: number; readonly removed: number | null }>();

  constructor(
    private readonly world: World,
    private readonly database: SimDatabase,
    private readonly bucket: SimBucket,
    private readonly clusterId: string,
  ) {
    database.onRow = (row) => this.#follow(row);
    database.onLost = () => {
      this.#isLost = true;
    };
    database.onSnapshot = (write) => this.#checkSnapshot(write);
    this.store = new StoreChecker(world, bucket, clusterId, this.state);
  }

  get state(): MetadataState {
    return this.#state;
  }

  life(streamId: number): LifeFacts | null {
    return this.#lives.get(streamId) ?? null;
  }

  livesOf(name: string): readonly LifeFacts[] {
    return this.#livesOf.get(name) ?? [];
  }

  lives(): Iterable<LifeFacts> {
    return this.#lives.values();
  }

  databaseNow(): DatabaseTime {
    return this.#databaseTime(this.database.nowMs());
  }

  /** A node's state at `index`: equal to the reference's. */
  checkHash(who: string, index: number, hash: HashedRows): void {
    const reference = this.#hashes.get(index);
    this.world.check(
      reference !== undefined && reference.rowSum === hash.rowSum && reference.rowCount === hash.rowCount,
      () => `${who}: its state at index ${index} is not what the log makes`,
    );
  }

  /** A live node that lags, if there is one. */
  set laggard(laggard: Laggard | null) {
    this.store.laggard = laggard;
  }

  /** The same for the sum alone, 16 hex digits. */
  checkSum(who: string, index: number, sum: string): void {
    const reference = this.#hashes.get(index)?.rowSum.toString(16).padStart(16, "0");
    this.world.check(reference === sum, () => `${who} at index ${index} has the hash ${sum} instead of ${reference}`);
  }

  /** Every live object is in the store. */
  checkLiveObjects(): void {
    for (const entry of this.state.objects()) if (entry.state === "live") this.#checkStored(entry.objectId);
  }

  /** After graceful stops no registration has anything left to recover. */
  checkAllEnded(): void {
    for (const entry of this.state.registrations()) {
      const { nodeId, nodeEpoch } = entry.name;
      this.world.check(entry.state === "ended", () => `registration ${nodeId}@${nodeEpoch} is ${entry.state} after a graceful stop`);
    }
  }

  /** A restored log: the rows up to `index` are those that were there, and what came behind them never was. */
  #rewind(index: number): void {
    const { world } = this;
    world.check(index <= this.#rows.length, () => `the log was restored up to ${index}, and never went beyond ${this.#rows.length}`);
    for (const row of this.database.statements.readLog(0, index).rows) {
      if (row.index > index) break;
      world.check(this.#rows[row.index - 1]?.rowId === row.rowId, () => `log row ${row.index} was restored as another one`);
    }
    world.trace.note(`the log goes on behind ${index}, ${this.#rows.length - index} rows are lost`);
    if (this.#rows.length > index) world.trace.count("restore lost rows");
    for (const facts of this.#lives.values()) this.#forgetBeyond(facts, index);
    this.#rows = this.#rows.slice(0, index);
    this.#state = new MetadataState();
    const gone: number[] = [];
    for (const row of this.#rows) {
      const { commands, version } = decodeBatch(row.payload, `log row ${row.index}`);
      const outcomes = apply(this.#state, { ...row, version, commands });
      commands.forEach((command, at) => {
        if (command.type === "remove_objects" && outcomes[at]?.applied) gone.push(...command.objectIds);
      });
    }
    this.store.rewind(this.#state, gone);
    for (const at of [...this.#hashes.keys()]) if (at > index) this.#hashes.delete(at);
  }

  #forgetBeyond(facts: LifeFacts, index: number): void {
    const { created, removed } = this.#lifeIndexes.get(facts.streamId) ?? { created: 0, removed: null };
    this.world.check(created <= index, () => `${facts.name} was created where commands were to be lost`);
    if (removed === null || removed <= index) return;
    facts.removedMs = null;
    facts.expiredAt = null;
    this.#lifeIndexes.set(facts.streamId, { created, removed: null });
  }

  #follow(row: LogRow): void {
    if (this.#isLost) {
      this.#isLost = false;
      this.#rewind(row.index - 1);
    }
    this.#rows.push(row);
    const { state, world } = this;
    world.check(row.index === state.appliedIndex + 1, () => `log row ${row.index} follows row ${state.appliedIndex}`);
    const { commands, version } = decodeBatch(row.payload, `log row ${row.index}`);
    const outcomes = apply(state, { ...row, version, commands });
    this.#hashes.set(row.index, state.hash());
    this.store.noteRow(row.index, row.rowId);
    // Hashes are compared at every index; this costs more than applying the row.
    if (row.index % INVARIANTS_EVERY_ROWS === 0) checkInvariants(state);
    commands.forEach((command, at) => {
      const outcome = outcomes[at];
      if (outcome === undefined) throw world.failed(`log row ${row.index} has no outcome for command ${at}`);
      else this.#note(command, outcome, row);
    });
  }

  #note(command: Command, outcome: Outcome, row: LogRow): void {
    const { trace } = this.world;
    trace.count(outcome.applied ? `command ${command.type}` : `refused ${command.type} ${outcome.code}`);
    trace.note(
      `log ${row.index} ${command.type} ${"streamId" in command ? command.streamId : ""} ${outcome.applied ? "applied" : outcome.code}`,
    );
    if (command.type === "acquire_stream" && !outcome.applied && outcome.code === "expired")
      this.#removed(command.streamId, this.#databaseTime(row.atMs));
    if (!outcome.applied) return;
    switch (command.type) {
      case "create_stream":
        this.#created(command, this.#databaseTime(row.atMs));
        break;
      case "delete_stream":
        this.#removed(command.streamId, null);
        break;
      case "expire_stream":
        this.#removed(command.streamId, this.#databaseTime(row.atMs));
        break;
      case "commit":
        this.store.noteCommit(command.wal, command.to, row.index);
        for (const object of command.objects) this.#checkStored(object.objectId);
        break;
      case "compact":
        for (const object of command.outputs) this.#checkStored(object.objectId);
        break;
      case "end":
        this.store.noteEnd(command.victim, row.index);
        break;
      case "remove_objects":
        this.store.noteRemoved(command.objectIds);
        break;
      default:
    }
  }

  #created(command: Extract<Command, { type: "create_stream" }>, createdAt: DatabaseTime): void {
    const { streamId, name } = command;
    this.world.check(!this.#lives.has(streamId), () => `stream id ${streamId} was created twice`);
    const lives = this.#livesOf.get(name) ?? [];
    const last = lives[lives.length - 1];
    this.world.check(last === undefined || last.removedMs !== null, () => `${name} was created while it lives`);
    const facts: LifeFacts = {
      streamId,
      name,
      settings: command.settings,
      fork: command.fork,
      isCreatedClosed: command.isClosed,
      createdMs: this.world.nowMs,
      createdAt,
      removedMs: null,
      expiredAt: null,
    };
    this.#lives.set(streamId, facts);
    this.#lifeIndexes.set(streamId, { created: this.#rows.length, removed: null });
    this.#livesOf.set(name, [...lives, facts]);
  }

  #databaseTime(atMs: number): DatabaseTime {
    return { atMs, setBackMs: this.database.setBackMs };
  }

  #removed(streamId: number, expiredAt: DatabaseTime | null): void {
    const facts = this.#lives.get(streamId);
    if (facts === undefined || facts.removedMs !== null) throw this.world.failed(`stream ${streamId} was removed, and is not alive`);
    facts.removedMs = this.world.nowMs;
    this.#lifeIndexes.set(streamId, { created: this.#lifeIndexes.get(streamId)?.created ?? 0, removed: this.#rows.length });
    facts.expiredAt = expiredAt;
  }

  #checkStored(objectId: number): void {
    const entry = this.state.object(objectId);
    this.world.check(!this.store.isGone(objectId), () => `object ${objectId} was removed and is committed again`);
    this.world.check(
      entry !== null && this.bucket.peek(objectKey(this.clusterId, entry)) !== null,
      () => `object ${objectId} is committed and not in the store`,
    );
  }

  #checkSnapshot(write: SnapshotWrite): void {
    const { head } = write;
    this.checkHash("the snapshot's head", head.index, head);
    const stored = new RowSum();
    this.database.statements.readSnapshot((rows) => {
      for (const row of rows) stored.add(row.key, row.value);
    });
    this.checkHash("the stored snapshot", head.index, stored);
    this.world.trace.count("snapshot");
  }
}
