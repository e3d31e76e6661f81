/**
 * Builds data objects from the records and tail states of streams, given in ascending order of ids:
 *
 *     for each stream: startStream (or startPart), add for each of its batches in order, finishStream
 *     finish
 *
 * After each of these calls `takeFinished` gives the objects that are complete, until null; so the
 * writer holds one object at a time, and the caller may pause between any two calls.
 *
 * Invariants:
 * - The places of the objects are disjoint and ascend. A stream may span objects; its tail state, if it
 *   has one here, is in the one with its last records.
 * - An object is at most `OBJECT_BYTES_TARGET` long, unless it holds a single record or tail state that
 *   is longer by itself. Room for the tail state is kept from the start of its stream.
 * - A block is at most `BLOCK_BYTES_TARGET` long, unless it holds a single record or tail state.
 * - The object id is given last, by `seal`: what is built needs no id to be reserved before it is known
 *   how many objects there are.
 */
import { assert } from "../lib/assert.ts";
import { ByteWriter, utf8Encoder } from "../lib/bytes.ts";
import { checksum64 } from "../lib/checksum.ts";
import { BLOCK_BYTES_TARGET, INDEX_LEAF_BYTES, INDEX_TOP_BYTES_MAX, OBJECT_BYTES_TARGET, OFFSET_MAX } from "../lib/limits.ts";
import type { ObjectSummary, RecordPlace } from "../metadata/command.ts";
import { BlockSectionWriter } from "./block-section-writer.ts";
import { BloomFilter } from "./bloom-filter.ts";
import {
  DATA_OBJECT_MAGIC,
  type DataObjectFooter,
  DIRECTORY_ENTRY_BYTES,
  encodeFooter,
  encodeIndexEntry,
  INDEX_ENTRY_BYTES,
  type IndexEntry,
  PART_COUNT_BYTES,
} from "./data-object-format.ts";
import { mergeRecordBatches } from "./record-batch.ts";
import { BATCH_HEADER_BYTES, type RecordBatchView, RecordCursor } from "./record-batch-view.ts";
import type { TailState } from "./tail-state.ts";
import { encodeTailState } from "./tail-state-format.ts";

export interface DataObjectWriterOptions {
  readonly clusterId: string;
  /** 0: from an upload, with a filter. */
  readonly level: number;
  /** What will be written about, in bytes, so that the buffer need not grow; the objects are bounded anyway. */
  readonly bytesExpected: number;
  /** @default OBJECT_BYTES_TARGET */
  readonly objectBytesTarget?: number;
  /** @default BLOCK_BYTES_TARGET */
  readonly blockBytesTarget?: number;
  /** @default INDEX_LEAF_BYTES */
  readonly leafBytes?: number;
}

/** Offsets `[start, end)`. */
export interface OffsetRange {
  readonly start: number;
  readonly end: number;
}

/** A stored object and what a commit says of it. */
export interface SealedDataObject {
  /** Exactly the object; shares memory with the draft. */
  readonly bytes: Uint8Array;
  readonly summary: ObjectSummary;
}

/** A complete object that has no id yet. */
export class DataObjectDraft {
  constructor(
    private readonly out: ByteWriter,
    private readonly footer: Omit<DataObjectFooter, "objectId">,
    private readonly footerStart = out.length,
  ) {}

  /** Bytes without the footer. */
  get byteLength(): number {
    return this.footerStart;
  }

  seal(objectId: number): SealedDataObject {
    const { level, streamCount, recordCount, first, last } = this.footer;
    this.out.length = this.footerStart;
    encodeFooter(this.out, { ...this.footer, objectId });
    const bytes = this.out.written();
    return { bytes, summary: { objectId, level, sizeBytes: bytes.length, streamCount, recordCount, first, last } };
  }
}

/** How much a merge may lengthen a batch: its first timestamp is written as a difference then. */
const TIMESTAMP_GROWTH_BYTES = 7;
/** Of a filter, over what is counted for each stream; and of footer and the rest, without the cluster id. */
const OBJECT_FIXED_BYTES = 256;
const FILTER_BYTES_PER_STREAM = 2;

