/**
 * Holds the bucket against the reference state: each delete against the record that allows it and the marker
 * that protects it, each marker against the log, and, once everything has settled, each key against what is known.
 */
import { decodeMarker, parseMarkerKey, type StoreMarker } from "../../../src/engine/store-marker.ts";
import { isTombstone } from "../../../src/engine/wal-segment-format.ts";
import { LATE_WRITE_MS } from "../../../src/lib/limits.ts";
import { formatRegistration, type RegistrationName } from "../../../src/lib/registration.ts";
import { objectKey } from "../../../src/metadata/entries.ts";
import type { MetadataState } from "../../../src/metadata/state.ts";
import type { SimBucket } from "../seams/sim-bucket.ts";
import type { World } from "../world/world.ts";

/** Of the node that only lags. */
export const NEIGHBOUR_ID = 77;

/** A live node as the others see it, with what it has said to have applied. */
export interface Laggard {
  readonly name: string;
  readonly appliedIndex: number;
}

interface CommitMark {
  readonly to: number;
  readonly index: number;
}

export class StoreChecker {
  /** A live node whose view may still name what was destroyed since. */
  laggard: Laggard | null = null;
  readonly #rowIds = new Map<number, string>();
  readonly #commits = new Map<string, CommitMark[]>();
  readonly #ends = new Map<string, { readonly index: number; readonly trueMs: number }>();
  readonly #gone = new Set<number>();
  #highest: StoreMarker | null = null;
  /** Objects of commands that a restore lost: in the store, and nobody's. */
  readonly #lost = new Set<number>();
  #state: MetadataState;

  constructor(
    private readonly world: World,
    private readonly bucket: SimBucket,
    private readonly clusterId: string,
    state: MetadataState,
  ) {
    this.#state = state;
    bucket.onCreate = (key, bytes) => this.#checkCreate(key, bytes);
    bucket.onDelete = (key, bytes) => this.#checkDelete(key, bytes);
    bucket.onReuse = (key, bytes) => {
      // A tombstone's create that was long on its way, where a void segment lay meanwhile.
      if (isTombstone(bytes)) return;
      // A copy of log rows that was long on its way, below the snapshot that took its place: other rows of the same log.
      if (key.startsWith(`${clusterId}/mirror/log/`)) return;
      throw world.failed(`key ${key} was created, deleted, and created again with other bytes`);
    };
  }

  private get state(): MetadataState {
    return this.#state;
  }

