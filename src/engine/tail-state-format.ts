/**
 * The stored form of a tail state, in WAL entries and in data objects:
 *
 *     u8      version, 1
 *     varint  change number
 *     varint  next offset
 *     varint  timestamp of the last record, ms since 1970
 *     u8      flags: 1 = closed, 2 = has a Stream-Seq, 4 = a producer append closed it
 *     text    Stream-Seq, if flag 2             (text: varint length in bytes, UTF-8)
 *     text    producer id, u64 epoch, u64 sequence of the closing append, if flag 4
 *     varint  count of producers; each:
 *             text producer id, u64 epoch, u64 last sequence, varint last used, ms since 1970
 *
 * A version that this program does not know is `incompatible`; any other surprise is `corrupt`.
 */
import type { ByteReader, ByteWriter } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import type { ProducerStamp, ProducerState, TailState } from "./tail-state.ts";

const TAIL_STATE_VERSION = 1;

const FLAG_CLOSED = 1;
const FLAG_STREAM_SEQ = 2;
const FLAG_CLOSED_BY = 4;
const FLAGS_ALL = FLAG_CLOSED | FLAG_STREAM_SEQ | FLAG_CLOSED_BY;

const NO_PRODUCERS: ReadonlyMap<string, ProducerState> = new Map();

/** Of a stream before its first entry; a fork's begins at its fork offset. */
export function emptyTailState(nextOffset = 0): TailState {
  return {
    changeNumber: 0,
    nextOffset,
    lastTimestampMs: 0,
    streamSeq: null,
    isClosed: false,
    closedBy: null,
    producers: NO_PRODUCERS,
  };
}

export function encodeTailState(out: ByteWriter, state: TailState): void {
  const { streamSeq, closedBy } = state;
  out.u8(TAIL_STATE_VERSION);
  out.varint(state.changeNumber);
  out.varint(state.nextOffset);
  out.varint(state.lastTimestampMs);
  out.u8((state.isClosed ? FLAG_CLOSED : 0) | (streamSeq !== null ? FLAG_STREAM_SEQ : 0) | (closedBy !== null ? FLAG_CLOSED_BY : 0));
  if (streamSeq !== null) out.text(streamSeq);
  if (closedBy !== null) encodeProducerStamp(out, closedBy);
  out.varint(state.producers.size);
  for (const [producerId, producer] of state.producers) {
    out.text(producerId);
    out.bigU64(producer.producerEpoch);
    out.bigU64(producer.lastSeq);
    out.varint(producer.lastUsedMs);
  }
}

/** Reads one tail state and leaves the reader behind it. */
export function decodeTailState(reader: ByteReader): TailState {
  const version = reader.u8();
  if (version !== TAIL_STATE_VERSION) {
    const message = `${reader.what}: a tail state has version ${version}, this program reads version ${TAIL_STATE_VERSION}`;
    throw new PicoError("incompatible", message, { where: reader.what, version });
  }
  const changeNumber = reader.varint();
  const nextOffset = reader.varint();
  const lastTimestampMs = reader.varint();
  const flags = reader.u8();
  if ((flags & ~FLAGS_ALL) !== 0) throw new PicoError("corrupt", `${reader.what}: a tail state has flags ${flags}`, { where: reader.what });
  const streamSeq = (flags & FLAG_STREAM_SEQ) !== 0 ? reader.text() : null;
  const closedBy = (flags & FLAG_CLOSED_BY) !== 0 ? decodeProducerStamp(reader) : null;
  const isClosed = (flags & FLAG_CLOSED) !== 0;
  return { changeNumber, nextOffset, lastTimestampMs, streamSeq, isClosed, closedBy, producers: decodeProducers(reader) };
}

export function encodeProducerStamp(out: ByteWriter, stamp: ProducerStamp): void {
  out.text(stamp.producerId);
  out.bigU64(stamp.producerEpoch);
  out.bigU64(stamp.seq);
}

export function decodeProducerStamp(reader: ByteReader): ProducerStamp {
  return { producerId: reader.text(), producerEpoch: reader.bigU64(), seq: reader.bigU64() };
}

/** The count is not trusted: each producer takes bytes, so that the end of the bytes ends the loop. */
function decodeProducers(reader: ByteReader): ReadonlyMap<string, ProducerState> {
  const count = reader.varint();
  if (count === 0) return NO_PRODUCERS;
  const producers = new Map<string, ProducerState>();
  for (let i = 0; i < count; i++) {
    const producerId = reader.text();
    producers.set(producerId, { producerEpoch: reader.bigU64(), lastSeq: reader.bigU64(), lastUsedMs: reader.varint() });
  }
  if (producers.size !== count)
    throw new PicoError("corrupt", `${reader.what}: a tail state names a producer twice`, { where: reader.what });
  return producers;
}
