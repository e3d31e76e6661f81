/**
 * Records as bytes (Pico 12), big-endian, no padding:
 *
 *     u8   version = 1
 *     u32  record count
 *     per record:
 *       u64 seq, i64 timestamp ms        (reads only)
 *       i32 key length (-1 = no key), key
 *       u32 header count; each: u32 name length, name (UTF-8), i32 value length (-1 = null), value
 *       i32 body length (-1 = null), body
 */
import type { NewRecord, RecordHeader, StoredRecord } from "../engine/record.ts";
import { ByteReader, ByteWriter, decodeUtf8, utf8Encoder } from "../lib/bytes.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { BATCH_RECORDS_MAX, RECORD_HEADERS_MAX } from "../lib/limits.ts";

const VERSION = 1;
const HEAD_BYTES = 5;

/**
 * The records of an append; none for a batch of none. Throws `bad_request` that names the byte for a
 * wrong version, lengths that do not fit, a header name that is not UTF-8, or trailing bytes. The
 * results share memory with `body`.
 */
export function decodePicoBinaryBatch(body: Uint8Array): NewRecord[] {
  const reader = new ByteReader(body, 0, body.length, "binary batch");
  try {
    return decodeRecords(reader);
  } catch (error) {
    if (isPicoError(error, "corrupt")) throw refusal(error.message);
    throw error;
  }
}

/** Version and record count of a read batch; `encodePicoBinaryRecord` follows so many times. */
export function encodePicoBinaryHead(out: ByteWriter, count: number): void {
  out.u8(VERSION);
  out.u32(count);
}

export function encodePicoBinaryRecord(out: ByteWriter, record: StoredRecord): void {
  out.u64(record.offset);
  out.u64(record.timestampMs);
  writeRecord(out, record);
}

/** An append batch, as clients send it. */
export function encodePicoBinaryAppend(records: readonly NewRecord[]): Uint8Array {
  const out = new ByteWriter();
  encodePicoBinaryHead(out, records.length);
  for (const record of records) writeRecord(out, record);
  return out.copy();
}

/** One record of an append batch, without the batch's head. */
export function encodePicoNewRecord(record: NewRecord): Uint8Array {
  const out = new ByteWriter();
  writeRecord(out, record);
  return out.copy();
}

/** An append batch of records that `encodePicoNewRecord` made. */
export function joinPicoBinaryAppend(encoded: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const size = encoded.reduce((sum, bytes) => sum + bytes.length, HEAD_BYTES);
  const batch = new Uint8Array(size);
  batch[0] = VERSION;
  new DataView(batch.buffer).setUint32(1, encoded.length);
  let at = HEAD_BYTES;
  for (const bytes of encoded) {
    batch.set(bytes, at);
    at += bytes.length;
  }
  return batch;
}

/**
 * The records of a read batch, as clients get it. Throws `corrupt`, or `bad_request` as of an append, for bytes that
 * are none. The results are copies: keeping one of them does not keep the page.
 */
export function decodePicoBinaryPage(body: Uint8Array): StoredRecord[] {
  const reader = new ByteReader(body, 0, body.length, "binary page");
  const version = reader.u8();
  if (version !== VERSION) throw refusal(`binary page: version ${version} at byte 0, only ${VERSION} is known`);
  const count = reader.u32();
  const records: StoredRecord[] = [];
  for (let i = 0; i < count; i++) {
    const offset = reader.u64();
    const timestampMs = reader.u64();
    const key = readNullable(reader)?.slice() ?? null;
    const headers = readHeaders(reader).map(({ name, value }) => ({ name, value: value?.slice() ?? null }));
    records.push({ offset, timestampMs, key, headers, body: readNullable(reader)?.slice() ?? null });
  }
  reader.expectEnd();
  return records;
}

function decodeRecords(reader: ByteReader): NewRecord[] {
  const version = reader.u8();
  if (version !== VERSION) throw refusal(`binary batch: version ${version} at byte 0, only ${VERSION} is known`);
  const count = reader.u32();
  if (count > BATCH_RECORDS_MAX) throw refusal(`binary batch: ${count} records, the limit is ${BATCH_RECORDS_MAX} a request`);
  const records: NewRecord[] = [];
  for (let i = 0; i < count; i++) {
    records.push({ key: readNullable(reader), headers: readHeaders(reader), body: readNullable(reader) });
  }
  reader.expectEnd();
  return records;
}

function readHeaders(reader: ByteReader): RecordHeader[] {
  const at = reader.at;
  const count = reader.u32();
  if (count > RECORD_HEADERS_MAX) {
    throw refusal(`binary batch: ${count} headers at byte ${at}, the limit is ${RECORD_HEADERS_MAX} a record`);
  }
  const headers: RecordHeader[] = [];
  for (let i = 0; i < count; i++) {
    const nameAt = reader.at;
    const name = decodeUtf8(reader.bytes(reader.u32()));
    if (name === null) throw refusal(`binary batch: the header name at byte ${nameAt} is not UTF-8`);
    headers.push({ name, value: readNullable(reader) });
  }
  return headers;
}

function readNullable(reader: ByteReader): Uint8Array | null {
  const at = reader.at;
  const length = reader.i32();
  if (length < -1) throw refusal(`binary batch: length ${length} at byte ${at}`);
  return length === -1 ? null : reader.bytes(length);
}

function writeRecord(out: ByteWriter, record: NewRecord): void {
  writeNullable(out, record.key);
  out.u32(record.headers.length);
  for (const header of record.headers) {
    const name = utf8Encoder.encode(header.name);
    out.u32(name.length);
    out.bytes(name);
    writeNullable(out, header.value);
  }
  writeNullable(out, record.body);
}

function writeNullable(out: ByteWriter, bytes: Uint8Array | null): void {
  out.i32(bytes?.length ?? -1);
  if (bytes !== null) out.bytes(bytes);
}

function refusal(message: string): PicoError {
  return new PicoError("bad_request", message, { what: "body" });
}