  /** The log goes on behind a restored state; `gone`: the objects that are removed there. */
  rewind(state: MetadataState, gone: readonly number[]): void {
    const index = state.appliedIndex;
    const marked = this.#highest?.index ?? 0;
    this.world.check(marked <= index, () => `the log was restored up to ${index}, and a marker in the store is at ${marked}`);
    for (const { objectId } of this.#state.objects()) if (state.object(objectId) === null) this.#lost.add(objectId);
    this.#state = state;
    for (const at of [...this.#rowIds.keys()]) if (at > index) this.#rowIds.delete(at);
    for (const [name, marks] of this.#commits) {
      this.#commits.set(
        name,
        marks.filter((mark) => mark.index <= index),
      );
    }
    for (const [name, end] of this.#ends) if (end.index > index) this.#ends.delete(name);
    this.#gone.clear();
    this.noteRemoved(gone);
  }

  noteRow(index: number, rowId: string): void {
    this.#rowIds.set(index, rowId);
  }

  noteCommit(wal: RegistrationName, to: number, index: number): void {
    const key = formatRegistration(wal);
    const marks = this.#commits.get(key) ?? [];
    marks.push({ to, index });
    this.#commits.set(key, marks);
  }

  noteEnd(victim: RegistrationName, index: number): void {
    // The neighbour writes nothing.
    if (victim.nodeId === NEIGHBOUR_ID) return;
    this.#ends.set(formatRegistration(victim), { index, trueMs: this.world.nowMs });
  }

  noteRemoved(objectIds: readonly number[]): void {
    for (const objectId of objectIds) this.#gone.add(objectId);
  }

  isGone(objectId: number): boolean {
    return this.#gone.has(objectId);
  }

  /** What is left to clean; null: every listed object is live, and of the ended only tombstones are there. */
  get unsettled(): string | null {
    const lastEndMs = Math.max(0, ...[...this.#ends.values()].map(({ trueMs }) => trueMs));
    if (this.world.nowMs < lastEndMs + LATE_WRITE_MS) return "a write of an ended registration may come late";
    const { prepared, destroyed } = this.state.objectFigures();
    if (prepared > 0 || destroyed > 0) return `${prepared} prepared and ${destroyed} destroyed objects are listed`;
    return this.#leftoverSegment();
  }

  /** Once settled: every live object is there, and every key is known and has its place. */
  checkSettled(): void {
    const { world, bucket, state } = this;
    for (const entry of state.objects()) {
      if (entry.state !== "live") continue;
      const key = objectKey(this.clusterId, entry);
      world.check(bucket.peek(key) !== null, () => `${key} is live and not in the store`);
    }
    for (const key of bucket.keys()) {
      const [, kind, , objectId] = key.split("/");
      if (kind === "data") {
        const entry = state.object(Number(objectId));
        const isKnown = (entry !== null && objectKey(this.clusterId, entry) === key) || this.#lost.has(Number(objectId));
        world.check(isKnown, () => `${key} is in the store, and nothing that the metadata knows`);
      }
    }
    const leftover = this.#leftoverSegment();
    world.check(leftover === null, () => `${leftover} is left of a registration that has ended`);
    world.trace.count("store settled");
  }

  #leftoverSegment(): string | null {
    for (const key of this.bucket.keys()) {
      const [, kind, nodeId, nodeEpoch] = key.split("/");
      if (kind !== "wal") continue;
      const entry = this.state.registration({ nodeId: Number(nodeId), nodeEpoch: Number(nodeEpoch) });
      const bytes = this.bucket.peek(key);
      if (entry?.state === "ended" && bytes !== null && !isTombstone(bytes)) return key;
    }
    return null;
  }

  #checkCreate(key: string, bytes: Uint8Array): void {
    const index = parseMarkerKey(this.clusterId, key);
    if (index === null) return;
    const marker = decodeMarker(bytes, this.clusterId, index);
    this.world.check(this.#rowIds.get(index) === marker.rowId, () => `${key} names row ${marker.rowId}, which the log does not hold there`);
    const identity = this.#highest?.clusterIdentity ?? marker.clusterIdentity;
    this.world.check(identity === marker.clusterIdentity, () => `${key} is of another database`);
    if (this.#highest === null || index > this.#highest.index) this.#highest = marker;
    this.world.trace.count("store marker");
  }

  #checkDelete(key: string, bytes: Uint8Array): void {
    const [cluster, kind, third, fourth, fifth] = key.split("/");
    this.world.check(cluster === this.clusterId, () => `${key} was deleted, which is another cluster's`);
    this.world.trace.count(`deleted ${kind}`);
    if (kind === "wal") this.#checkTrim(key, { nodeId: Number(third), nodeEpoch: Number(fourth) }, Number(fifth), bytes);
    else if (kind === "data") this.#checkObjectDelete(key, Number(fourth));
    else if (kind === "marker") this.#checkMarkerDelete(key, Number(third));
    else if (kind !== "mirror" && kind !== "probe") throw this.world.failed(`${key} was deleted, and is nothing known`);
  }

  #checkTrim(key: string, registration: RegistrationName, number: number, bytes: Uint8Array): void {
    const entry = this.state.registration(registration);
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
    const name = formatRegistration(registration);
    const commit = this.#commits.get(name)?.find(({ to }) => to >= number);
    this.#checkMarked(key, commit?.index ?? this.#ends.get(name)?.index ?? 0);
  }

  #checkObjectDelete(key: string, objectId: number): void {
    const entry = this.state.object(objectId);
    const isAllowed = entry === null ? this.#gone.has(objectId) : entry.state === "destroyed";
    this.world.check(isAllowed, () => `${key} was deleted, and no command destroyed it`);
    const index = entry?.destroyedIndex ?? 0;
    this.#checkMarked(key, index);
    const { laggard } = this;
    this.world.check(
      laggard === null || laggard.appliedIndex >= index,
      () => `${key}, destroyed at ${index}, was deleted, and ${laggard?.name} has applied no more than ${laggard?.appliedIndex}`,
    );
  }

  #checkMarkerDelete(key: string, index: number): void {
    this.world.check(index < (this.#highest?.index ?? 0), () => `${key} was deleted, and no higher marker is in the store`);
  }

  /** The command that allows the delete is at `index`. */
  #checkMarked(key: string, index: number): void {
    const marked = this.#highest?.index ?? 0;
    this.world.check(marked >= index, () => `${key} was deleted by a command at ${index}, and the highest marker is ${marked}`);
  }
}
