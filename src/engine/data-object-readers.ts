/**
 * Reads streams from data objects: head, then leaf, then block, each through the block cache and each
 * checked against what named it, so that no damage passes for data.
 *
 * Answers of every method: `object_missing` where the store does not have the object (the caller's view
 * may be old, DESIGN 6). Errors: `corrupt` with the object's key and the byte range (facts `objectKey`,
 * `start`, `end`), `incompatible`, and those of the store.
 *
 * Invariant: what comes back belongs to the stream asked for, in order of offsets, and nothing that the
 * object holds of it between the first and the last record returned is left out.
 */
import { assert } from "../lib/assert.ts";
import { ByteReader, concatBytes } from "../lib/bytes.ts";
import { checksum64 } from "../lib/checksum.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { OBJECT_HEAD_READ_BYTES, PAGE_BYTES_MAX } from "../lib/limits.ts";
import { type ObjectEntry, objectKey } from "../metadata/entries.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import type { BlockCache } from "./block-cache.ts";
import { findPart, IndexEntries, type IndexEntry } from "./data-object-format.ts";
import { checkHead, DataObjectHead, headStart } from "./data-object-head.ts";
import { RecordBatchView } from "./record-batch-view.ts";
import type { TailState } from "./tail-state.ts";
import { decodeTailState } from "./tail-state-format.ts";

/** What a reader needs of an object's metadata entry. */
export type ReadableObject = Pick<ObjectEntry, "objectId" | "random" | "summary">;

export interface AheadOutcome {
  /** Cached or on the way now, from the offset on and with nothing missing in between. */
  readonly bytes: number;
  /** That is all that the object has of the stream there. */
  readonly isEnd: boolean;
}

/** Record blocks of one stream, in order. */
interface BlockRun {
  readonly entries: IndexEntry[];
  /** Bytes of the stream in them, from the offset asked for on, about. */
  bytes: number;
  /** The one behind them; null where the stream has no more in this object. */
  next: IndexEntry | null;
}

/** An object, as the methods pass it around. */
interface Target {
  readonly objectId: number;
  readonly key: string;
  readonly sizeBytes: number;
}

/** The store does not have the object. Never leaves this file. */
class MissingObject extends Error {}

export class DataObjectReaders {
  constructor(
    private readonly store: ObjectStore,
    private readonly cache: BlockCache,
    private readonly clusterId: string,
  ) {}

  /** For messages: which object it is, as its operator finds it in the store. */
  describe(object: ReadableObject): string {
    return `data object ${objectKey(this.clusterId, object)}`;
  }

