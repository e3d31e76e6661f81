/**
 * The metadata state: what the applied log rows make. `apply` alone changes it, through the `put` and
 * `remove` methods here, and everybody else reads it as a `View`.
 *
 * Invariants (cheap ones are asserted here and in `apply`; all of them by `checkInvariants`):
 * - `appliedIndex` grows by one a row, never more, never less.
 * - Entries are immutable and replaced on change; every index below holds exactly the newest ones.
 * - A name belongs to at most one stream, a deleted one that forks keep included.
 * - `forkCount` of a stream is the number of entries whose `fork.sourceId` is its id.
 * - A stream's trim point never falls, and its owner is a known registration.
 * - An object has one state; only live ones are found by `liveObjectsOf`.
 * - Every change of a row is told to the hash (before) and to the dirty rows.
 */
import { assert } from "../lib/assert.ts";
import { OFFSET_MAX } from "../lib/limits.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { StreamSettings } from "./command.ts";
import { DirtyRows } from "./dirty-rows.ts";
import type { NodeEntry, ObjectEntry, RegistrationEntry, StreamEntry } from "./entries.ts";
import { NameOrder } from "./name-order.ts";
import { ObjectIndex } from "./object-index.ts";
import { type ObjectFigures, ObjectTally } from "./object-tally.ts";
import { type ChainEnd, RegistrationTable } from "./registration-table.ts";
import { ShrunkStreams } from "./shrunk-streams.ts";
import {
  COUNTERS_KEY,
  type Counters,
  nodeKey,
  objectRowKey,
  parseRowKey,
  registrationKey,
  type StateRow,
  streamKey,
} from "./state-format.ts";
import { type HashedRows, StateHash } from "./state-hash.ts";
import { StreamTallies } from "./stream-tallies.ts";
import type { View } from "./view.ts";

/** The same for every program: all nodes start from one state. */
const FIRST_COUNTERS: Counters = { nextStreamId: 1, nextObjectId: 1, commandVersion: 1, appliedAtMs: 0, removalHeldUntilMs: null };

/** Distinct settings kept for sharing; beyond, streams get objects of their own. */
const SHARED_SETTINGS_MAX = 4096;

export class MetadataState implements View {
  #appliedIndex = 0;
  /** Row id of the last applied row; empty before the first. */
  #appliedRowId = "";
  /** Null until the first row is applied: an empty state has no rows. */
  #counters: Counters | null = null;
  readonly #streams = new Map<number, StreamEntry>();
  readonly #names = new NameOrder();
  readonly #nodes = new Map<number, NodeEntry>();
  readonly #registrations = new RegistrationTable();
  readonly #objects = new Map<number, ObjectEntry>();
  readonly #preparedIds = new Set<number>();
  readonly #liveObjects = new ObjectIndex();
  readonly #objectTally = new ObjectTally();
  readonly #streamTallies = new StreamTallies();
  readonly #shrunkStreams = new ShrunkStreams();
  readonly #sharedSettings = new Map<string, StreamSettings>();
  readonly #hash = new StateHash();
  readonly dirtyRows = new DirtyRows();

  get appliedIndex(): number {
    return this.#appliedIndex;
  }

  get appliedRowId(): string {
    return this.#appliedRowId;
  }

  get appliedAtMs(): number {
    return this.counters.appliedAtMs;
  }

  get removalHeldUntilMs(): number | null {
    return this.counters.removalHeldUntilMs;
  }

  get counters(): Counters {
    return this.#counters ?? FIRST_COUNTERS;
  }

  // The view.

  get streamCount(): number {
    return this.#streams.size;
  }

  streamByName(name: string): StreamEntry | null {
    const streamId = this.#names.get(name);
    return streamId === null ? null : this.streamById(streamId);
  }

  streamById(streamId: number): StreamEntry | null {
    return this.#streams.get(streamId) ?? null;
  }

  listStreams(prefix: string, after: string | null, limit: number): readonly StreamEntry[] {
    const found: StreamEntry[] = [];
    if (limit <= 0) return found;
    for (const streamId of this.#names.idsFrom(prefix, after)) {
      const entry = this.streamById(streamId);
      assert(entry !== null, "a name leads to a stream");
      if (entry.isDeleted) continue;
      found.push(entry);
      if (found.length >= limit) break;
    }
    return found;
  }

  streams(): Iterable<StreamEntry> {
    return this.#streams.values();
  }

  *forksOf(streamId: number): Generator<StreamEntry> {
    for (const forkId of this.#streamTallies.forksOf(streamId)) {
      const entry = this.streamById(forkId);
      assert(entry !== null, "a fork is known");
      yield entry;
    }
  }

  ownedCounts(): ReadonlyMap<RegistrationEntry, number> {
    const counts = new Map<RegistrationEntry, number>();
    for (const [name, count] of this.#streamTallies.owned()) {
      const end = this.#registrations.chainEnd(name);
      if (end !== null && end.last.state !== "ended") counts.set(end.last, (counts.get(end.last) ?? 0) + count);
    }
    return counts;
  }

