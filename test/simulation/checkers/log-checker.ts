/**
 * Follows the command log with the real `apply`, from its first row, beside all nodes: the reference
 * state that nodes and snapshots must agree with, and the record of which streams lived when.
 *
 * Checked at each row: the state's invariants, that what an applied commit names is in the store, that no
 * id comes back, that no key in the store is used for two things. Checked at each snapshot: its rows are the state at its index. Checked at each delete in
 * the store: a positive record allows it.
 */

import { isTombstone } from "../../../src/engine/wal-segment.ts";
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

const INVARIANTS_EVERY_ROWS = 4;

export class LogChecker implements LifeLog {
  readonly state = new MetadataState();
  readonly #hashes = new Map<number, HashedRows>();
  readonly #lives = new Map<number, LifeFacts>();
  readonly #livesOf = new Map<string, LifeFacts[]>();
  readonly #goneObjects = new Set<number>();

  constructor(
    private readonly world: World,
    private readonly database: SimDatabase,
    private readonly bucket: SimBucket,
    private readonly clusterId: string,
  ) {
    database.onRow = (row) => this.#follow(row);
    database.onSnapshot = (write) => this.#checkSnapshot(write);
    bucket.onReuse = (key, bytes) => {
      // A tombstone's create that was long on its way, where a void segment lay meanwhile.
      if (isTombstone(bytes)) return;
      throw world.failed(`key ${key} was created, deleted, and created again with other bytes`);
    };
    bucket.onDelete = (key, bytes) => this.#checkDelete(key, bytes);
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

  #follow(row: LogRow): void {
    const { state, world } = this;
    world.check(row.index === state.appliedIndex + 1, () => `log row ${row.index} follows row ${state.appliedIndex}`);
    const { commands, version } = decodeBatch(row.payload, `log row ${row.index}`);
    const outcomes = apply(state, { ...row, version, commands });
    this.#hashes.set(row.index, state.hash());
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
        for (const object of command.objects) this.#checkStored(object.objectId);
        break;
      case "compact":
        for (const object of command.outputs) this.#checkStored(object.objectId);
        break;
      case "remove_objects":
        for (const objectId of command.objectIds) this.#goneObjects.add(objectId);
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
    this.#livesOf.set(name, [...lives, facts]);
  }

  #databaseTime(atMs: number): DatabaseTime {
    return { atMs, setBackMs: this.database.setBackMs };
  }

  #removed(streamId: number, expiredAt: DatabaseTime | null): void {
    const facts = this.#lives.get(streamId);
    if (facts === undefined || facts.removedMs !== null) throw this.world.failed(`stream ${streamId} was removed, and is not alive`);
    facts.removedMs = this.world.nowMs;
    facts.expiredAt = expiredAt;
  }

  #checkStored(objectId: number): void {
    const entry = this.state.object(objectId);
    this.world.check(!this.#goneObjects.has(objectId), () => `object ${objectId} was removed and is committed again`);
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

  #checkDelete(key: string, bytes: Uint8Array): void {
    const [cluster, kind, third, fourth, fifth] = key.split("/");
    this.world.check(cluster === this.clusterId, () => `${key} was deleted, which is another cluster's`);
    if (kind === "wal") this.#checkTrim(key, Number(third), Number(fourth), Number(fifth), bytes);
    else if (kind === "data") this.#checkObjectDelete(key, Number(fourth));
    else if (kind !== "marker") throw this.world.failed(`${key} was deleted, and is nothing known`);
  }

  #checkTrim(key: string, nodeId: number, nodeEpoch: number, number: number, bytes: Uint8Array): void {
    const entry = this.state.registration({ nodeId, nodeEpoch });
    this.world.check(entry !== null, () => `${key} was trimmed, and its registration is unknown`);
    if (entry === null) return;
    this.world.check(!isTombstone(bytes), () => `the tombstone ${key} was deleted`);
    // What lies above the tombstone of an ended registration is void for ever.
    this.world.check(
      entry.state === "ended" || number <= entry.committedNumber,
      () => `${key} was trimmed above the committed position ${entry.committedNumber}`,
    );
    // Recoverers replay from the position of the fence; a trim sent before it may arrive after it.
    const isNeeded = entry.state === "fenced" && number > (entry.fencedNumber ?? 0);
    this.world.check(!isNeeded, () => `${key} was trimmed between the fence and the end of its registration`);
  }

  #checkObjectDelete(key: string, objectId: number): void {
    const entry = this.state.object(objectId);
    const isAllowed = entry === null ? this.#goneObjects.has(objectId) : entry.state === "destroyed";
    this.world.check(isAllowed, () => `${key} was deleted, and no command destroyed it`);
  }
}