  /** False only if the object holds neither records nor the tail state of the stream. */
  mayContain(object: ReadableObject, streamId: number): Promise<boolean | "object_missing"> {
    return orMissing(async () => (await this.#head(this.#target(object))).mayContain(streamId));
  }

  /** The stream's tail state in this object; null where it has none. */
  readTailState(object: ReadableObject, streamId: number): Promise<TailState | null | "object_missing"> {
    return orMissing(async () => {
      const target = this.#target(object);
      const head = await this.#head(target);
      const leafAt = head.mayContain(streamId) ? head.stateLeaves.lastAtOrBelow(streamId, 0) : -1;
      if (leafAt < 0) return null;
      const leaf = await this.#leaf(target, head.stateLeaves.at(leafAt));
      const entry = leaf.at(leaf.lastAtOrBelow(streamId, 0));
      const block = await this.#block(target, entry);
      return checked(target, entry.position, entry.position + entry.length, (what) => {
        const part = findPart(block, streamId, what);
        return part === null ? null : decodeTailState(new ByteReader(block, part.start, part.end, what));
      });
    });
  }

  /**
   * Batches of the stream from the one that holds `fromOffset` on (where the object does not hold that
   * offset: from the first one behind it): at least one if there is any, then about `bytesMax` bytes,
   * at most `PAGE_BYTES_MAX` and a batch. Few do not mean that there are no more: ask again from the
   * end of the last. None: the object has nothing of the stream at or above `fromOffset`.
   */
  readBatches(
    object: ReadableObject,
    streamId: number,
    fromOffset: number,
    bytesMax: number,
  ): Promise<readonly RecordBatchView[] | "object_missing"> {
    return orMissing(async () => {
      const target = this.#target(object);
      const head = await this.#head(target);
      if (!head.mayContain(streamId)) return [];
      const bytesNeeded = Math.min(bytesMax, PAGE_BYTES_MAX);
      const batches: RecordBatchView[] = [];
      let { entries, next } = await this.#findRun(target, head, streamId, fromOffset, bytesNeeded);
      for (;;) {
        const blocks = await this.#blocks(target, entries);
        for (const [i, entry] of entries.entries()) collectBatches(batches, target, entry, present(blocks[i]), streamId, fromOffset);
        if (batches.length > 0 || next === null) return batches;
        // What these blocks hold of the stream ends below the offset: it goes on in the next one.
        entries = [next];
        next = null;
      }
    });
  }

  /**
   * Begins to fetch about `bytes` of the stream from `fromOffset` on, below `endOffset`, that a sequential reader will
   * want: by one request, as far as the cache has room for it. Waits for the index, not for what is fetched, whose
   * failing shows to nobody. Where more than half of it is there already nothing is begun: so requests stay large.
   */
  readAhead(
    object: ReadableObject,
    streamId: number,
    fromOffset: number,
    endOffset: number,
    bytes: number,
  ): Promise<AheadOutcome | "object_missing"> {
    return orMissing(async () => {
      const target = this.#target(object);
      const head = await this.#head(target);
      if (!head.mayContain(streamId)) return { bytes: 0, isEnd: true };
      const { entries, next } = await this.#findRun(target, head, streamId, fromOffset, bytes);
      const wanted = entries.filter(({ offset }) => offset < endOffset);
      const known = wanted.slice(
        0,
        countWhile(wanted, ({ position }) => this.cache.has(blockKey(target, position))),
      );
      const begun = lengthOf(known) * 2 > bytes ? [] : this.#fetchAhead(target, wanted.slice(known.length));
      return { bytes: lengthOf(known) + lengthOf(begun), isEnd: next === null && known.length + begun.length === entries.length };
    });
  }

  /** Begins to fetch the first of these, as many as are neighbours and as the cache takes; returns them. */
  #fetchAhead(target: Target, wanted: readonly IndexEntry[]): readonly IndexEntry[] {
    const neighbors = wanted.slice(
      0,
      countWhile(wanted, (entry, at) => at === 0 || isNextTo(wanted[at - 1], entry)),
    );
    const keys = neighbors.map(({ position, length }) => ({ key: blockKey(target, position), length }));
    const begun = this.cache.fetchAhead(keys, (count) => this.#loadBlocks(target, neighbors.slice(0, count)));
    return neighbors.slice(0, begun);
  }

  /** The blocks of a stream from the one that may hold `fromOffset` on: as many as give about `bytes`. */
  async #findRun(target: Target, head: DataObjectHead, streamId: number, fromOffset: number, bytes: number): Promise<BlockRun> {
    const run: BlockRun = { entries: [], bytes: 0, next: null };
    for await (const entry of this.#entries(target, head, streamId, fromOffset)) {
      const [first] = run.entries;
      if (first !== undefined && run.entries.length === 1) run.bytes = usefulBytes(first, entry, streamId, fromOffset);
      if (first !== undefined && run.bytes >= bytes) {
        run.next = entry;
        break;
      }
      run.entries.push(entry);
      if (first !== undefined) run.bytes += entry.length;
    }
    return run;
  }

  /** Index entries of record blocks: the one that may hold the offset, then those that begin with the same stream. */
  async *#entries(target: Target, head: DataObjectHead, streamId: number, fromOffset: number): AsyncGenerator<IndexEntry> {
    const firstLeafAt = Math.max(0, head.recordLeaves.lastAtOrBelow(streamId, fromOffset));
    for (let leafAt = firstLeafAt; leafAt < head.recordLeaves.count; leafAt++) {
      const leafEntry = head.recordLeaves.at(leafAt);
      if (leafEntry.streamId > streamId) return;
      const leaf = await this.#leaf(target, leafEntry);
      const firstAt = leafAt === firstLeafAt ? Math.max(0, leaf.lastAtOrBelow(streamId, fromOffset)) : 0;
      for (let at = firstAt; at < leaf.count; at++) {
        const entry = leaf.at(at);
        if (entry.streamId > streamId) return;
        yield entry;
      }
    }
  }

