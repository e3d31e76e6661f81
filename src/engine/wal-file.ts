/**
 * The stored format of the files of a local-disk WAL, and their names.
 *
 * A file is a header page, then frames, each beginning on a page of its own, so that a torn write of one
 * touches no page of another. A page has 4096 bytes; what no frame covers has no meaning.
 *
 * ```
 *  header page                            frame
 *  byte  size  field                      byte  size  field
 *     0     8  checksum64 of [8, 48)         0     8  checksum64 of [8, 48)
 *     8     4  magic "PICF"                  8     4  magic "PICR"
 *    12     2  version, 1                   12     2  version, 1
 *    14     2  reserved, 0                  14     2  reserved, 0
 *    16     4  node id, signed              16     4  node id, signed
 *    20     4  reserved, 0                  20     4  segment length in bytes
 *    24     8  node epoch                   24     8  node epoch
 *    32     8  file size in bytes           32     8  segment number
 *    40     8  salt                         40     8  salt of the file
 *                                           48     …  the segment
 * ```
 *
 * The salt is random and known to nobody outside: bytes that a client chose, lying at the start of a page
 * within a segment, never pass for a frame, nor do frames of an earlier use of the file. A file is
 * therefore scanned page by page, all of it, whatever lies between.
 *
 * A damaged header page hides nothing either: the first frame, always on the second page, has the salt
 * too. A file is used again only when all its segments are trimmed, and only behind a synced header with
 * another salt; should the sync of that header tear it, the first frame reveals trimmed segments at worst.
 */
