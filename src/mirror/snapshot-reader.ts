/** Reading a snapshot out of the mirror, whole and verified. */
import { PicoError } from "../lib/errors.ts";
import { RowSum } from "../metadata/state-hash.ts";
import type { SnapshotRow } from "../sql/sql-store.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { checksumOf, damaged, manifestKey, partKey } from "./mirror-object.ts";
import { decodeSnapshotManifest, decodeSnapshotPart, type SnapshotManifest } from "./mirrored-snapshot.ts";

/** Null where there is none. Throws `corrupt` or `incompatible`, and as the store does. */
export async function readSnapshotManifest(
  store: ObjectStore,
  clusterId: string,
  index: number,
): Promise<(SnapshotManifest & { readonly clusterIdentity: string }) | null> {
  const bytes = await store.read(manifestKey(clusterId, index));
  return bytes === null ? null : decodeSnapshotManifest(bytes, clusterId, index);
}

/**
 * The rows, a part at a time in memory. Throws `corrupt` where a part is missing or damaged, and behind the last
 * one where they do not add up to the manifest's number and sum: what was yielded must not be used then.
 */
export async function* mirroredRows(
  store: ObjectStore,
  clusterId: string,
  manifest: SnapshotManifest,
): AsyncGenerator<readonly SnapshotRow[]> {
  const { head, parts } = manifest;
  const sum = new RowSum();
  for (const [part, { bytes, checksum }] of parts.entries()) {
    const key = partKey(clusterId, head.index, part);
    const found = await store.read(key);
    if (found === null) throw new PicoError("corrupt", `${key} is missing, and its manifest names it`, { where: key });
    if (found.length !== bytes || checksumOf(found) !== checksum) throw damaged(key, "it is not the part that its manifest names");
    const rows = decodeSnapshotPart(found, clusterId, head.index, part);
    for (const row of rows) sum.add(row.key, row.value);
    yield rows;
  }
  if (sum.rowCount === head.rowCount && sum.rowSum === head.rowSum) return;
  throw damaged(manifestKey(clusterId, head.index), `${head.rowCount} rows expected, ${sum.rowCount} with another sum found`);
}

/** Reads everything back. Throws as `mirroredRows`, and where the manifest that is stored is another one. */
export async function verifyMirroredSnapshot(store: ObjectStore, clusterId: string, manifest: SnapshotManifest): Promise<void> {
  const { index, rowId, rowSum } = manifest.head;
  const stored = await readSnapshotManifest(store, clusterId, index);
  if (stored === null || stored.head.rowId !== rowId || stored.head.rowSum !== rowSum) {
    throw new PicoError("storage_failed", `${manifestKey(clusterId, index)} does not read back as it was written`, {});
  }
  for await (const _ of mirroredRows(store, clusterId, manifest)) {
    // The walk itself is the check.
  }
}