  async #head(target: Target): Promise<DataObjectHead> {
    const key = `${target.objectId}:head`;
    const found = this.cache.find(key);
    const [fetched] = found === null ? await this.cache.fetch([key], () => this.#loadHead(target)) : [await found];
    const head = present(fetched);
    return checked(target, target.sizeBytes - head.length, target.sizeBytes, (what) => new DataObjectHead(head, what));
  }

  /**
   * One ranged read, where filter and top index are small; else one more for what lies before. Leaves that the
   * first read brought along are kept too: of most objects all of them.
   */
  async #loadHead(target: Target): Promise<readonly Uint8Array[]> {
    const readFrom = Math.max(0, target.sizeBytes - OBJECT_HEAD_READ_BYTES);
    const end = await this.#read(target, readFrom, target.sizeBytes);
    const identity = { ...target, clusterId: this.clusterId };
    const start = checked(target, readFrom, target.sizeBytes, (what) => headStart(end, identity, what));
    const head = start >= readFrom ? end.subarray(start - readFrom) : concatBytes([await this.#read(target, start, readFrom), end]);
    checked(target, start, target.sizeBytes, (what) => checkHead(head, what));
    const { recordLeaves, stateLeaves } = new DataObjectHead(head, target.key);
    for (const leaves of [recordLeaves, stateLeaves]) {
      for (let at = leaves.count - 1; at >= 0; at--) {
        const { position, length, checksum } = leaves.at(at);
        if (position < readFrom) break;
        const leaf = end.subarray(position - readFrom, position - readFrom + length);
        // A damaged one is named to whoever needs it.
        if (leaf.length === length && checksum64(leaf) === checksum) this.cache.offer(blockKey(target, position), leaf);
      }
    }
    return [head];
  }

  async #leaf(target: Target, entry: IndexEntry): Promise<IndexEntries> {
    return IndexEntries.ofLeaf(await this.#block(target, entry));
  }

  async #block(target: Target, entry: IndexEntry): Promise<Uint8Array> {
    const [block] = await this.#blocks(target, [entry]);
    return present(block);
  }

  /** The blocks, from the cache or the store. */
  async #blocks(target: Target, needed: readonly IndexEntry[]): Promise<readonly Uint8Array[]> {
    const blocks: (Uint8Array | null)[] = needed.map(() => null);
    // More than once only where what somebody began to fetch ahead has failed.
    while (blocks.includes(null)) await this.#bringBlocks(target, needed, blocks);
    return blocks.map(present);
  }

  /** Fills in the blocks that are null: one request for each run of neighbours that are not cached. */
  async #bringBlocks(target: Target, needed: readonly IndexEntry[], blocks: (Uint8Array | null)[]): Promise<void> {
    const keyOf = (entry: IndexEntry) => blockKey(target, entry.position);
    const found = needed.map((entry, at) => blocks[at] ?? this.cache.find(keyOf(entry)));
    const runs: { readonly firstAt: number; readonly entries: IndexEntry[] }[] = [];
    for (const [at, entry] of needed.entries()) {
      if (found[at] !== null) continue;
      const run = runs.at(-1);
      if (run !== undefined && run.firstAt + run.entries.length === at && isNextTo(run.entries.at(-1), entry)) run.entries.push(entry);
      else runs.push({ firstAt: at, entries: [entry] });
    }
    const fetched = runs.map(({ entries }) => this.cache.fetch(entries.map(keyOf), () => this.#loadBlocks(target, entries)));
    const [foundBlocks, fetchedBlocks] = await Promise.all([Promise.all(found), Promise.all(fetched)]);
    for (const [at, block] of foundBlocks.entries()) blocks[at] = block;
    for (const [at, { firstAt }] of runs.entries()) {
      for (const [i, block] of (fetchedBlocks[at] ?? []).entries()) blocks[firstAt + i] = block;
    }
  }

  /** Reads neighbouring blocks at once and checks each. */
  async #loadBlocks(target: Target, entries: readonly IndexEntry[]): Promise<readonly Uint8Array[]> {
    const start = entries[0]?.position ?? 0;
    const bytes = await this.#read(target, start, start + lengthOf(entries));
    return entries.map(({ position, length, checksum }) => {
      const block = bytes.subarray(position - start, position - start + length);
      return checked(target, position, position + length, (what) => {
        if (checksum64(block) !== checksum) throw new PicoError("corrupt", `${what}: the checksum does not match`, { where: what });
        return block;
      });
    });
  }

  async #read(target: Target, start: number, end: number): Promise<Uint8Array> {
    const bytes = await this.store.read(target.key, { start, end });
    if (bytes === null) throw new MissingObject();
    return checked(target, start, end, (what) => {
      if (bytes.length === end - start) return bytes;
      throw new PicoError("corrupt", `${what}: the store has only ${bytes.length} of these bytes`, { where: what });
    });
  }

  #target(object: ReadableObject): Target {
    assert(object.summary !== null, "only committed objects are read");
    return { objectId: object.objectId, key: objectKey(this.clusterId, object), sizeBytes: object.summary.sizeBytes };
  }
}