  *transferringStreams(): Generator<StreamEntry> {
    for (const streamId of this.#streamTallies.transferring()) {
      const entry = this.streamById(streamId);
      assert(entry !== null, "a stream that is transferred is known");
      yield entry;
    }
  }

  shrunkStreams(): Iterable<number> {
    return this.#shrunkStreams.ids;
  }

  ownerOf(entry: StreamEntry): { readonly owner: RegistrationEntry; readonly recovering: boolean } | null {
    const end = this.#chainEndOf(entry);
    if (end === null || end.last.state === "ended") return null;
    return { owner: end.last, recovering: end.last.state === "fenced" };
  }

  unownedDeadlineMs(entry: StreamEntry): number | null {
    const { expiresAtMs } = entry.settings;
    if (expiresAtMs !== null) return expiresAtMs;
    const ttlMs = ttlMsOf(entry.settings);
    if (ttlMs === null) return null;
    const stored = entry.deadlineMs ?? entry.createdAtMs + ttlMs;
    const endedAtMs = this.#chainEndOf(entry)?.endedAtMs ?? null;
    return Math.min(OFFSET_MAX, endedAtMs === null ? stored : Math.max(stored, endedAtMs + ttlMs));
  }

  registration(name: RegistrationName): RegistrationEntry | null {
    return this.#registrations.get(name);
  }

  registrations(): Iterable<RegistrationEntry> {
    return this.#registrations.all();
  }

  currentRegistration(nodeId: number): RegistrationEntry | null {
    const node = this.node(nodeId);
    return node === null ? null : this.registration({ nodeId, nodeEpoch: node.lastEpoch });
  }

  registrationsOfNode(nodeId: number): Iterable<RegistrationEntry> {
    return this.#registrations.ofNode(nodeId);
  }

  node(nodeId: number): NodeEntry | null {
    return this.#nodes.get(nodeId) ?? null;
  }