/** The object being built. */
class ObjectInProgress {
  readonly records: BlockSectionWriter;
  /** Its own bytes, moved behind the record blocks at the end. */
  readonly states = new BlockSectionWriter(new ByteWriter(4096));
  readonly streamIds: number[] = [];
  recordCount = 0;
  first: RecordPlace | null = null;
  last: RecordPlace | null = null;

  constructor(readonly out: ByteWriter) {
    out.bytes(utf8Encoder.encode(DATA_OBJECT_MAGIC));
    this.records = new BlockSectionWriter(out);
  }

  get isEmpty(): boolean {
    return this.first === null;
  }

  notePlaces(streamId: number, firstOffset: number, lastOffset: number): void {
    this.first ??= { streamId, offset: firstOffset };
    this.last = { streamId, offset: lastOffset };
    if (this.streamIds.at(-1) !== streamId) this.streamIds.push(streamId);
  }

  /** Upper bound of the object's length if it were finished as it stands; open blocks count in full. */
  bytesBound(blockBytesTarget: number): number {
    const openBlock = this.records.blockBytes;
    const blockCount = this.records.entries.length + this.states.entries.length + 2;
    return (
      this.out.length +
      Math.max(0, blockBytesTarget - openBlock) +
      this.states.out.length +
      this.states.blockBytes +
      blockCount * 2 * INDEX_ENTRY_BYTES +
      this.streamIds.length * FILTER_BYTES_PER_STREAM +
      OBJECT_FIXED_BYTES
    );
  }
}

/** The stream between `startStream` and `finishStream`. */
interface OpenStream {
  readonly streamId: number;
  /** Records outside are dropped. */
  readonly kept: OffsetRange;
  /** Null: its tail state is in another object. */
  readonly tail: TailState | null;
  /** The records are all that the tail state knows of, from the first of them on. */
  readonly isWhole: boolean;
  /** Behind the last record taken. */
  offset: number;
}

export class DataObjectWriter {
  readonly #clusterId: string;
  readonly #level: number;
  readonly #objectBytesTarget: number;
  readonly #blockBytesTarget: number;
  readonly #leafBytes: number;
  #bytesExpected: number;
  #object: ObjectInProgress | null = null;
  #stream: OpenStream | null = null;
  /** The open stream's tail state, encoded. */
  readonly #state = new ByteWriter();
  #lastStreamId = -1;
  /** Records taken and not yet written to the open block: `[#pendingFrom, #pendingTo)` of these batches. */
  #pending: RecordBatchView[] = [];
  #pendingFrom = 0;
  #pendingTo = 0;
  /** Upper bound of the bytes that they will take. */
  #pendingBytes = 0;
  #finished: DataObjectDraft[] = [];

  constructor(options: DataObjectWriterOptions) {
    this.#clusterId = options.clusterId;
    this.#level = options.level;
    this.#bytesExpected = options.bytesExpected;
    this.#objectBytesTarget = options.objectBytesTarget ?? OBJECT_BYTES_TARGET;
    this.#blockBytesTarget = options.blockBytesTarget ?? BLOCK_BYTES_TARGET;
    this.#leafBytes = options.leafBytes ?? INDEX_LEAF_BYTES;
  }

  /** Begins a stream whose id is above all before. Its records below `fromOffset` are dropped. */
  startStream(streamId: number, tail: TailState, fromOffset = 0): void {
    this.#start(streamId, tail, { start: fromOffset, end: OFFSET_MAX }, true);
  }

  /**
   * Begins what some objects hold of a stream whose id is above all before; records outside of `kept` are
   * dropped. Its tail state may be in another object (null), or be older than the records.
   */
  startPart(streamId: number, tail: TailState | null, kept: OffsetRange): void {
    this.#start(streamId, tail, kept, false);
  }

