/**
 * A record batch, read in place: consecutive records of one stream in their stored form, which is the
 * same in WAL entries and in blocks of data objects. Written by `record-batch.ts`.
 *
 *     at  0  u32  byte length of the whole batch, this field included
 *     at  4  u8   flags: bit 0 = plain (no keys, no headers, no null bodies)
 *     at  5  u64  base offset: of the first record
 *     at 13  u32  count of records, at least 1
 *     at 17  u64  timestamp of the first record, ms since 1970
 *     at 25  u32  byte length of the meta section
 *     at 29       meta section, a record behind the other:
 *                   varint  timestamp minus that of the record before (the first: 0)
 *                   varint  body length + 1; 0 = null
 *                   and, unless the batch is plain:
 *                   varint  key length + 1; 0 = null; then the key
 *                   varint  count of headers; each: varint name length, name (UTF-8),
 *                           varint value length + 1 (0 = null), value
 *     then        the bodies, one behind the other with nothing between, to the end of the batch
 *
 * Invariants: a view never reads outside its batch and every walk ends, whatever the bytes are: each
 * record takes at least two bytes of the meta section. Wrong bytes throw `corrupt`; that they are the
 * right ones is for the checksum around them to say.
 *
 * What a view hands out shares memory with the bytes it was made from and keeps them alive: copy what
 * is to be kept.
 */
import { assert } from "../lib/assert.ts";
import { type ByteWriter, decodeUtf8 } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { OFFSET_MAX } from "../lib/limits.ts";
import type { RecordHeader, StoredRecord } from "./record.ts";

export const BATCH_HEADER_BYTES = 29;
export const BATCH_META_LENGTH_AT = 25;
export const BATCH_FLAG_PLAIN = 1;
/** Bytes that the meta section of a record takes at least. */
const META_BYTES_MIN = 2;

/** How many records of a batch a page can take. */
export interface PageFit {
  /** First offset that is not taken; equal to where the walk began if none is. */
  readonly endOffset: number;
  /** Key, body and header bytes of those taken. */
  readonly sizeBytes: number;
}

export class RecordBatchView {
  /** Offset of the first record. */
  readonly baseOffset: number;
  /** Records in it, at least 1. */
  readonly count: number;
  /** Bytes of the whole batch. */
  readonly byteLength: number;
  /** Timestamp of the first record, the lowest in the batch. */
  readonly baseTimestampMs: number;
  /** No keys, no headers, no null bodies. */
  readonly isPlain: boolean;
  /** Position of the meta section in `bytes`. */
  readonly metaStart: number;
  /** Position of the first body in `bytes`; the bodies reach to the end of the batch. */
  readonly bodiesStart: number;

  /** Throws `corrupt` where no whole batch begins at `start`. */
  constructor(
    readonly bytes: Uint8Array,
    /** Position of the batch in `bytes`. */
    readonly start = 0,
  ) {
    if (bytes.length - start < BATCH_HEADER_BYTES) throw corrupt(start, "its header is cut short");
    const flags = bytes[start + 4] ?? 0;
    const metaBytes = readU32(bytes, start + BATCH_META_LENGTH_AT);
    this.byteLength = readU32(bytes, start);
    this.baseOffset = readU64(bytes, start + 5);
    this.count = readU32(bytes, start + 13);
    this.baseTimestampMs = readU64(bytes, start + 17);
    this.isPlain = (flags & BATCH_FLAG_PLAIN) !== 0;
    this.metaStart = start + BATCH_HEADER_BYTES;
    this.bodiesStart = this.metaStart + metaBytes;
    if (flags > BATCH_FLAG_PLAIN) throw corrupt(start, `its flags are ${flags}`);
    if (this.byteLength > bytes.length - start) throw corrupt(start, "it is longer than the bytes it is in");
    if (this.byteLength < BATCH_HEADER_BYTES + metaBytes) throw corrupt(start, "its meta section is longer than the batch");
    if (this.count < 1 || metaBytes < this.count * META_BYTES_MIN) throw corrupt(start, "its count does not fit its meta section");
    if (this.baseOffset + this.count > OFFSET_MAX) throw corrupt(start, "its offsets are beyond 2^53");
    if (this.baseTimestampMs > Number.MAX_SAFE_INTEGER) throw corrupt(start, "its timestamp is beyond 2^53");
  }