  *nodes(): Generator<NodeEntry> {
    for (const node of this.#nodes.values()) if (!node.isRemoved) yield node;
  }

  object(objectId: number): ObjectEntry | null {
    return this.#objects.get(objectId) ?? null;
  }

  get nextObjectId(): number {
    return this.counters.nextObjectId;
  }

  objects(): Iterable<ObjectEntry> {
    return this.#objects.values();
  }

  *preparedObjects(): Generator<ObjectEntry> {
    for (const objectId of this.#preparedIds) {
      const entry = this.object(objectId);
      assert(entry !== null, "a prepared object is known");
      yield entry;
    }
  }

  *destroyedObjects(): Generator<ObjectEntry> {
    for (const objectId of this.#objectTally.destroyedIds()) {
      const entry = this.object(objectId);
      assert(entry !== null, "a destroyed object is known");
      yield entry;
    }
  }

  objectFigures(): ObjectFigures {
    return this.#objectTally.figures();
  }

  liveObjectsOf(streamId: number, fromOffset = 0): readonly ObjectEntry[] {
    return this.#liveObjects.covering(streamId, fromOffset);
  }

  // Rows, for the hash and snapshots.

  /** The row as it stands; null where there is none. */
  row(key: string): StateRow | null {
    const name = parseRowKey(key);
    switch (name.kind) {
      case "counters":
        return rowOf("counters", this.#counters);
      case "node":
        return rowOf("node", this.node(name.id));
      case "registration":
        return rowOf("registration", this.registration(name.name));
      case "stream":
        return rowOf("stream", this.streamById(name.id));
      case "object":
        return rowOf("object", this.object(name.id));
    }
  }

  /** Every key, in no order. */
  *rowKeys(): Generator<string> {
    if (this.#counters !== null) yield COUNTERS_KEY;
    for (const nodeId of this.#nodes.keys()) yield nodeKey(nodeId);
    for (const registration of this.#registrations.all()) yield registrationKey(registration.name);
    for (const streamId of this.#streams.keys()) yield streamKey(streamId);
    for (const objectId of this.#objects.keys()) yield objectRowKey(objectId);
  }

  /** Number and sum of all rows as they stand: equal on all nodes at an equal index. */
  hash(): HashedRows {
    return this.#hash.fold((key) => this.row(key));
  }

  // Loading.

  /** Takes in a row of a stored snapshot. */
  load(key: string, value: Uint8Array, row: StateRow): void {
    this.#hash.load(key, value);
    switch (row.kind) {
      case "counters":
        this.#counters = row.entry;
        break;
      case "node":
        this.#nodes.set(row.entry.nodeId, row.entry);
        break;
      case "registration":
        this.#registrations.put(row.entry);
        break;
      case "stream":
        this.#setStream(row.entry);
        break;
      case "object":
        this.#setObject(row.entry);
        break;
    }
  }

  /** Ends the loading: the rows stand for this index. */
  loaded(index: number, rowId: string): void {
    this.#appliedIndex = index;
    this.#appliedRowId = rowId;
    this.#objectTally.loaded();
  }

  // Changes, for `apply` alone.

  beginRow(index: number, rowId: string, atMs: number, commandVersion: number): void {
    assert(index === this.#appliedIndex + 1, `row ${index} follows row ${this.#appliedIndex}`);
    this.#appliedIndex = index;
    this.#appliedRowId = rowId;
    this.#shrunkStreams.clear();
    this.putCounters({ appliedAtMs: atMs, commandVersion: Math.max(this.counters.commandVersion, commandVersion) });
  }

  endRow(): void {
    if (this.#hash.isFoldDue) this.hash();
  }

  putCounters(changed: Partial<Counters>): void {
    this.#touch(COUNTERS_KEY, rowOf("counters", this.#counters));
    this.#counters = { ...this.counters, ...changed };
  }

  putNode(entry: NodeEntry): void {
    this.#touch(nodeKey(entry.nodeId), rowOf("node", this.node(entry.nodeId)));
    this.#nodes.set(entry.nodeId, entry);
  }

  putRegistration(entry: RegistrationEntry): void {
    this.#touch(registrationKey(entry.name), rowOf("registration", this.registration(entry.name)));
    this.#registrations.put(entry);
  }

  putStream(entry: StreamEntry): void {
    const before = this.streamById(entry.streamId);
    assert(before === null || before.name === entry.name, "a stream keeps its name");
    assert(before === null || before.startOffset <= entry.startOffset, "a trim point never falls");
    assert(entry.forkCount >= 0, "a fork count is not negative");
    this.#touch(streamKey(entry.streamId), rowOf("stream", before));
    if (before !== null) this.#shrunkStreams.note(before, entry, (id) => this.streamById(id));
    this.#setStream(entry);
  }

  removeStream(entry: StreamEntry): void {
    assert(entry.forkCount === 0, "a stream that goes has no forks");
    const before = this.streamById(entry.streamId);
    assert(before !== null, "a stream that goes is known");
    this.#touch(streamKey(entry.streamId), rowOf("stream", before));
    this.#shrunkStreams.note(before, null, (id) => this.streamById(id));
    this.#streamTallies.change(before, null);
    this.#streams.delete(entry.streamId);
    this.#names.remove(entry.name);
  }

  putObject(entry: ObjectEntry): void {
    this.#touch(objectRowKey(entry.objectId), rowOf("object", this.object(entry.objectId)));
    this.#setObject(entry);
  }

  removeObject(entry: ObjectEntry): void {
    assert(entry.state === "destroyed", "only a destroyed object is removed");
    this.#touch(objectRowKey(entry.objectId), rowOf("object", entry));
    this.#objectTally.change(this.object(entry.objectId), null);
    this.#objects.delete(entry.objectId);
  }

  #chainEndOf(entry: StreamEntry): ChainEnd | null {
    if (entry.owner === null) return null;
    const end = this.#registrations.chainEnd(entry.owner);
    assert(end !== null, "the owner of a stream is a known registration");
    return end;
  }

  #setStream(entry: StreamEntry): void {
    const before = this.#streams.get(entry.streamId);
    if (before === undefined) this.#names.add(entry.name, entry.streamId);
    const settings = before?.settings === entry.settings ? entry.settings : this.#share(entry.settings);
    const owner = entry.owner === null ? null : this.#registrations.intern(entry.owner);
    const shared = settings === entry.settings && owner === entry.owner ? entry : { ...entry, settings, owner };
    this.#streams.set(entry.streamId, shared);
    this.#streamTallies.change(before ?? null, shared);
  }

  /** Most streams of a server have one of a few settings; equal ones share an object. */
  #share(settings: StreamSettings): StreamSettings {
    const key = `${settings.ttlSeconds} ${settings.expiresAtMs} ${settings.contentType}`;
    const shared = this.#sharedSettings.get(key);
    if (shared !== undefined) return shared;
    if (this.#sharedSettings.size < SHARED_SETTINGS_MAX) this.#sharedSettings.set(key, settings);
    return settings;
  }

  #setObject(entry: ObjectEntry): void {
    const before = this.#objects.get(entry.objectId);
    this.#objectTally.change(before ?? null, entry);
    if (before?.state === "live") this.#liveObjects.remove(before);
    if (before?.state === "prepared") this.#preparedIds.delete(entry.objectId);
    this.#objects.set(entry.objectId, entry);
    if (entry.state === "live") this.#liveObjects.add(entry);
    if (entry.state === "prepared") this.#preparedIds.add(entry.objectId);
  }

  #touch(key: string, before: StateRow | null): void {
    this.#hash.touch(key, before);
    this.dirtyRows.mark(key, this.#appliedIndex);
  }
}

/** The sliding life in ms, cut to what a double holds; null without one. */
export function ttlMsOf(settings: StreamSettings): number | null {
  return settings.ttlSeconds === null ? null : Math.min(OFFSET_MAX, Number(settings.ttlSeconds) * 1000);
}

function rowOf<Kind extends StateRow["kind"]>(kind: Kind, entry: Extract<StateRow, { kind: Kind }>["entry"] | null): StateRow | null {
  // The pairs of kind and entry are those of `StateRow`, which the compiler cannot see through a type parameter.
  return entry === null ? null : ({ kind, entry } as StateRow);
}
