/**
 * The stored format of a WAL segment and of a tombstone, the same in every WAL store.
 *
 * ```
 *  byte  size  field
 *     0     8  checksum64 of everything behind it: bytes [8, end)
 *     8     4  magic "PICW"
 *    12     2  version, 1
 *    14     1  kind: 1 segment, 2 tombstone
 *    15     1  reserved, 0
 *    16     4  node id, signed
 *    20     4  body length in bytes
 *    24     8  node epoch
 *    32     8  number, from 1
 *    40     8  trim point: highest number already trimmable when this was written; 0 where none
 *    48     8  durable number: highest number known durable, with all below it, at that time
 *    56     …  body
 * ```
 *
 * The body of a segment is opaque here: its entries, one behind the other; empty for a proof that the
 * writer is not fenced. The body of a tombstone names the registration that wrote it (node id, node
 * epoch): 12 bytes, a size that no run of entries has, so a stored size alone says what is surely none.
 *
 * The checksum stands first and is checked before anything else is believed, the version included: a
 * flipped bit is always `corrupt`, and `incompatible` is always the word of an intact, newer writer.
 */
import { ByteReader, type ByteWriter } from "../lib/bytes.ts";
import { checksum64 } from "../lib/checksum.ts";
import { PicoError } from "../lib/errors.ts";
import { SEGMENT_BYTES_MAX } from "../lib/limits.ts";
import { formatRegistration, type RegistrationName, sameRegistration } from "../lib/registration.ts";

export const SEGMENT_HEADER_BYTES = 56;
const TOMBSTONE_BODY_BYTES = 12;
/** Every tombstone is exactly this long; a stored object of another size is none. */
export const TOMBSTONE_BYTES = SEGMENT_HEADER_BYTES + TOMBSTONE_BODY_BYTES;

const MAGIC = 0x50494357;
const VERSION = 1;
const KIND_AT = 14;
const KIND_SEGMENT = 1;
const KIND_TOMBSTONE = 2;
const CHECKED_FROM = 8;

/** What a header says besides its kind and length. */
export interface SegmentMarks {
  readonly registration: RegistrationName;
  readonly number: number;
  /** Highest number already trimmable; 0 where none. */
  readonly trimPoint: number;
  /** Highest number known durable with all below it; 0 where none. */
  readonly durableNumber: number;
}

export interface DecodedSegment extends SegmentMarks {
  /** Of the stored bytes; equal checksums mean the same segment. */
  readonly checksum: bigint;
  /** A view of the entries; empty for a tombstone. */
  readonly body: Uint8Array;
  /** Who ended the log here; null for a segment. */
  readonly tombstoneBy: RegistrationName | null;
}

/** Leaves room for the header at the start of an empty writer; the body goes behind it. */
export function reserveSegmentHeader(out: ByteWriter): void {
  out.reserve(SEGMENT_HEADER_BYTES);
  out.length += SEGMENT_HEADER_BYTES;
}

/** Fills the reserved header in front of the body that is already in `bytes`. */
export function encodeSegmentHeader(bytes: Uint8Array, marks: SegmentMarks): void {
  writeHeader(bytes, KIND_SEGMENT, marks);
}

/** The whole tombstone that `takenBy` puts at `marks.number`. */
export function encodeTombstone(marks: SegmentMarks, takenBy: RegistrationName): Uint8Array {
  const bytes = new Uint8Array(TOMBSTONE_BYTES);
  const view = new DataView(bytes.buffer);
  view.setInt32(SEGMENT_HEADER_BYTES, takenBy.nodeId);
  view.setBigUint64(SEGMENT_HEADER_BYTES + 4, BigInt(takenBy.nodeEpoch));
  writeHeader(bytes, KIND_TOMBSTONE, marks);
  return bytes;
}

/** For bytes of our own making: whether they are a tombstone. Checks nothing else. */
export function isTombstone(bytes: Uint8Array): boolean {
  return bytes.length === TOMBSTONE_BYTES && bytes[KIND_AT] === KIND_TOMBSTONE;
}

