/**
 * Walks a whole data object in order, for compaction: its record blocks and its state blocks, each checked
 * against its index entry, by ranged reads of many blocks at once and past the block cache.
 *
 * What comes next is known from the index before any block is read. So blocks that nobody needs are passed
 * over unread, and a block larger than a window is in memory only while it is worked on.
 *
 * Errors: `corrupt` and `incompatible` name the object's key and the bytes, with fact `objectId`, those of the store
 * come as they are; an object that is not in the store is a `MissingObject`.
 */
import { assert } from "../lib/assert.ts";
import { ByteReader, concatBytes } from "../lib/bytes.ts";
import { checksum64 } from "../lib/checksum.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { OBJECT_HEAD_READ_BYTES } from "../lib/limits.ts";
import { type ObjectEntry, objectKey } from "../metadata/entries.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { type DataObjectFooter, DIRECTORY_ENTRY_BYTES, IndexEntries, type IndexEntry, PART_COUNT_BYTES } from "./data-object-format.ts";
import { checkHead, DataObjectHead, headStart } from "./data-object-head.ts";
import { RecordBatchView, readU32, readU64 } from "./record-batch-view.ts";
import type { TailState } from "./tail-state.ts";
import { decodeTailState } from "./tail-state-format.ts";

export interface ScanComponents {
  readonly store: ObjectStore;
  readonly clusterId: string;
  /** Wraps each wait for the store. */
  readonly idle: <Result>(wait: Promise<Result>) => Promise<Result>;
  /** Told how many bytes came. */
  readonly onRead: (bytes: number) => void;
}

/** The store does not have the object. */
export class MissingObject extends Error {
  constructor(
    readonly objectId: number,
    readonly key: string,
  ) {
    super(`data object ${key} is missing from the store`);
  }
}

/** Where index entries, footer and all bytes of one object come from. */
class ScannedObject {
  readonly objectId: number;
  readonly key: string;
  readonly sizeBytes: number;

  constructor(
    readonly components: ScanComponents,
    entry: ObjectEntry,
  ) {
    assert(entry.summary !== null, "only committed objects are scanned");
    this.objectId = entry.objectId;
    this.key = objectKey(components.clusterId, entry);
    this.sizeBytes = entry.summary.sizeBytes;
  }

  async read(start: number, end: number): Promise<Uint8Array> {
    const { store, idle, onRead } = this.components;
    const bytes = await idle(store.read(this.key, { start, end }).catch((error) => this.#named(error)));
    if (bytes === null) throw new MissingObject(this.objectId, this.key);
    onRead(bytes.length);
    return this.checked(start, end, (what) => {
      if (bytes.length === end - start) return bytes;
      throw corrupt(what, `the store has only ${bytes.length} of these bytes`);
    });
  }

  /** A store may refuse one object for ever, and serve the others. */
  #named(error: unknown): never {
    if (!isPicoError(error, "storage_failed")) throw error;
    throw new PicoError(error.code, error.message, { ...error.facts, objectId: this.objectId }, error);
  }

  /** Runs a check of bytes; its error then names the object, also as a fact. */
  checked<Result>(start: number, end: number, check: (what: string) => Result): Result {
    try {
      return check(`data object ${this.key}, bytes ${start} to ${end}`);
    } catch (error) {
      if (!isPicoError(error)) throw error;
      throw new PicoError(error.code, error.message, { ...error.facts, objectKey: this.key, objectId: this.objectId, start, end }, error);
    }
  }
}

export class ObjectScan {
  private constructor(
    readonly entry: ObjectEntry,
    readonly footer: DataObjectFooter,
    /** Of the record blocks and of the state blocks, in order. */
    readonly recordEntries: readonly IndexEntry[],
    readonly stateEntries: readonly IndexEntry[],
    readonly records: RecordScan,
    readonly states: StateScan,
  ) {}