import { ByteReader } from "../lib/bytes.ts";
import { checksum64 } from "../lib/checksum.ts";
import { PicoError } from "../lib/errors.ts";
import { MIB } from "../lib/limits.ts";
import { formatRegistration, type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { LocalFile } from "../storage/local-directory.ts";

export const WAL_PAGE_BYTES = 4096;
export const FRAME_HEADER_BYTES = 48;
const FILE_MAGIC = 0x50494346;
const FRAME_MAGIC = 0x50494352;
const VERSION = 1;
const CHECKED_FROM = 8;
const SCAN_BYTES = MIB;

export type WalFileName =
  | { readonly kind: "frames"; readonly registration: RegistrationName; readonly fileNumber: number }
  | { readonly kind: "tombstone"; readonly registration: RegistrationName; readonly number: number };

/** Where a segment lies in its file. */
export interface FramePlace {
  readonly number: number;
  /** Of the segment's first byte. */
  readonly position: number;
  readonly length: number;
}

/** `1-1760000000000-3.wal` holds frames; `1-1760000000000-42.end` is the tombstone at number 42. */
export function formatWalFileName(name: WalFileName): string {
  const { nodeId, nodeEpoch } = name.registration;
  return name.kind === "frames" ? `${nodeId}-${nodeEpoch}-${name.fileNumber}.wal` : `${nodeId}-${nodeEpoch}-${name.number}.end`;
}

/** Null for a file that is not the WAL's. */
export function parseWalFileName(text: string): WalFileName | null {
  const match = /^(-?\d+)-(\d+)-(\d+)\.(wal|end)$/.exec(text);
  if (match === null) return null;
  const registration = { nodeId: Number(match[1]), nodeEpoch: Number(match[2]) };
  const last = Number(match[3]);
  const name: WalFileName =
    match[4] === "wal" ? { kind: "frames", registration, fileNumber: last } : { kind: "tombstone", registration, number: last };
  return formatWalFileName(name) === text ? name : null;
}

/** Bytes that a segment of `length` takes in a file, whole pages. */
export function frameBytes(length: number): number {
  return Math.ceil((FRAME_HEADER_BYTES + length) / WAL_PAGE_BYTES) * WAL_PAGE_BYTES;
}

export function encodeFileHeader(registration: RegistrationName, sizeBytes: number, salt: bigint): Uint8Array {
  const page = new Uint8Array(WAL_PAGE_BYTES);
  writeFields(page, { magic: FILE_MAGIC, registration, length: 0, number: sizeBytes, salt });
  return page;
}

/** Fills the first `FRAME_HEADER_BYTES` of `header`. */
export function encodeFrameHeader(header: Uint8Array, registration: RegistrationName, number: number, length: number, salt: bigint): void {
  writeFields(header, { magic: FRAME_MAGIC, registration, length, number, salt });
}

/**
 * Every frame of the file, in the order of the file. Whether the segment in a frame is whole is not
 * checked. Throws `corrupt` where the file's salt is lost, `incompatible` for a newer format.
 */
export async function scanWalFile(file: LocalFile, path: string, registration: RegistrationName): Promise<readonly FramePlace[]> {
  const places: FramePlace[] = [];
  let salt: bigint | null = null;
  const buffer = new Uint8Array(Math.min(SCAN_BYTES, file.sizeBytes));
  for (let from = 0; from < file.sizeBytes; from += SCAN_BYTES) {
    const chunk = await file.read(from, SCAN_BYTES, buffer);
    if (from === 0) {
      salt = findSalt(chunk, path, registration);
      if (salt === null) return places;
    }
    const view = new DataView(chunk.buffer, chunk.byteOffset, chunk.length);
    for (let at = 0; at + FRAME_HEADER_BYTES <= chunk.length; at += WAL_PAGE_BYTES) {
      if (view.getUint32(at + 8) !== FRAME_MAGIC || view.getBigUint64(at + 40) !== salt) continue;
      const fields = readFields(chunk, at, FRAME_MAGIC, path);
      if (fields === null || !sameRegistration(fields.registration, registration)) continue;
      places.push({ number: fields.number, position: from + at + FRAME_HEADER_BYTES, length: fields.length });
    }
  }
  return places;
}

/** The salt of the file's present use; null where it was never used. */
function findSalt(chunk: Uint8Array, path: string, registration: RegistrationName): bigint | null {
  const header = readFields(chunk, 0, FILE_MAGIC, path);
  const first = readFields(chunk, WAL_PAGE_BYTES, FRAME_MAGIC, path);
  const fields = header ?? first;
  if (fields === null) {
    // A crash between creating a file and its first sync leaves this; no frame is written before that sync.
    if (chunk.subarray(WAL_PAGE_BYTES, 2 * WAL_PAGE_BYTES).every((byte) => byte === 0)) return null;
    throw new PicoError("corrupt", `${path} is damaged: neither its header nor its first frame is readable`, { where: path });
  }
  if (!sameRegistration(fields.registration, registration)) {
    throw new PicoError("corrupt", `${path} holds the WAL of ${formatRegistration(fields.registration)}`, { where: path });
  }
  return fields.salt;
}

interface HeaderFields {
  readonly magic: number;
  readonly registration: RegistrationName;
  readonly length: number;
  readonly number: number;
  readonly salt: bigint;
}

/** Null where the bytes are not an intact header of this kind. */
function readFields(bytes: Uint8Array, at: number, magic: number, path: string): HeaderFields | null {
  if (bytes.length - at < FRAME_HEADER_BYTES) return null;
  const reader = new ByteReader(bytes, at, at + FRAME_HEADER_BYTES, path);
  const checksum = reader.bigU64();
  if (checksum !== checksum64(bytes.subarray(at + CHECKED_FROM, at + FRAME_HEADER_BYTES)) || reader.u32() !== magic) return null;
  const version = reader.u16();
  if (version !== VERSION) {
    throw new PicoError("incompatible", `${path} has format version ${version}, this program reads ${VERSION}; use a newer one`, {
      where: path,
    });
  }
  if (reader.u16() !== 0) return null;
  const nodeId = reader.i32();
  const length = reader.u32();
  const registration = { nodeId, nodeEpoch: reader.u64() };
  return { magic, registration, length, number: reader.u64(), salt: reader.bigU64() };
}

function writeFields(bytes: Uint8Array, fields: HeaderFields): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  view.setUint32(8, fields.magic);
  view.setUint16(12, VERSION);
  view.setUint16(14, 0);
  view.setInt32(16, fields.registration.nodeId);
  view.setUint32(20, fields.length);
  view.setBigUint64(24, BigInt(fields.registration.nodeEpoch));
  view.setBigUint64(32, BigInt(fields.number));
  view.setBigUint64(40, fields.salt);
  view.setBigUint64(0, checksum64(bytes.subarray(CHECKED_FROM, FRAME_HEADER_BYTES)));
}