/**
 * Checks and opens what a store holds under a number. Throws `corrupt` where a byte is wrong or the
 * segment belongs elsewhere, `incompatible` where a newer program wrote it.
 */
export function decodeSegment(bytes: Uint8Array, registration: RegistrationName, number: number): DecodedSegment {
  const where = describeSegment(registration, number);
  if (bytes.length < SEGMENT_HEADER_BYTES) throw damaged(where, number, `${bytes.length} bytes are no header`);
  const reader = new ByteReader(bytes, 0, bytes.length, where);
  const checksum = reader.bigU64();
  if (checksum !== checksum64(bytes.subarray(CHECKED_FROM))) throw damaged(where, number, "the checksum does not match");
  if (reader.u32() !== MAGIC) throw damaged(where, number, "not a WAL segment");
  const version = reader.u16();
  if (version !== VERSION) {
    throw new PicoError("incompatible", `${where} has format version ${version}, this program reads ${VERSION}; use a newer one`, {
      where,
    });
  }
  const kind = reader.u8();
  if (reader.u8() !== 0) throw damaged(where, number, "the reserved byte is set");
  const nodeId = reader.i32();
  const bodyBytes = reader.u32();
  const owner: RegistrationName = { nodeId, nodeEpoch: reader.u64() };
  const storedNumber = reader.u64();
  const trimPoint = reader.u64();
  const durableNumber = reader.u64();
  if (bodyBytes !== reader.remaining) throw damaged(where, number, `the body has ${reader.remaining} bytes instead of ${bodyBytes}`);
  if (!sameRegistration(owner, registration) || storedNumber !== number) {
    throw damaged(where, number, `it is ${describeSegment(owner, storedNumber)}`);
  }
  if (trimPoint >= number || durableNumber >= number) throw damaged(where, number, "its marks are not below its number");
  const marks = { registration: owner, number, trimPoint, durableNumber, checksum };
  if (kind === KIND_SEGMENT) return { ...marks, body: reader.bytes(bodyBytes), tombstoneBy: null };
  if (kind !== KIND_TOMBSTONE) throw damaged(where, number, `unknown kind ${kind}`);
  const tombstoneBy = { nodeId: reader.i32(), nodeEpoch: reader.u64() };
  reader.expectEnd();
  return { ...marks, body: bytes.subarray(bytes.length), tombstoneBy };
}

/** For messages: `WAL segment 7 of 1@1760000000000`. */
export function describeSegment(registration: RegistrationName, number: number): string {
  return `WAL segment ${number} of ${formatRegistration(registration)}`;
}

function damaged(where: string, number: number, what: string): PicoError {
  return new PicoError("corrupt", `${where} is damaged: ${what}`, { where, number });
}

function writeHeader(bytes: Uint8Array, kind: number, marks: SegmentMarks): void {
  if (bytes.length > SEGMENT_BYTES_MAX) {
    throw new PicoError("payload_too_large", `a WAL segment of ${bytes.length} bytes, the limit is ${SEGMENT_BYTES_MAX}`, {
      limit: SEGMENT_BYTES_MAX,
      size: bytes.length,
    });
  }
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  view.setUint32(8, MAGIC);
  view.setUint16(12, VERSION);
  view.setUint8(KIND_AT, kind);
  view.setUint8(15, 0);
  view.setInt32(16, marks.registration.nodeId);
  view.setUint32(20, bytes.length - SEGMENT_HEADER_BYTES);
  view.setBigUint64(24, BigInt(marks.registration.nodeEpoch));
  view.setBigUint64(32, BigInt(marks.number));
  view.setBigUint64(40, BigInt(marks.trimPoint));
  view.setBigUint64(48, BigInt(marks.durableNumber));
  view.setBigUint64(0, checksum64(bytes.subarray(CHECKED_FROM)));
}
