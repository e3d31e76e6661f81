/**
 * A chunk of the mirrored log: consecutive rows, with all that it takes to insert them again. Behind the head
 * that all objects of the mirror have (`mirror-object.ts`):
 *
 *     u64     index of the first row
 *     u64     index that the mirror's unbroken log began with when this was written: 1, or where a truncated log
 *             could be taken up again
 *     varint  count of rows, at least 1
 *     rows    varint time in ms, 16 row id, i32 node id, varint node epoch, varint batch, varint length and payload
 */
import type { LogRow } from "../sql/sql-store.ts";
import { beginMirrorObject, damaged, logKey, type MirroredCluster, openMirrorObject, sealMirrorObject } from "./mirror-object.ts";

export interface LogChunk {
  /** Ascending without gaps; at least one. */
  readonly rows: readonly LogRow[];
  /** From here on the mirror holds every row up to the last one of this chunk. */
  readonly unbrokenFrom: number;
}

export function encodeLogChunk(cluster: MirroredCluster, { rows, unbrokenFrom }: LogChunk): Uint8Array {
  const out = beginMirrorObject("log", cluster);
  out.u64(rows[0]?.index ?? 0);
  out.u64(unbrokenFrom);
  out.varint(rows.length);
  for (const row of rows) {
    out.varint(row.atMs);
    out.bytes(Uint8Array.fromHex(row.rowId));
    out.i32(row.proposer.nodeId);
    out.varint(row.proposer.nodeEpoch);
    out.varint(row.batch);
    out.lengthPrefixed(row.payload);
  }
  return sealMirrorObject(out);
}

/** Errors as of `openMirrorObject`. */
export function decodeLogChunk(
  bytes: Uint8Array,
  clusterId: string,
  first: number,
  key = logKey(clusterId, first),
): LogChunk & { readonly clusterIdentity: string } {
  const { reader, clusterIdentity } = openMirrorObject(bytes, "log", clusterId, key);
  if (reader.u64() !== first) throw damaged(key, "it begins with another row than its key says");
  const unbrokenFrom = reader.u64();
  const count = reader.varint();
  if (count === 0 || count > reader.remaining) throw damaged(key, `it has ${count} rows`);
  const rows: LogRow[] = [];
  for (let at = 0; at < count; at++) {
    rows.push({
      index: first + at,
      atMs: reader.varint(),
      rowId: reader.bytes(16).toHex(),
      proposer: { nodeId: reader.i32(), nodeEpoch: reader.varint() },
      batch: reader.varint(),
      payload: reader.lengthPrefixed().slice(),
    });
  }
  reader.expectEnd();
  return { rows, unbrokenFrom, clusterIdentity };
}
