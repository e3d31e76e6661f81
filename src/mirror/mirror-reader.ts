/** What a mirror holds, for a restore: its snapshots, and the log behind one of them, verified row by row. */
import { isPicoError } from "../lib/errors.ts";
import { MIRROR_READS_MAX } from "../lib/limits.ts";
import { mapConcurrently } from "../lib/map-concurrently.ts";
import type { LogRow } from "../sql/sql-store.ts";
import { listAll, type ObjectStore } from "../storage/object-store.ts";
import { decodeLogChunk, type LogChunk } from "./log-chunk.ts";
import { logPrefix, parseLogKey, parseSnapshotKey, snapshotPrefix } from "./mirror-object.ts";

interface MirroredChunk {
  readonly key: string;
  readonly first: number;
  readonly repair: number;
}

export interface MirrorContents {
  /** Indexes of snapshots that have a manifest, the newest first. */
  readonly snapshots: readonly number[];
  /** By their first rows, ascending. */
  readonly chunks: readonly MirroredChunk[];
}

export interface DamagedChunk {
  readonly first: number;
  readonly reason: string;
}

/** The log as far as it goes without a gap. */
export interface MirroredLogEnd {
  /** Index of the last row that was handed over; one below the asked one where there was none. */
  readonly lastIndex: number;
  /** Chunks that cannot be read, by the first row of each; what they held may be in others. */
  readonly damage: readonly DamagedChunk[];
  /** First row of a chunk behind the end: what lies between is missing. Null: the log ends there. */
  readonly resumesAt: number | null;
}

export async function findMirror(store: ObjectStore, clusterId: string): Promise<MirrorContents> {
  const snapshots: number[] = [];
  for await (const { key } of listAll(store, snapshotPrefix(clusterId))) {
    const name = parseSnapshotKey(clusterId, key);
    if (name?.isManifest) snapshots.push(name.index);
  }
  const chunks: MirroredChunk[] = [];
  for await (const { key } of listAll(store, logPrefix(clusterId))) {
    const name = parseLogKey(clusterId, key);
    if (name !== null) chunks.push({ key, ...name });
  }
  snapshots.sort((left, right) => right - left);
  chunks.sort((left, right) => left.first - right.first || left.repair - right.repair);
  return { snapshots, chunks };
}

/**
 * Hands over the rows from index `from` on, in order and without a gap, some thousands at a time. Chunks may overlap:
 * rows are immutable. Throws `incompatible`, and as the store does.
 */
export async function readMirroredLog(
  store: ObjectStore,
  clusterId: string,
  chunks: readonly MirroredChunk[],
  from: number,
  onRows: (rows: readonly LogRow[], clusterIdentity: string) => Promise<void>,
): Promise<MirroredLogEnd> {
  const start = chunks.findLast(({ first }) => first <= from)?.first ?? from;
  const wanted = chunks.filter(({ first }) => first >= start);
  const damage: DamagedChunk[] = [];
  let next = from;
  for (let at = 0; at < wanted.length; at += MIRROR_READS_MAX) {
    const read = await mapConcurrently(wanted.slice(at, at + MIRROR_READS_MAX), MIRROR_READS_MAX, (chunk) =>
      readChunk(store, clusterId, chunk),
    );
    for (const chunk of read) {
      if ("reason" in chunk) {
        damage.push(chunk);
        continue;
      }
      const rows = chunk.rows.filter(({ index }) => index >= next);
      if (rows.length === 0) continue;
      if ((rows[0]?.index ?? 0) > next) return { lastIndex: next - 1, damage, resumesAt: rows[0]?.index ?? null };
      await onRows(rows, chunk.clusterIdentity);
      next += rows.length;
    }
  }
  return { lastIndex: next - 1, damage, resumesAt: null };
}

async function readChunk(
  store: ObjectStore,
  clusterId: string,
  { key, first }: MirroredChunk,
): Promise<(LogChunk & { readonly clusterIdentity: string }) | DamagedChunk> {
  const bytes = await store.read(key);
  if (bytes === null) return { first, reason: `${key} is listed and missing` };
  try {
    return decodeLogChunk(bytes, clusterId, first, key);
  } catch (error) {
    if (isPicoError(error, "corrupt")) return { first, reason: error.message };
    throw error;
  }
}
