/**
 * What is known of one life of a stream: the records that were seen or acknowledged, each at its place
 * for ever, and the bounds below which nothing may fall any more. Any observation that contradicts an
 * earlier one fails the run, whatever the order in which they came.
 */
import type { StoredRecord } from "../../../src/engine/record.ts";
import type { World } from "../world/world.ts";
import { type Batch, identityOf, sameRecord } from "./batch.ts";
import type { LifeFacts } from "./life-facts.ts";

/** What a reader may rely on: none of these ever goes back. */
export interface Floor {
  readonly startOffset: number;
  readonly nextOffset: number;
  readonly isClosed: boolean;
}

const NO_FLOOR: Floor = { startOffset: 0, nextOffset: 0, isClosed: false };

/** A record at its place. */
interface PlacedRecord {
  readonly batchId: number;
  readonly index: number;
  /** Null until it was read or acknowledged with it. */
  timestampMs: number | null;
}

export class StreamModel {
  /** Own records only: those below the fork offset are the source's. */
  readonly #placed = new Map<number, PlacedRecord>();
  /** Offset of the first record of each batch seen here. */
  readonly #batchStart = new Map<number, number>();
  #floor: Floor = NO_FLOOR;
  #closedTail: number | null = null;
  readonly #floorListeners = new Set<(floor: Floor) => void>();
  /** When a client first was told of its removal, in true time; null: none was. */
  removalKnownMs: number | null = null;
  /** Highest offset that anybody asked to trim to. */
  trimRequestedMax = 0;
  /** Start of the latest request that renewed its life, in database time without its set-backs. */
  lastTouchMs: number;

  constructor(
    private readonly world: World,
    readonly facts: LifeFacts,
    private readonly source: StreamModel | null,
    private readonly batchOf: (batchId: number) => Batch | null,
  ) {
    this.lastTouchMs = facts.createdAt.atMs + facts.createdAt.setBackMs;
    this.trimRequestedMax = source?.trimRequestedMax ?? 0;
  }

  get floor(): Floor {
    return this.#floor;
  }

  /** Calls `listener` whenever the floor may have risen. Returns a function that ends it. */
  onFloor(listener: (floor: Floor) => void): () => void {
    this.#floorListeners.add(listener);
    return () => this.#floorListeners.delete(listener);
  }

  /** When a client first heard of it, in true time; null: none did. */
  knownSinceMs: number | null = null;

  get closedTail(): number | null {
    return this.#closedTail;
  }

  /** First offset that is this life's own. */
  get baseOffset(): number {
    return this.facts.fork?.offset ?? 0;
  }

  get label(): string {
    return `${this.facts.name} (id ${this.facts.streamId})`;
  }

  /** Whether a record of the batch was seen here. */
  holds(batchId: number): boolean {
    return this.#batchStart.has(batchId);
  }

  batchStart(batchId: number): number | null {
    return this.#batchStart.get(batchId) ?? null;
  }