  /** First offset behind the batch. */
  get endOffset(): number {
    return this.baseOffset + this.count;
  }

  /** Position in `bytes` behind the batch. */
  get end(): number {
    return this.start + this.byteLength;
  }

  /** A cursor that stands on the record at `offset`, which must be in the batch. */
  cursorAt(offset: number): RecordCursor {
    assert(offset >= this.baseOffset && offset < this.endOffset, "the offset is in the batch");
    const cursor = new RecordCursor(this);
    while (cursor.next() && cursor.offset < offset);
    return cursor;
  }

  record(offset: number): StoredRecord {
    return this.cursorAt(offset).record();
  }

  /** The records from `fromOffset` (clipped to the batch) to the end. */
  *records(fromOffset = this.baseOffset): Generator<StoredRecord> {
    const cursor = new RecordCursor(this);
    while (cursor.next()) if (cursor.offset >= fromOffset) yield cursor.record();
  }

  /** The bodies of `[fromOffset, toOffset)`, which must lie in the batch, as one slice; null bodies are empty in it. */
  bodies(fromOffset = this.baseOffset, toOffset = this.endOffset): Uint8Array {
    assert(fromOffset >= this.baseOffset && fromOffset <= toOffset && toOffset <= this.endOffset, "the range is in the batch");
    return this.bytes.subarray(this.#bodyPosition(fromOffset), this.#bodyPosition(toOffset));
  }

  /**
   * How far a page that has room for `recordsMax` records and `bytesMax` bytes gets from `fromOffset`,
   * an offset in the batch. With `takesFirst` the first record is taken even if it is larger.
   */
  fit(fromOffset: number, recordsMax: number, bytesMax: number, takesFirst: boolean): PageFit {
    const bodyBytes = this.end - this.bodiesStart;
    if (this.isPlain && fromOffset === this.baseOffset && this.count <= recordsMax && bodyBytes <= bytesMax) {
      return { endOffset: this.endOffset, sizeBytes: bodyBytes };
    }
    const cursor = this.cursorAt(fromOffset);
    let endOffset = fromOffset;
    let sizeBytes = 0;
    do {
      const isExempt = takesFirst && endOffset === fromOffset;
      if (endOffset - fromOffset >= recordsMax) break;
      if (!isExempt && sizeBytes + cursor.sizeBytes > bytesMax) break;
      sizeBytes += cursor.sizeBytes;
      endOffset += 1;
    } while (cursor.next());
    return { endOffset, sizeBytes };
  }

  #bodyPosition(offset: number): number {
    if (offset === this.baseOffset) return this.bodiesStart;
    if (offset === this.endOffset) return this.end;
    return this.cursorAt(offset).bodyStart;
  }
}

/** Walks a batch record by record without making anything; what it stands on is in its fields. */
export class RecordCursor {
  /** Of the record it stands on; before the first `next`, one below the base. */
  offset: number;
  timestampMs: number;
  /** Key, body and header bytes: what counts against a page's limit. */
  sizeBytes = 0;
  /** Position of the body in the batch's bytes. */
  bodyStart: number;
  /** -1: null. */
  bodyLength = 0;
  /** Where the record's meta begins, and where its key begins if the batch is not plain. */
  metaStart: number;
  extrasStart: number;
  /** Next byte of the meta section. */
  #at: number;
  #bodyEnd: number;

  constructor(readonly batch: RecordBatchView) {
    this.offset = batch.baseOffset - 1;
    this.timestampMs = batch.baseTimestampMs;
    this.bodyStart = batch.bodiesStart;
    this.metaStart = batch.metaStart;
    this.extrasStart = batch.metaStart;
    this.#at = batch.metaStart;
    this.#bodyEnd = batch.bodiesStart;
  }

  /** Bytes that the record takes in the batch. */
  get storedBytes(): number {
    return this.#at - this.metaStart + Math.max(0, this.bodyLength);
  }