function present(block: Uint8Array | null | undefined): Uint8Array {
  assert(block !== null && block !== undefined, "every block asked for is there, or the fetch has failed");
  return block;
}

async function orMissing<Result>(read: () => Promise<Result>): Promise<Result | "object_missing"> {
  try {
    return await read();
  } catch (error) {
    if (error instanceof MissingObject) return "object_missing";
    throw error;
  }
}

/** Runs a check of bytes of an object; its error then names the object and the bytes, also as facts. */
function checked<Result>(target: Target, start: number, end: number, check: (what: string) => Result): Result {
  try {
    return check(`data object ${target.key}, bytes ${start} to ${end}`);
  } catch (error) {
    if (!isPicoError(error)) throw error;
    throw new PicoError(error.code, error.message, { ...error.facts, objectKey: target.key, start, end }, error.cause);
  }
}

/** How many bytes a stream has from an offset on in a block, guessed from the next block, which begins with the same stream. */
function usefulBytes(block: IndexEntry, next: IndexEntry, streamId: number, fromOffset: number): number {
  if (block.streamId !== streamId) return 0;
  if (fromOffset <= block.offset) return block.length;
  return (block.length * (next.offset - fromOffset)) / (next.offset - block.offset);
}

/** Appends the batches of the stream in a block that end above the offset. */
function collectBatches(
  batches: RecordBatchView[],
  target: Target,
  entry: IndexEntry,
  block: Uint8Array,
  streamId: number,
  fromOffset: number,
): void {
  checked(target, entry.position, entry.position + entry.length, (what) => {
    const part = findPart(block, streamId, what);
    for (let at = part?.start ?? 0; part !== null && at < part.end; ) {
      const batch = new RecordBatchView(block, at);
      if (batch.end > part.end) throw new PicoError("corrupt", `${what}: a batch reaches into another part`, { where: what });
      if (batch.endOffset > fromOffset) batches.push(batch);
      at = batch.end;
    }
  });
}

function lengthOf(entries: readonly IndexEntry[]): number {
  return entries.reduce((sum, { length }) => sum + length, 0);
}

/** How many items, from the first on. */
function countWhile<T>(items: readonly T[], holds: (item: T, at: number) => boolean): number {
  const at = items.findIndex((item, index) => !holds(item, index));
  return at < 0 ? items.length : at;
}

function blockKey({ objectId }: Target, position: number): string {
  return `${objectId}:${position}`;
}

function isNextTo(before: IndexEntry | undefined, entry: IndexEntry): boolean {
  return before !== undefined && before.position + before.length === entry.position;
}