  /** Reads the object's end and its leaves. `windowBytes`: of blocks that are read at once. */
  static async open(components: ScanComponents, entry: ObjectEntry, windowBytes: number): Promise<ObjectScan> {
    const object = new ScannedObject(components, entry);
    const readFrom = Math.max(0, object.sizeBytes - OBJECT_HEAD_READ_BYTES);
    let end = await object.read(readFrom, object.sizeBytes);
    let from = readFrom;
    const reach = async (position: number) => {
      if (position >= from) return;
      end = concatBytes([await object.read(position, from), end]);
      from = position;
    };
    const identity = { clusterId: components.clusterId, objectId: object.objectId, sizeBytes: object.sizeBytes };
    const start = object.checked(from, object.sizeBytes, (what) => headStart(end, identity, what));
    await reach(start);
    const head = object.checked(start, object.sizeBytes, (what) => {
      const bytes = end.subarray(start - from);
      checkHead(bytes, what);
      return new DataObjectHead(bytes, what);
    });
    const { footer } = head;
    await reach(leavesStart(head, start));
    const leaf = ({ position, length, checksum }: IndexEntry) =>
      object.checked(position, position + length, (what) => {
        const bytes = end.subarray(position - from, position - from + length);
        if (position < from || bytes.length !== length || checksum64(bytes) !== checksum)
          throw corrupt(what, "a leaf's checksum does not match");
        return [...all(IndexEntries.ofLeaf(bytes))];
      });
    const recordEntries = [...all(head.recordLeaves)].flatMap(leaf);
    const stateEntries = [...all(head.stateLeaves)].flatMap(leaf);
    const records = new RecordScan(new BlockScan(object, recordEntries, footer.last.streamId, windowBytes));
    const states = new StateScan(new BlockScan(object, stateEntries, footer.last.streamId, windowBytes));
    return new ObjectScan(entry, footer, recordEntries, stateEntries, records, states);
  }
}

function leavesStart(head: DataObjectHead, start: number): number {
  return [...all(head.recordLeaves), ...all(head.stateLeaves)].reduce((lowest, { position }) => Math.min(lowest, position), start);
}

function* all(entries: IndexEntries): Generator<IndexEntry> {
  for (let at = 0; at < entries.count; at++) yield entries.at(at);
}

/** A part of a stream in a block. */
interface BlockPart {
  readonly streamId: number;
  readonly start: number;
  readonly end: number;
}

/** A block that is read and checked. */
interface OpenBlock {
  readonly bytes: Uint8Array;
  readonly parts: readonly BlockPart[];
  /** For errors. */
  readonly entry: IndexEntry;
  partAt: number;
}

/** The blocks of one section. It stands on a part, or before a block that is not read yet. */
class BlockScan {
  #at = 0;
  #block: OpenBlock | null = null;
  /** Bytes read ahead, of the entries `[firstAt, endAt)`. */
  #window: { readonly bytes: Uint8Array; readonly start: number; readonly endAt: number } | null = null;

  constructor(
    readonly object: ScannedObject,
    private readonly entries: readonly IndexEntry[],
    private readonly lastStreamId: number,
    private readonly windowBytes: number,
  ) {}