  /** Steps to the next record; false behind the last. */
  next(): boolean {
    const batch = this.batch;
    if (this.offset + 1 >= batch.endOffset) return false;
    this.offset += 1;
    this.metaStart = this.#at;
    this.timestampMs += this.#varint();
    if (this.timestampMs > Number.MAX_SAFE_INTEGER) throw corrupt(batch.start, "a timestamp is beyond 2^53");
    this.bodyLength = this.#varint() - 1;
    if (batch.isPlain && this.bodyLength < 0) throw corrupt(batch.start, "a body of a plain batch is null");
    this.bodyStart = this.#bodyEnd;
    this.sizeBytes = Math.max(0, this.bodyLength);
    this.#bodyEnd = this.bodyStart + this.sizeBytes;
    if (this.#bodyEnd > batch.end) throw corrupt(batch.start, "a body is longer than the batch");
    this.extrasStart = this.#at;
    if (!batch.isPlain) this.#skipExtras();
    return true;
  }

  body(): Uint8Array | null {
    return this.bodyLength < 0 ? null : this.batch.bytes.subarray(this.bodyStart, this.#bodyEnd);
  }

  record(): StoredRecord {
    const { offset, timestampMs } = this;
    if (this.batch.isPlain) return { offset, timestampMs, key: null, headers: NO_HEADERS, body: this.body() };
    const end = this.#at;
    this.#at = this.extrasStart;
    const key = this.#nullableBytes();
    const headers: RecordHeader[] = [];
    for (let count = this.#varint(); count > 0; count--) {
      const name = decodeUtf8(this.#bytes(this.#varint()));
      if (name === null) throw corrupt(this.batch.start, "a header name is not UTF-8");
      headers.push({ name, value: this.#nullableBytes() });
    }
    this.#at = end;
    return { offset, timestampMs, key, headers, body: this.body() };
  }

  /** Copies key and headers as they are stored; those of a plain batch are absent there, and written as such. */
  copyExtras(out: ByteWriter): void {
    if (this.batch.isPlain) out.u16(0);
    else out.bytes(this.batch.bytes.subarray(this.extrasStart, this.#at));
  }

  #skipExtras(): void {
    this.sizeBytes += this.#skip(Math.max(0, this.#varint() - 1));
    for (let count = this.#varint(); count > 0; count--) {
      this.sizeBytes += this.#skip(this.#varint());
      this.sizeBytes += this.#skip(Math.max(0, this.#varint() - 1));
    }
  }

  #skip(count: number): number {
    if (count > this.batch.bodiesStart - this.#at) throw corrupt(this.batch.start, "its meta section is cut short");
    this.#at += count;
    return count;
  }

  #bytes(count: number): Uint8Array {
    const at = this.#at;
    this.#skip(count);
    return this.batch.bytes.subarray(at, at + count);
  }

  #nullableBytes(): Uint8Array | null {
    const length = this.#varint();
    return length === 0 ? null : this.#bytes(length - 1);
  }

  #varint(): number {
    const { bytes, bodiesStart } = this.batch;
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8 && this.#at < bodiesStart; i++) {
      const byte = bytes[this.#at++] ?? 0;
      if (byte < 0x80) {
        value += byte * scale;
        if (value > Number.MAX_SAFE_INTEGER) break;
        return value;
      }
      value += (byte - 0x80) * scale;
      scale *= 0x80;
    }
    throw corrupt(this.batch.start, "a number of its meta section is cut short or beyond 2^53");
  }
}

const NO_HEADERS: readonly RecordHeader[] = [];

function corrupt(start: number, fact: string): PicoError {
  return new PicoError("corrupt", `record batch at byte ${start}: ${fact}`, { where: `record batch at byte ${start}` });
}

/** Big-endian; the caller has checked that the bytes are there. */
export function readU32(bytes: Uint8Array, at: number): number {
  return (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >>> 0;
}

/** Big-endian; may be beyond 2^53, where it is not exact: the caller compares. */
export function readU64(bytes: Uint8Array, at: number): number {
  return readU32(bytes, at) * 2 ** 32 + readU32(bytes, at + 4);
}
