/** A restored state held against the objects of its store: the marker, and every data object that it names. */
import { highestMarker } from "../engine/store-marker.ts";
import { PicoError } from "../lib/errors.ts";
import { formatCount } from "../lib/format-count.ts";
import { RESTORE_ITEMS_MAX } from "../lib/limits.ts";
import { objectKey, objectPrefix, parseObjectKey } from "../metadata/entries.ts";
import { mirrorPrefix } from "../mirror/mirror-object.ts";
import { listAll } from "../storage/object-store.ts";
import type { RestoreOptions } from "./restore-options.ts";
import type { RestoredLog } from "./restored-log.ts";

export interface ObjectFindings {
  /** Live ones that are there, whole by their size. */
  readonly found: number;
  /** In the store, and not known to the state. */
  readonly orphanCount: number;
  readonly orphanBytes: number;
  readonly objectIdMax: number;
  readonly losses: readonly string[];
}

/**
 * What was deleted from the store was deleted on the word of a command that the mirror had: a higher marker is damage.
 * Throws `corrupt` for one, and as `highestMarker`.
 */
export async function assertMarkerReached({ store, clusterId }: RestoreOptions, { sql, metadata }: RestoredLog): Promise<void> {
  const { view, clusterIdentity } = metadata;
  const marker = await highestMarker(store, clusterId);
  if (marker === null) return;
  const { index } = marker;
  const rowId = index <= view.appliedIndex ? await sql.rowIdAt(index) : null;
  const isOurs = marker.clusterIdentity === clusterIdentity && (rowId === null || rowId === marker.rowId);
  if (index <= view.appliedIndex && isOurs) return;
  throw new PicoError(
    "corrupt",
    `not restored: a marker in ${store.description} says that the log of ${marker.clusterIdentity} once reached ${index}, and the mirror of ${clusterIdentity} ends at ${view.appliedIndex}: ` +
      "objects of the mirror are missing or another cluster's; bring them back (older versions of a bucket have them) and restore again",
    { where: mirrorPrefix(clusterId), marker: index, index: view.appliedIndex },
  );
}

/** Live objects must be in the store, whole by their size. */
export async function compareObjects(options: RestoreOptions, { metadata }: RestoredLog): Promise<ObjectFindings> {
  const { store, clusterId, onProgress } = options;
  const { view } = metadata;
  const missing = new Map<string, number>();
  for (const entry of view.objects()) if (entry.state === "live") missing.set(objectKey(clusterId, entry), entry.summary?.sizeBytes ?? 0);
  const wanted = missing.size;
  const result = { orphanCount: 0, orphanBytes: 0, objectIdMax: 0 };
  let seen = 0;
  for await (const { key, sizeBytes } of listAll(store, objectPrefix(clusterId))) {
    onProgress({ step: "objects", done: ++seen });
    // What is no key of ours is nobody's id either: those that are given out from here on lie above the highest.
    const named = parseObjectKey(clusterId, key);
    if (named === null) continue;
    const { objectId } = named;
    result.objectIdMax = Math.max(result.objectIdMax, objectId);
    if (missing.get(key) === sizeBytes) missing.delete(key);
    const entry = view.object(objectId);
    if (entry !== null && objectKey(clusterId, entry) === key) continue;
    result.orphanCount += 1;
    result.orphanBytes += sizeBytes;
  }
  const named = [...missing.keys()].slice(0, RESTORE_ITEMS_MAX).join(", ");
  const loss = `missing or cut short in ${store.description}, of what the state names: ${formatCount(missing.size, "data object")}: ${named}`;
  return { ...result, found: wanted - missing.size, losses: missing.size === 0 ? [] : [loss] };
}