  #start(streamId: number, tail: TailState | null, kept: OffsetRange, isWhole: boolean): void {
    assert(this.#stream === null, "a stream is finished before the next begins");
    assert(streamId > this.#lastStreamId, "streams come in ascending order of ids");
    this.#state.length = 0;
    if (tail !== null) encodeTailState(this.#state, tail);
    this.#stream = { streamId, kept, tail, isWhole, offset: 0 };
    this.#lastStreamId = streamId;
    const object = this.#object;
    if (object !== null && this.#bytesBound(object) > this.#objectBytesTarget) this.#finishObject(object);
  }

  /** Takes a batch of the stream; it must lie behind those before it. The bytes are read at the latest in `finishStream`. */
  add(batch: RecordBatchView): void {
    const stream = this.#openStream();
    const { kept } = stream;
    if (batch.endOffset <= kept.start || batch.baseOffset >= kept.end) return;
    assert(batch.baseOffset >= stream.offset, "the batches of a stream come in order");
    assert(!stream.isWhole || batch.endOffset <= (stream.tail?.nextOffset ?? 0), "the tail state is behind the records");
    stream.offset = batch.endOffset;
    const wholeBytes = batch.byteLength - BATCH_HEADER_BYTES + TIMESTAMP_GROWTH_BYTES + (batch.isPlain ? 2 * batch.count : 0);
    const isKeptWhole = batch.baseOffset >= kept.start && batch.endOffset <= kept.end;
    if (isKeptWhole && BATCH_HEADER_BYTES + wholeBytes <= this.#blockBytesTarget / 2) {
      this.#take(stream, batch, batch.baseOffset, batch.endOffset, wholeBytes);
      return;
    }
    const cursor = new RecordCursor(batch);
    let growthBytes = TIMESTAMP_GROWTH_BYTES;
    while (cursor.next() && cursor.offset < kept.end) {
      if (cursor.offset < kept.start) continue;
      const recordBytes = cursor.storedBytes + growthBytes + (batch.isPlain ? 2 : 0);
      this.#take(stream, batch, cursor.offset, cursor.offset + 1, recordBytes);
      growthBytes = 0;
    }
  }

  finishStream(): void {
    const stream = this.#openStream();
    this.#writePending(stream);
    this.#stream = null;
    if (stream.tail === null) return;
    const object = this.#openObject();
    const { states } = object;
    const stateBytes = this.#state.length + DIRECTORY_ENTRY_BYTES;
    if (states.blockBytes > 0 && states.blockBytes + stateBytes > this.#blockBytesTarget) states.endBlock();
    states.startPart(stream.streamId, 0);
    states.out.bytes(this.#state.written());
    const { nextOffset } = stream.tail;
    if (object.last?.streamId !== stream.streamId) object.notePlaces(stream.streamId, nextOffset, nextOffset);
  }

  /** Completes the last object; the writer is used no more. */
  finish(): void {
    assert(this.#stream === null, "the last stream is finished");
    if (this.#object !== null) this.#finishObject(this.#object);
  }

  /** `takeFinished` has an object to give. */
  get hasFinished(): boolean {
    return this.#finished.length > 0;
  }

  /** The next complete object, null where there is none. */
  takeFinished(): DataObjectDraft | null {
    return this.#finished.shift() ?? null;
  }

  /** Puts records behind the pending ones, in another block or object where this one has no room for them. */
  #take(stream: OpenStream, batch: RecordBatchView, from: number, to: number, bytes: number): void {
    if (this.#pending.length > 0 && from !== this.#pendingTo) this.#writePending(stream);
    let object = this.#openObject();
    const partBytes = BATCH_HEADER_BYTES + DIRECTORY_ENTRY_BYTES + PART_COUNT_BYTES;
    const blockBytes = object.records.blockBytes + this.#pendingBytes;
    if (blockBytes > 0 && blockBytes + bytes + (this.#pending.length === 0 ? partBytes : 0) > this.#blockBytesTarget) {
      this.#writePending(stream);
      object.records.endBlock();
    }
    if (object.records.blockBytes + this.#pendingBytes === 0) {
      const beyondBlock = Math.max(0, bytes + partBytes - this.#blockBytesTarget);
      if (!object.isEmpty && this.#bytesBound(object) + beyondBlock > this.#objectBytesTarget) {
        this.#finishObject(object);
        object = this.#openObject();
      }
    }
    if (this.#pending.length === 0) {
      this.#pendingFrom = from;
      this.#pendingBytes = partBytes;
    }
    if (this.#pending.at(-1) !== batch) this.#pending.push(batch);
    this.#pendingTo = to;
    this.#pendingBytes += bytes;
  }

  /** Writes the pending records as one batch to the open block. */
  #writePending(stream: OpenStream): void {
    if (this.#pending.length === 0) return;
    const object = this.#openObject();
    object.records.startPart(stream.streamId, this.#pendingFrom);
    mergeRecordBatches(object.out, this.#pending, this.#pendingFrom, this.#pendingTo);
    object.recordCount += this.#pendingTo - this.#pendingFrom;
    object.notePlaces(stream.streamId, this.#pendingFrom, this.#pendingTo - 1);
    this.#pending = [];
    this.#pendingBytes = 0;
  }

  #finishObject(object: ObjectInProgress): void {
    const { out, records, states, first, last } = object;
    assert(first !== null && last !== null, "an object holds a stream");
    records.endBlock();
    states.endBlock();
    const statesStart = out.length;
    out.bytes(states.out.written());
    const recordLeaves = this.#writeLeaves(out, records.entries);
    const stateLeaves = this.#writeLeaves(
      out,
      states.entries.map((entry) => ({ ...entry, position: entry.position + statesStart })),
    );
    const filterPosition = out.length;
    if (this.#level === 0) BloomFilter.of(object.streamIds).encode(out);
    const filterLength = out.length - filterPosition;
    for (const leaf of recordLeaves) encodeIndexEntry(out, leaf);
    for (const leaf of stateLeaves) encodeIndexEntry(out, leaf);
    const topLength = out.length - filterPosition - filterLength;
    assert(topLength <= INDEX_TOP_BYTES_MAX, "the top index is within its limit");
    this.#finished.push(
      new DataObjectDraft(out, {
        level: this.#level,
        streamCount: object.streamIds.length,
        recordCount: object.recordCount,
        first,
        last,
        recordLeafCount: recordLeaves.length,
        stateLeafCount: stateLeaves.length,
        filterPosition,
        filterLength,
        topLength,
        headChecksum: checksum64(out.buffer.subarray(filterPosition, out.length)),
        clusterId: this.#clusterId,
      }),
    );
    this.#bytesExpected = Math.max(0, this.#bytesExpected - out.length);
    this.#object = null;
  }

  /** Writes index entries in leaves and returns one entry for each leaf. */
  #writeLeaves(out: ByteWriter, entries: readonly IndexEntry[]): IndexEntry[] {
    const entriesPerLeaf = Math.floor(this.#leafBytes / INDEX_ENTRY_BYTES);
    const leaves: IndexEntry[] = [];
    for (let from = 0; from < entries.length; from += entriesPerLeaf) {
      const position = out.length;
      const [first] = entries.slice(from, from + 1);
      assert(first !== undefined, "a leaf has an entry");
      for (const entry of entries.slice(from, from + entriesPerLeaf)) encodeIndexEntry(out, entry);
      const length = out.length - position;
      const checksum = checksum64(out.buffer.subarray(position, out.length));
      leaves.push({ streamId: first.streamId, offset: first.offset, position, length, checksum });
    }
    return leaves;
  }

  /** With the room that the open stream's tail state will take. */
  #bytesBound(object: ObjectInProgress): number {
    const streamBytes = this.#state.length + DIRECTORY_ENTRY_BYTES * 2 + PART_COUNT_BYTES + 2 * INDEX_ENTRY_BYTES + FILTER_BYTES_PER_STREAM;
    return object.bytesBound(this.#blockBytesTarget) + streamBytes + this.#clusterId.length * 3;
  }

  #openObject(): ObjectInProgress {
    const bytesExpected = Math.min(this.#bytesExpected, this.#objectBytesTarget);
    this.#object ??= new ObjectInProgress(new ByteWriter(bytesExpected + OBJECT_FIXED_BYTES));
    return this.#object;
  }

  #openStream(): OpenStream {
    assert(this.#stream !== null, "a stream is open");
    return this.#stream;
  }
}
