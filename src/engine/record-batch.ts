/**
 * Writes record batches; the layout is in `record-batch-view.ts`, which reads them. A batch holds at
 * least one record, and its bodies lie one behind the other, so that a raw read of several records is
 * one slice.
 */
import { assert } from "../lib/assert.ts";
import { type ByteWriter, utf8Encoder } from "../lib/bytes.ts";
import type { NewRecord } from "./record.ts";
import { BATCH_FLAG_PLAIN, BATCH_HEADER_BYTES, BATCH_META_LENGTH_AT, type RecordBatchView } from "./record-batch-view.ts";

const BATCH_BYTES_MAX = 2 ** 32 - 1;

/** Writes the records of one append: they have consecutive offsets from `baseOffset` and one timestamp. */
export function encodeRecordBatch(out: ByteWriter, baseOffset: number, timestampMs: number, records: readonly NewRecord[]): void {
  const isPlain = records.every(isPlainRecord);
  const start = startBatch(out, isPlain, baseOffset, records.length, timestampMs);
  for (const record of records) {
    out.u8(0);
    out.varint(record.body === null ? 0 : record.body.length + 1);
    if (!isPlain) writeExtras(out, record);
  }
  endMeta(out, start);
  for (const record of records) if (record.body !== null) out.bytes(record.body);
  endBatch(out, start);
}

/** The same for one record that is only a body: the usual append. */
export function encodeSingleBody(out: ByteWriter, offset: number, timestampMs: number, body: Uint8Array): void {
  out.reserve(BATCH_HEADER_BYTES + 9 + body.length);
  const start = startBatch(out, true, offset, 1, timestampMs);
  out.u8(0);
  out.varint(body.length + 1);
  endMeta(out, start);
  out.bytes(body);
  endBatch(out, start);
}

/**
 * Writes the records `[fromOffset, toOffset)` of consecutive batches as one batch. The batches must
 * follow each other without a gap, and the range must lie in them and not be empty.
 */
export function mergeRecordBatches(
  out: ByteWriter,
  batches: readonly RecordBatchView[],
  fromOffset = batches[0]?.baseOffset ?? 0,
  toOffset = batches.at(-1)?.endOffset ?? 0,
): void {
  const parts = batches.filter((batch) => batch.endOffset > fromOffset && batch.baseOffset < toOffset);
  const [first] = parts;
  assert(first !== undefined && first.baseOffset <= fromOffset, "the batches hold the first offset");
  const isPlain = parts.every((batch) => batch.isPlain);
  let timestampMs = first.cursorAt(fromOffset).timestampMs;
  const start = startBatch(out, isPlain, fromOffset, toOffset - fromOffset, timestampMs);
  let offset = fromOffset;
  for (const batch of parts) {
    assert(offset === fromOffset || batch.baseOffset === offset, "the batches follow each other");
    const cursor = batch.cursorAt(offset);
    do {
      assert(cursor.timestampMs >= timestampMs, "timestamps do not fall within a stream");
      out.varint(cursor.timestampMs - timestampMs);
      out.varint(cursor.bodyLength + 1);
      if (!isPlain) cursor.copyExtras(out);
      timestampMs = cursor.timestampMs;
      offset += 1;
    } while (offset < toOffset && cursor.next());
  }
  assert(offset === toOffset, "the batches hold the last offset");
  endMeta(out, start);
  for (const batch of parts) {
    out.bytes(batch.bodies(Math.max(fromOffset, batch.baseOffset), Math.min(toOffset, batch.endOffset)));
  }
  endBatch(out, start);
}

function isPlainRecord(record: NewRecord): boolean {
  return record.key === null && record.headers.length === 0 && record.body !== null;
}

/** Returns where the batch begins. Both lengths are filled in by `endMeta` and `endBatch`. */
function startBatch(out: ByteWriter, isPlain: boolean, baseOffset: number, count: number, timestampMs: number): number {
  assert(count >= 1, "a batch holds a record");
  const start = out.length;
  out.u32(0);
  out.u8(isPlain ? BATCH_FLAG_PLAIN : 0);
  out.u64(baseOffset);
  out.u32(count);
  out.u64(timestampMs);
  out.u32(0);
  return start;
}

function endMeta(out: ByteWriter, start: number): void {
  out.patchU32(start + BATCH_META_LENGTH_AT, out.length - start - BATCH_HEADER_BYTES);
}

function endBatch(out: ByteWriter, start: number): void {
  const byteLength = out.length - start;
  assert(byteLength <= BATCH_BYTES_MAX, "a batch is below 4 GiB");
  out.patchU32(start, byteLength);
}

function writeExtras(out: ByteWriter, record: NewRecord): void {
  writeNullable(out, record.key);
  out.varint(record.headers.length);
  for (const header of record.headers) {
    out.lengthPrefixed(utf8Encoder.encode(header.name));
    writeNullable(out, header.value);
  }
}

function writeNullable(out: ByteWriter, bytes: Uint8Array | null): void {
  out.varint(bytes === null ? 0 : bytes.length + 1);
  if (bytes !== null) out.bytes(bytes);
}