  /** Of what comes next; null at the end. */
  get streamId(): number | null {
    if (this.#block !== null) return this.#block.parts[this.#block.partAt]?.streamId ?? null;
    return this.entries[this.#at]?.streamId ?? null;
  }

  /** The entry of the block that comes next and is not read; null where one is open, or at the end. */
  get unread(): IndexEntry | null {
    return this.#block === null ? (this.entries[this.#at] ?? null) : null;
  }

  /** Passes over a block that is not read. */
  passUnread(): void {
    assert(this.#block === null, "the block is not read");
    this.#at += 1;
  }

  /** The block that comes next holds nothing but the stream that it begins with. */
  get isUnreadOfOneStream(): boolean {
    const entry = this.unread;
    if (entry === null) return false;
    return (this.entries[this.#at + 1]?.streamId ?? this.lastStreamId) === entry.streamId;
  }

  /** Offset that the block behind the one that comes next begins with, where that is of the same stream; else null. */
  get offsetBehindUnread(): number | null {
    const next = this.entries[this.#at + 1];
    return next !== undefined && next.streamId === this.unread?.streamId ? next.offset : null;
  }

  /** The open block and the part it stands on; reads the block where that is not done. */
  async part(): Promise<{ readonly block: OpenBlock; readonly part: BlockPart }> {
    this.#block ??= await this.#open();
    const part = this.#block.parts[this.#block.partAt];
    assert(part !== undefined, "a scan stands on a part");
    return { block: this.#block, part };
  }

  /** Steps behind the part that it stands on. */
  next(): void {
    const block = this.#block;
    assert(block !== null, "the block is read");
    block.partAt += 1;
    if (block.partAt < block.parts.length) return;
    this.#block = null;
    this.#at += 1;
  }

  async #open(): Promise<OpenBlock> {
    const entry = this.entries[this.#at];
    assert(entry !== undefined, "a scan is not at its end");
    const { position, length, checksum } = entry;
    if (this.#window === null || this.#at >= this.#window.endAt) this.#window = await this.#readWindow(entry);
    const bytes = this.#window.bytes.subarray(position - this.#window.start, position - this.#window.start + length);
    if (this.#at + 1 >= this.#window.endAt) this.#window = null;
    return this.object.checked(position, position + length, (what) => {
      if (checksum64(bytes) !== checksum) throw corrupt(what, "the checksum does not match");
      const parts = partsOf(bytes, what);
      if (parts[0]?.streamId !== entry.streamId) throw corrupt(what, "a block begins with another stream than its index says");
      const following = this.entries[this.#at + 1]?.streamId ?? this.lastStreamId;
      if ((parts.at(-1)?.streamId ?? 0) > following) throw corrupt(what, "a block ends with a stream that comes later");
      return { bytes, parts, entry, partAt: 0 };
    });
  }

  /** The block and the ones behind it, as many as a window takes. */
  async #readWindow(first: IndexEntry) {
    let end = first.position;
    let endAt = this.#at;
    for (let entry = this.entries[endAt]; entry !== undefined && entry.position === end; entry = this.entries[endAt]) {
      if (endAt > this.#at && end + entry.length - first.position > this.windowBytes) break;
      end += entry.length;
      endAt += 1;
    }
    return { bytes: await this.object.read(first.position, end), start: first.position, endAt };
  }
}

/** The records of an object, batch by batch. */
export class RecordScan {
  /** Where the batch that comes next begins in the part; 0: at its begin. */
  #batchAt = 0;
  #batch: RecordBatchView | null = null;
  /** Behind the last batch passed. */
  #passed = { streamId: -1, offset: 0 };

  constructor(private readonly blocks: BlockScan) {}

  /** Of the records that come next; null at the end. */
  get streamId(): number | null {
    return this.blocks.streamId;
  }

  /** Offset of the records that come next. A block that is not read is not read for it. */
  async offset(): Promise<number> {
    return this.blocks.unread?.offset ?? (await this.batch()).baseOffset;
  }

  /** The batch that comes next. */
  async batch(): Promise<RecordBatchView> {
    if (this.#batch !== null) return this.#batch;
    const isFirstOfBlock = this.blocks.unread !== null;
    const { block, part } = await this.blocks.part();
    const { entry } = block;
    this.#batch = this.blocks.object.checked(entry.position, entry.position + entry.length, (what) => {
      const batch = new RecordBatchView(block.bytes, part.start + this.#batchAt);
      if (batch.end > part.end) throw corrupt(what, "a batch reaches into another part");
      if (isFirstOfBlock && batch.baseOffset !== entry.offset)
        throw corrupt(what, "a block begins with another offset than its index says");
      const { streamId, offset } = this.#passed;
      if (part.streamId < streamId || (part.streamId === streamId && batch.baseOffset < offset)) {
        throw corrupt(what, `the records of stream ${part.streamId} are out of order`);
      }
      return batch;
    });
    return this.#batch;
  }

  /** Steps behind the batch that `batch` gave. */
  async next(): Promise<void> {
    const batch = this.#batch;
    assert(batch !== null, "the batch was looked at");
    const { part } = await this.blocks.part();
    this.#passed = { streamId: part.streamId, offset: batch.endOffset };
    this.#batch = null;
    this.#batchAt = batch.end - part.start;
    if (batch.end < part.end) return;
    this.#batchAt = 0;
    this.blocks.next();
  }

  /** Passes the records of the stream that lie below `offset`, but for a batch that reaches over it; unread where that can be. */
  async skipBelow(streamId: number, offset: number): Promise<void> {
    while (this.streamId === streamId) {
      if (this.blocks.unread !== null) {
        const isPassed = this.blocks.isUnreadOfOneStream && (this.blocks.offsetBehindUnread ?? Number.POSITIVE_INFINITY) <= offset;
        const isAll = offset === Number.POSITIVE_INFINITY && this.blocks.isUnreadOfOneStream;
        if (isPassed || isAll) {
          this.blocks.passUnread();
          continue;
        }
      }
      if ((await this.batch()).endOffset > offset) return;
      await this.next();
    }
  }

  /** Passes what is left of the stream. */
  skipStream(streamId: number): Promise<void> {
    return this.skipBelow(streamId, Number.POSITIVE_INFINITY);
  }
}

/** The tail states of an object. */
export class StateScan {
  #lastStreamId = -1;

  constructor(private readonly blocks: BlockScan) {}

  /** Of the tail state that comes next; null at the end. */
  get streamId(): number | null {
    return this.blocks.streamId;
  }

  /** Takes the tail state that comes next. */
  async take(): Promise<TailState> {
    const { block, part } = await this.blocks.part();
    const { position, length } = block.entry;
    const state = this.blocks.object.checked(position, position + length, (what) => {
      if (part.streamId <= this.#lastStreamId) throw corrupt(what, `the tail state of stream ${part.streamId} is out of order`);
      return decodeTailState(new ByteReader(block.bytes, part.start, part.end, what));
    });
    this.#lastStreamId = part.streamId;
    this.blocks.next();
    return state;
  }

  /** Passes the tail state that comes next; unread where that can be. */
  async skip(): Promise<void> {
    if (this.blocks.isUnreadOfOneStream) {
      this.blocks.passUnread();
      return;
    }
    await this.blocks.part();
    this.blocks.next();
  }
}

/** The directory of a block. Throws `corrupt` where it makes no sense. */
function partsOf(block: Uint8Array, what: string): readonly BlockPart[] {
  const count = block.length < PART_COUNT_BYTES ? 0 : readU32(block, block.length - PART_COUNT_BYTES);
  const directoryStart = block.length - PART_COUNT_BYTES - count * DIRECTORY_ENTRY_BYTES;
  if (count < 1 || directoryStart < 0) throw corrupt(what, "a block without a directory");
  const parts: BlockPart[] = [];
  for (let at = 0; at < count; at++) {
    const entryAt = directoryStart + at * DIRECTORY_ENTRY_BYTES;
    const streamId = readU64(block, entryAt);
    const start = readU32(block, entryAt + 8);
    const end = at + 1 === count ? directoryStart : readU32(block, entryAt + DIRECTORY_ENTRY_BYTES + 8);
    const before = parts.at(-1);
    if (start !== (before?.end ?? 0) || end <= start || end > directoryStart)
      throw corrupt(what, "a block's parts do not follow each other");
    if (before !== undefined && streamId <= before.streamId) throw corrupt(what, "a block's parts are out of order");
    parts.push({ streamId, start, end });
  }
  return parts;
}

function corrupt(what: string, fact: string): PicoError {
  return new PicoError("corrupt", `${what}: ${fact}`, { where: what });
}
