/**
 * What all objects of the mirror begin with, and the keys that they have.
 *
 *     u64     checksum64 of everything behind it
 *     u32     magic "PICX"
 *     u16     version, 1
 *     u8      kind: 1 chunk of the log, 2 part of a snapshot, 3 manifest of a snapshot
 *     u8      0
 *     16      cluster identity, chosen when the database was made
 *     text    cluster id
 *             the body, by kind (`log-chunk.ts`, `mirrored-snapshot.ts`)
 *
 * | key | what |
 * | --- | --- |
 * | `<cluster>/mirror/log/<first index>[.<n>]` | rows of the log; `.<n>` in place of one that reads back damaged |
 * | `<cluster>/mirror/snapshot/<index>/<part>` | rows of a snapshot |
 * | `<cluster>/mirror/snapshot/<index>/manifest` | written last: the snapshot is complete |
 *
 * Indexes have 16 digits, so that the order of keys is that of the log. Each object is created once and never
 * written again.
 */
import { ByteReader, ByteWriter } from "../lib/bytes.ts";
import { CHECKSUM_BYTES, checksum64 } from "../lib/checksum.ts";
import { PicoError } from "../lib/errors.ts";

/** Whose log is mirrored. */
export interface MirroredCluster {
  /** First segment of all keys. */
  readonly clusterId: string;
  /** 32 hex digits. */
  readonly clusterIdentity: string;
}

export type MirrorObjectKind = "log" | "part" | "manifest";

const MAGIC = 0x50494358;
const VERSION = 1;
const KIND_NUMBERS: Readonly<Record<MirrorObjectKind, number>> = { log: 1, part: 2, manifest: 3 };
const INDEX_DIGITS = 16;
const PART_DIGITS = 6;
const MANIFEST_NAME = "manifest";

export function mirrorPrefix(clusterId: string): string {
  return `${clusterId}/mirror/`;
}

export function logPrefix(clusterId: string): string {
  return `${mirrorPrefix(clusterId)}log/`;
}

export function snapshotPrefix(clusterId: string): string {
  return `${mirrorPrefix(clusterId)}snapshot/`;
}

export function formatIndex(index: number): string {
  return String(index).padStart(INDEX_DIGITS, "0");
}

/** `repair`: 0 for the first object of these rows. */
export function logKey(clusterId: string, first: number, repair = 0): string {
  return `${logPrefix(clusterId)}${formatIndex(first)}${repair === 0 ? "" : `.${repair}`}`;
}

/** Null for a key that is not ours. */
export function parseLogKey(clusterId: string, key: string): { readonly first: number; readonly repair: number } | null {
  const match = /^(\d{16})(?:\.([1-9]))?$/.exec(key.slice(logPrefix(clusterId).length));
  return match === null ? null : { first: Number(match[1]), repair: Number(match[2] ?? 0) };
}

export function partKey(clusterId: string, index: number, part: number): string {
  return `${snapshotPrefix(clusterId)}${formatIndex(index)}/${String(part).padStart(PART_DIGITS, "0")}`;
}

export function manifestKey(clusterId: string, index: number): string {
  return `${snapshotPrefix(clusterId)}${formatIndex(index)}/${MANIFEST_NAME}`;
}

/** Null for a key that is not ours. */
export function parseSnapshotKey(clusterId: string, key: string): { readonly index: number; readonly isManifest: boolean } | null {
  const match = /^(\d{16})\/(\d{6}|manifest)$/.exec(key.slice(snapshotPrefix(clusterId).length));
  return match === null ? null : { index: Number(match[1]), isManifest: match[2] === MANIFEST_NAME };
}

/** A writer behind the head; `sealMirrorObject` ends it. */
export function beginMirrorObject(kind: MirrorObjectKind, { clusterId, clusterIdentity }: MirroredCluster): ByteWriter {
  const out = new ByteWriter(4096);
  out.bigU64(0n);
  out.u32(MAGIC);
  out.u16(VERSION);
  out.u8(KIND_NUMBERS[kind]);
  out.u8(0);
  out.bytes(Uint8Array.fromHex(clusterIdentity));
  out.text(clusterId);
  return out;
}

export function sealMirrorObject(out: ByteWriter): Uint8Array {
  out.patchBigU64(0, checksum64(out.written().subarray(CHECKSUM_BYTES)));
  return out.copy();
}

/** The checksum that an object begins with. */
export function checksumOf(object: Uint8Array): bigint {
  return new ByteReader(object, 0, object.length, "mirror object").bigU64();
}

/**
 * The body of an object, and whose it is. Throws `corrupt` where a byte is wrong or it is of another kind or
 * cluster id, `incompatible` where a newer program wrote it. `key` is for messages.
 */
export function openMirrorObject(
  bytes: Uint8Array,
  kind: MirrorObjectKind,
  clusterId: string,
  key: string,
): { readonly reader: ByteReader; readonly clusterIdentity: string } {
  const reader = new ByteReader(bytes, 0, bytes.length, key);
  if (reader.bigU64() !== checksum64(bytes.subarray(CHECKSUM_BYTES))) throw damaged(key, "its checksum does not match");
  if (reader.u32() !== MAGIC) throw damaged(key, "it is no object of a mirror");
  const version = reader.u16();
  if (version !== VERSION) {
    throw new PicoError("incompatible", `${key} has version ${version}, this program reads up to ${VERSION}; run a newer one`, { version });
  }
  if (reader.u8() !== KIND_NUMBERS[kind]) throw damaged(key, "it is of another kind");
  reader.u8();
  const clusterIdentity = reader.bytes(16).toHex();
  if (reader.text() !== clusterId) throw damaged(key, "it is of another cluster");
  return { reader, clusterIdentity };
}

export function damaged(key: string, what: string): PicoError {
  return new PicoError("corrupt", `${key} is damaged: ${what}`, { where: key });
}
