/**
 * A WAL entry: one change of one stream. Records, producer state and close of an append are in the
 * same entry, so that a crash leaves all of it or none. The body of a WAL segment is entries, one
 * behind the other:
 *
 *     u32     byte length of the whole entry, this field included
 *     u8      flags: 1 = base, 2 = producer, 4 = Stream-Seq, 8 = closes the stream, 16 = records
 *     varint  stream id
 *     varint  change number: the stream's entries count up by one
 *     varint  next offset, behind this entry's records
 *     varint  timestamp, ms since 1970
 *             base, if flag 1: the stream's whole tail state before this entry (`tail-state-format.ts`)
 *             producer, if flag 2: text id, u64 epoch, u64 sequence
 *             text Stream-Seq, if flag 4
 *             a record batch to the end of the entry, if flag 16 (`record-batch-view.ts`)
 *
 * The first entry of a stream behind each upload cut has a base, so that a replay needs no lookup.
 * The segment around the body carries version and checksum.
 */
import { assert } from "../lib/assert.ts";
import { ByteReader, type ByteWriter } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import type { NewRecord } from "./record.ts";
import { encodeRecordBatch, encodeSingleBody } from "./record-batch.ts";
import { RecordBatchView, readU32 } from "./record-batch-view.ts";
import type { ProducerStamp, TailState } from "./tail-state.ts";
import { decodeProducerStamp, decodeTailState, encodeProducerStamp, encodeTailState } from "./tail-state-format.ts";

const FLAG_BASE = 1;
const FLAG_PRODUCER = 2;
const FLAG_STREAM_SEQ = 4;
const FLAG_CLOSES = 8;
const FLAG_RECORDS = 16;
const FLAGS_ALL = FLAG_BASE | FLAG_PRODUCER | FLAG_STREAM_SEQ | FLAG_CLOSES | FLAG_RECORDS;

const LENGTH_BYTES = 4;
/** Length and flags. */
const ENTRY_PREFIX_BYTES = LENGTH_BYTES + 1;

/** What an entry says beside its records. */
export interface WalEntryHead {
  readonly streamId: number;
  /** That of the tail state before it, plus one. */
  readonly changeNumber: number;
  /** First offset behind its records; the unchanged tail where it has none. */
  readonly nextOffset: number;
  /** Of its records, and of the producer's last use, ms since 1970. */
  readonly timestampMs: number;
  /** Tail state before this entry; null where an earlier entry behind the same upload cut has one. */
  readonly base: TailState | null;
  readonly producer: ProducerStamp | null;
  readonly streamSeq: string | null;
  readonly closes: boolean;
}

/** An entry as read back. Its batch shares memory with the segment's body. */
export interface WalEntry extends WalEntryHead {
  /** Its place `[start, end)` in the body. */
  readonly start: number;
  readonly end: number;
  /** First offset of its records; the next offset where it has none. */
  readonly baseOffset: number;
  /** Null where it has no records; `batch.start` is the place in the body. */
  readonly batch: RecordBatchView | null;
}

/**
 * Writes one entry. `records`: those of the append (at least one), or the body of the only record if
 * that has neither key nor headers, or null. Returns where the record batch begins in `out`, -1
 * without records.
 */
export function encodeWalEntry(out: ByteWriter, head: WalEntryHead, records: readonly NewRecord[] | Uint8Array | null): number {
  const { base, producer, streamSeq } = head;
  const start = out.length;
  out.u32(0);
  out.u8(
    (base !== null ? FLAG_BASE : 0) |
      (producer !== null ? FLAG_PRODUCER : 0) |
      (streamSeq !== null ? FLAG_STREAM_SEQ : 0) |
      (head.closes ? FLAG_CLOSES : 0) |
      (records !== null ? FLAG_RECORDS : 0),
  );
  out.varint(head.streamId);
  out.varint(head.changeNumber);
  out.varint(head.nextOffset);
  out.varint(head.timestampMs);
  if (base !== null) {
    assert(base.changeNumber + 1 === head.changeNumber, "the base is the state right before the entry");
    encodeTailState(out, base);
  }
  if (producer !== null) encodeProducerStamp(out, producer);
  if (streamSeq !== null) out.text(streamSeq);
  const batchStart = records === null ? -1 : out.length;
  if (records instanceof Uint8Array) encodeSingleBody(out, head.nextOffset - 1, head.timestampMs, records);
  else if (records !== null) encodeRecordBatch(out, head.nextOffset - records.length, head.timestampMs, records);
  out.patchU32(start, out.length - start);
  return batchStart;
}

/**
 * The entries in `body`, in order. `what` names the segment in errors. Throws `corrupt` where the bytes
 * are not whole entries, `incompatible` where a tail state is of another version.
 */
export function* decodeWalEntries(body: Uint8Array, what: string): Generator<WalEntry> {
  for (let at = 0; at < body.length; ) {
    const entry = decodeWalEntry(body, at, what);
    yield entry;
    at = entry.end;
  }
}

/** Whether the entry that begins at `start` carries a tail state; nothing else of it is looked at. */
export function hasBase(body: Uint8Array, start: number): boolean {
  return ((body[start + LENGTH_BYTES] ?? 0) & FLAG_BASE) !== 0;
}

/** The entry that begins at `start` in `body`. */
export function decodeWalEntry(body: Uint8Array, start: number, what: string): WalEntry {
  if (body.length - start < ENTRY_PREFIX_BYTES) throw corrupt(what, start, "it is cut short");
  const byteLength = readU32(body, start);
  if (byteLength < ENTRY_PREFIX_BYTES || byteLength > body.length - start) {
    throw corrupt(what, start, `its length is ${byteLength}`);
  }
  const end = start + byteLength;
  const reader = new ByteReader(body, start + LENGTH_BYTES, end, what);
  const flags = reader.u8();
  if ((flags & ~FLAGS_ALL) !== 0) throw corrupt(what, start, `its flags are ${flags}`);
  const streamId = reader.varint();
  const changeNumber = reader.varint();
  const nextOffset = reader.varint();
  const timestampMs = reader.varint();
  const base = (flags & FLAG_BASE) !== 0 ? decodeTailState(reader) : null;
  const producer = (flags & FLAG_PRODUCER) !== 0 ? decodeProducerStamp(reader) : null;
  const streamSeq = (flags & FLAG_STREAM_SEQ) !== 0 ? reader.text() : null;
  const batch = (flags & FLAG_RECORDS) !== 0 ? new RecordBatchView(body, reader.at) : null;
  if ((batch?.end ?? reader.at) !== end) throw corrupt(what, start, "its parts do not fill it");
  if (batch !== null && batch.endOffset !== nextOffset) throw corrupt(what, start, "its records do not end at its next offset");
  return {
    streamId,
    changeNumber,
    nextOffset,
    timestampMs,
    base,
    producer,
    streamSeq,
    closes: (flags & FLAG_CLOSES) !== 0,
    start,
    end,
    baseOffset: batch?.baseOffset ?? nextOffset,
    batch,
  };
}

function corrupt(what: string, start: number, fact: string): PicoError {
  return new PicoError("corrupt", `${what}: entry at byte ${start}: ${fact}`, { where: what, position: start });
}