  /** An answer showed these bounds; `before` are those that held when its request was sent. */
  see(seen: Floor, before: Floor, what: string): void {
    const { world, label } = this;
    world.check(
      seen.startOffset >= before.startOffset,
      () => `${what} of ${label}: start ${seen.startOffset} fell below ${before.startOffset}`,
    );
    world.check(seen.nextOffset >= before.nextOffset, () => `${what} of ${label}: tail ${seen.nextOffset} fell below ${before.nextOffset}`);
    world.check(seen.isClosed || !before.isClosed, () => `${what} of ${label}: open again after it was closed`);
    world.check(
      seen.startOffset <= seen.nextOffset,
      () => `${what} of ${label}: start ${seen.startOffset} is above tail ${seen.nextOffset}`,
    );
    world.check(
      seen.startOffset <= this.trimRequestedMax,
      () => `${what} of ${label}: start ${seen.startOffset}, but nobody trimmed beyond ${this.trimRequestedMax}`,
    );
    this.#floor = {
      startOffset: Math.max(this.#floor.startOffset, seen.startOffset),
      nextOffset: Math.max(this.#floor.nextOffset, seen.nextOffset),
      isClosed: this.#floor.isClosed || seen.isClosed,
    };
    for (const listener of this.#floorListeners) listener(this.#floor);
    if (seen.isClosed) this.seeClosedAt(seen.nextOffset, what);
    const closedTail = this.#closedTail;
    world.check(
      closedTail === null || seen.nextOffset <= closedTail,
      () => `${what} of ${label}: tail ${seen.nextOffset} beyond the close at ${closedTail}`,
    );
  }

  /** It is closed, and ends at `tail`. */
  seeClosedAt(tail: number, what: string): void {
    const known = this.#closedTail;
    this.world.check(known === null || known === tail, () => `${what} of ${this.label}: closed at ${tail}, and before at ${known}`);
    this.world.check(
      tail >= this.#floor.nextOffset,
      () => `${what} of ${this.label}: closed at ${tail}, below the tail ${this.#floor.nextOffset}`,
    );
    this.#closedTail = tail;
    // Whoever says so has waited until the close, and all before it, was durable.
    this.#floor = { ...this.#floor, nextOffset: tail, isClosed: true };
  }

  /** The whole batch lies at `startOffset`. */
  placeBatch(batch: Batch, startOffset: number, timestampMs: number | null): void {
    for (let index = 0; index < batch.plan.count; index++) this.#place(startOffset + index, batch.plan.batchId, index, timestampMs);
    this.see(
      { ...this.#floor, nextOffset: Math.max(this.#floor.nextOffset, startOffset + batch.plan.count) },
      NO_FLOOR,
      "acknowledged append",
    );
  }

  /** A reader got this record of this stream. */
  seeRecord(record: StoredRecord): void {
    const { world, label } = this;
    if (this.source !== null && record.offset < this.baseOffset) {
      this.source.seeRecord(record);
      return;
    }
    const { fork } = this.facts;
    if (fork !== null && this.#isPartial(record.offset)) {
      this.#seePartial(record, fork.requestedSubOffset);
      return;
    }
    const identity = identityOf(record);
    const batch = identity === null ? null : this.batchOf(identity.batchId);
    if (identity === null || batch === null)
      throw world.failed(`read of ${label}: the record at ${record.offset} is none that was written`);
    world.check(batch.plan.name === this.facts.name, () => `read of ${label}: the record at ${record.offset} is of ${batch.plan.name}`);
    world.check(
      batch.status !== "refused",
      () => `read of ${label}: the record at ${record.offset} is of batch ${identity.batchId}, which was refused`,
    );
    world.check(
      sameRecord(record, batch.record(identity.index)),
      () => `read of ${label}: the record at ${record.offset} differs from what batch ${identity.batchId} wrote`,
    );
    this.#place(record.offset, identity.batchId, identity.index, record.timestampMs);
    if (batch.plan.closes) this.seeClosedAt(record.offset - identity.index + batch.plan.count, "read");
  }

  /** The fork's first own record is the beginning of one of the source's. One taken whole is the source's, and the fork begins behind it. */
  #isPartial(offset: number): boolean {
    const { fork, settings } = this.facts;
    if (fork === null || fork.requestedSubOffset === 0 || offset !== fork.offset || offset !== fork.requestedOffset) return false;
    return !settings.contentType.includes("json");
  }

  #seePartial(record: StoredRecord, bytes: number): void {
    const placed = this.source?.placedAt(record.offset) ?? null;
    const whole = placed === null ? null : (this.batchOf(placed.batchId)?.record(placed.index) ?? null);
    // The source's record may have been trimmed before anybody saw it.
    if (whole === null) return;
    const expected = (whole.body ?? new Uint8Array(0)).subarray(0, bytes);
    this.world.check(
      record.body !== null && Buffer.compare(record.body, expected) === 0,
      () => `read of ${this.label}: the partial record at ${record.offset} is not the first ${bytes} bytes of the source's`,
    );
  }

  placedAt(offset: number): PlacedRecord | null {
    if (this.source !== null && offset < this.baseOffset) return this.source.placedAt(offset);
    return this.#placed.get(offset) ?? null;
  }

  #place(offset: number, batchId: number, index: number, timestampMs: number | null): void {
    const { world, label } = this;
    const start = this.#batchStart.get(batchId);
    world.check(
      start === undefined || start === offset - index,
      () => `${label}: batch ${batchId} lies at ${start} and again at ${offset - index}`,
    );
    world.check(
      this.#closedTail === null || offset < this.#closedTail,
      () => `${label}: a record at ${offset}, behind the close at ${this.#closedTail}`,
    );
    this.#batchStart.set(batchId, offset - index);
    const placed = this.#placed.get(offset);
    if (placed === undefined) {
      this.#placed.set(offset, { batchId, index, timestampMs });
      return;
    }
    world.check(
      placed.batchId === batchId && placed.index === index,
      () => `${label}: offset ${offset} held record ${placed.batchId}.${placed.index}, now ${batchId}.${index}`,
    );
    world.check(
      placed.timestampMs === null || timestampMs === null || placed.timestampMs === timestampMs,
      () => `${label}: the timestamp at ${offset} was ${placed.timestampMs}, now ${timestampMs}`,
    );
    placed.timestampMs ??= timestampMs;
  }

  /** Everything acknowledged or seen must be in what one whole read found. */
  checkWhole(startOffset: number, nextOffset: number): void {
    const { world, label } = this;
    for (const [batchId, start] of this.#batchStart) {
      const batch = this.batchOf(batchId);
      if (batch === null) continue;
      const end = start + batch.plan.count;
      world.check(end <= nextOffset, () => `${label}: batch ${batchId} at ${start} is cut at the tail ${nextOffset}`);
      for (let offset = Math.max(start, startOffset); offset < end; offset++) {
        const placed = this.#placed.get(offset);
        world.check(placed?.batchId === batchId, () => `${label}: batch ${batchId} at ${start} misses its record at ${offset}`);
      }
      if (batch.plan.isCreate) world.check(start === this.firstOwnOffset, () => `${label}: its initial records lie at ${start}`);
    }
  }

  /** Where initial records of the create lie. */
  get firstOwnOffset(): number {
    return this.#isPartial(this.baseOffset) ? this.baseOffset + 1 : this.baseOffset;
  }
}
