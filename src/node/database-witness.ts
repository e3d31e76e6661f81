/**
 * Proof, before a node changes anything, that its database and its stores belong together.
 *
 * An emptied, restored or mistaken database knows neither the records that were acknowledged since nor their
 * streams: it would answer for them that they never were, and use their numbers again (FAULTS L2, D1).
 * Registering comes before the first byte of a WAL, and preparing comes before a data object. So a
 * registration that has left a WAL is known, and an empty database has no objects beside it.
 *
 * The highest marker in the store says how far the log once was, and under which row id (`engine/store-marker.ts`).
 * Whatever was deleted was deleted behind a marker, so a log that lacks what the marker names is not started on.
 *
 * An emptied or mistaken store is as bad: a WAL without segments looks like one whose writer died before its
 * first, so the records in the real one would be given up without a word, and new data would go beside the old.
 * A life on local disk keeps files in its WAL from before its first entry until its end, and a live object stays.
 * A WAL elsewhere leaves nothing before its first entry; but its registration says where it is. So a life that has
 * not ended is given up only from the place that it names, or from one that has something of it.
 */
import { highestMarker, markerKey } from "../engine/store-marker.ts";
import type { WalStore } from "../engine/wal-store.ts";
import { PicoError } from "../lib/errors.ts";
import { formatRegistration, type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { RegistrationEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { View } from "../metadata/view.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { STORED_TRACES } from "./stored-traces.ts";

export interface StoresOfCluster {
  readonly metadata: Metadata;
  readonly wal: WalStore;
  readonly store: ObjectStore;
  readonly clusterId: string;
  /** Of the database, 32 hex digits. */
  readonly clusterIdentity: string;
  /** The row id in the command log, or null where the row is truncated or was never there. */
  readonly rowIdAt: (index: number) => Promise<string | null>;
  /** Whose WAL is meant to be here. */
  readonly nodeId: number;
}

/** Throws `corrupt`, naming what the one knows and the other does not; and as the stores do. Writes nothing. */
export async function assertDatabaseFitsStores(cluster: StoresOfCluster): Promise<void> {
  const { metadata, wal, store, clusterId, nodeId } = cluster;
  await assertLogReachesMarker(cluster);
  // Listed first: what another node registers meanwhile is then known below.
  const registrations = await wal.registrations();
  const object = await STORED_TRACES.dataObject(cluster);
  await metadata.catchUp();
  const { view } = metadata;
  const unknown = registrations.find(({ nodeId, nodeEpoch }) => nodeEpoch > (view.node(nodeId)?.lastEpoch ?? -1));
  if (unknown !== undefined)
    throw mismatch(`it does not know the registration ${formatRegistration(unknown)}, whose WAL is in ${wal.description}`);
  if (view.appliedIndex === 0 && object !== null) throw mismatch(`it is empty, and ${object}`);
  if (wal.kind === "local") {
    const absent = walWithoutFiles(view, nodeId, registrations);
    if (absent !== null) throw missingWal(absent, wal.description);
  }
  const elsewhere = walElsewhere(view, nodeId, wal, registrations);
  if (elsewhere !== null) throw otherWal(elsewhere, wal);
  // Listed again: the first object of all may have come meanwhile.
  if (object === null && hasLiveObject(view) && (await STORED_TRACES.dataObject(cluster)) === null) {
    throw new PicoError(
      "corrupt",
      `the database knows data objects, and ${store.description} has none of cluster ${clusterId}; name the node's own with --data-dir, --storage and --cluster-id, or restore a backup`,
      { where: "the data objects" },
    );
  }
}

/** Nothing is deleted before a marker is stored, and nobody writes a marker above what was applied: the log must hold what it names. */
async function assertLogReachesMarker({ metadata, store, clusterId, clusterIdentity, rowIdAt }: StoresOfCluster): Promise<void> {
  const marker = await highestMarker(store, clusterId);
  if (marker === null) return;
  const says = `${markerKey(clusterId, marker.index)} in ${store.description}`;
  if (marker.clusterIdentity !== clusterIdentity)
    throw mismatch(`its identity is ${clusterIdentity}, and ${says} is of database ${marker.clusterIdentity}`);
  await metadata.catchUp();
  const { appliedIndex } = metadata.view;
  if (appliedIndex < marker.index)
    throw mismatch(`its command log ends at ${appliedIndex}, and ${says} says that it had ${marker.index} rows`);
  const rowId = await rowIdAt(marker.index);
  if (rowId !== null && rowId !== marker.rowId)
    throw mismatch(`row ${marker.index} of its command log is ${rowId}, and ${says} says that it was ${marker.rowId}`);
}

/**
 * A life of the node that has not ended, whose WAL was another one than `wal`, and of which nothing is in `wal`:
 * from here it would look as if it had written nothing. One that was moved as a whole has something here.
 */
function walElsewhere(view: View, nodeId: number, wal: WalStore, present: readonly RegistrationName[]): RegistrationEntry | null {
  for (const entry of view.registrations()) {
    const { name, state } = entry;
    if (name.nodeId !== nodeId || state === "ended" || present.some((other) => sameRegistration(other, name))) continue;
    if (!namesPlace(entry, wal)) return entry;
  }
  return null;
}

/** Whether the life wrote its WAL here, by the name that this place has today. */
export function namesPlace({ wal: { kind, description } }: RegistrationEntry, wal: WalStore): boolean {
  return kind === wal.kind && description === wal.description;
}

/** A life of the node that has not ended, has surely written a WAL, and has nothing here. */
function walWithoutFiles(view: View, nodeId: number, present: readonly RegistrationName[]): RegistrationEntry | null {
  for (const entry of view.registrations()) {
    const { name, state } = entry;
    if (name.nodeId !== nodeId || state === "ended" || present.some((other) => sameRegistration(other, name))) continue;
    if (hasSurelyWritten(entry)) return entry;
  }
  return null;
}

/**
 * A part of its WAL is uploaded. Before its first upload a life looks like one that died before the first file,
 * or that never had room for it: also such a one may own streams.
 */
export function hasSurelyWritten({ committedNumber }: RegistrationEntry): boolean {
  return committedNumber > 0;
}

function hasLiveObject(view: View): boolean {
  for (const { state } of view.objects()) if (state === "live") return true;
  return false;
}

/** For a life on local disk that has written, and of whose WAL there is no file at `place`. */
export function missingWal({ name, wal }: RegistrationEntry, place: string): PicoError {
  const where = `WAL ${formatRegistration(name)}`;
  return new PicoError(
    "corrupt",
    `${where} may hold acknowledged records, and ${place} has nothing of it (it was written to ${wal.description}); name the node's own places with --data-dir, --storage and --wal, or restore a backup`,
    { where },
  );
}

function otherWal({ name, wal }: RegistrationEntry, { description }: WalStore): PicoError {
  const where = `WAL ${formatRegistration(name)}`;
  return new PicoError(
    "corrupt",
    `${where} may hold acknowledged records: the last life of this node wrote it to ${wal.description} and was not ended, and ${description} has nothing of it. Start once with the former --wal and --storage and stop the node with SIGTERM; then change them. If that place is gone and this one is a copy of it: move the database away and make another with pico restore`,
    { where },
  );
}

function mismatch(what: string): PicoError {
  return new PicoError(
    "corrupt",
    `the database is older than what is stored, or another one: ${what}. Nothing was changed; restore the newest database, or name the right one with --meta-url and --cluster-id`,
    { where: "the database" },
  );
}
