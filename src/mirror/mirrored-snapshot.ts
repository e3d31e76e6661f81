/**
 * A snapshot in the mirror: parts with its rows, and a manifest, written last, that vouches for them. Behind the
 * head that all objects of the mirror have (`mirror-object.ts`):
 *
 *     part      u64 index, varint number of the part from 0, varint count of rows, rows: text key, varint length
 *               and value
 *     manifest  u64 index, 16 row id at the index, varint count of rows, u64 their sum, varint count of parts,
 *               for each: varint bytes, u64 the checksum that it begins with
 */
import type { SnapshotHead, SnapshotRow } from "../sql/sql-store.ts";
import {
  beginMirrorObject,
  damaged,
  type MirroredCluster,
  manifestKey,
  openMirrorObject,
  partKey,
  sealMirrorObject,
} from "./mirror-object.ts";

export interface SnapshotManifest {
  readonly head: SnapshotHead;
  readonly parts: readonly { readonly bytes: number; readonly checksum: bigint }[];
}

export function encodeSnapshotPart(cluster: MirroredCluster, index: number, part: number, rows: readonly SnapshotRow[]): Uint8Array {
  const out = beginMirrorObject("part", cluster);
  out.u64(index);
  out.varint(part);
  out.varint(rows.length);
  for (const { key, value } of rows) {
    out.text(key);
    out.lengthPrefixed(value);
  }
  return sealMirrorObject(out);
}

/** Errors as of `openMirrorObject`. */
export function decodeSnapshotPart(bytes: Uint8Array, clusterId: string, index: number, part: number): readonly SnapshotRow[] {
  const key = partKey(clusterId, index, part);
  const { reader } = openMirrorObject(bytes, "part", clusterId, key);
  if (reader.u64() !== index || reader.varint() !== part) throw damaged(key, "it is another part");
  const count = reader.varint();
  if (count > reader.remaining) throw damaged(key, `it has ${count} rows`);
  const rows: SnapshotRow[] = [];
  for (let at = 0; at < count; at++) rows.push({ key: reader.text(), value: reader.lengthPrefixed().slice() });
  reader.expectEnd();
  return rows;
}

export function encodeSnapshotManifest(cluster: MirroredCluster, { head, parts }: SnapshotManifest): Uint8Array {
  const out = beginMirrorObject("manifest", cluster);
  out.u64(head.index);
  out.bytes(Uint8Array.fromHex(head.rowId));
  out.varint(head.rowCount);
  out.bigU64(head.rowSum);
  out.varint(parts.length);
  for (const { bytes, checksum } of parts) {
    out.varint(bytes);
    out.bigU64(checksum);
  }
  return sealMirrorObject(out);
}

/** Errors as of `openMirrorObject`. */
export function decodeSnapshotManifest(
  bytes: Uint8Array,
  clusterId: string,
  index: number,
): SnapshotManifest & { readonly clusterIdentity: string } {
  const key = manifestKey(clusterId, index);
  const { reader, clusterIdentity } = openMirrorObject(bytes, "manifest", clusterId, key);
  if (reader.u64() !== index) throw damaged(key, "it is of another index");
  const head = { index, rowId: reader.bytes(16).toHex(), rowCount: reader.varint(), rowSum: reader.bigU64() };
  const count = reader.varint();
  if (count > reader.remaining) throw damaged(key, `it has ${count} parts`);
  const parts = Array.from({ length: count }, () => ({ bytes: reader.varint(), checksum: reader.bigU64() }));
  reader.expectEnd();
  return { head, parts, clusterIdentity };
}
