/**
 * Proof, before a node changes anything, that its database and its stores belong together.
 *
 * An emptied, restored or mistaken database knows neither the records that were acknowledged since nor their
 * streams: it would answer for them that they never were, and use their numbers again (FAULTS L2, D1).
 * Registering comes before the first byte of a WAL, and preparing comes before a data object. So a
 * registration that has left a WAL is known, and an empty database has no objects beside it.
 *
 * An emptied or mistaken store is as bad: a WAL without segments looks like one whose writer died before its
 * first, so the records in the real one would be given up without a word, and new data would go beside the old.
 * A life on local disk keeps files in its WAL from before its first entry until its end, and a live object stays.
 */
import type { WalStore } from "../engine/wal-store.ts";
import { PicoError } from "../lib/errors.ts";
import { formatRegistration, type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { RegistrationEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { View } from "../metadata/view.ts";
import { listAll, type ObjectStore } from "../storage/object-store.ts";

export interface StoresOfCluster {
  readonly metadata: Metadata;
  readonly wal: WalStore;
  readonly store: ObjectStore;
  readonly clusterId: string;
  /** Whose WAL is meant to be here. */
  readonly nodeId: number;
}

/** Throws `corrupt`, naming what the one knows and the other does not; and as the stores do. Writes nothing. */
export async function assertDatabaseFitsStores({ metadata, wal, store, clusterId, nodeId }: StoresOfCluster): Promise<void> {
  // Listed first: what another node registers meanwhile is then known below.
  const registrations = await wal.registrations();
  const object = await firstObject(store, clusterId);
  await metadata.catchUp();
  const { view } = metadata;
  const unknown = registrations.find(({ nodeId, nodeEpoch }) => nodeEpoch > (view.node(nodeId)?.lastEpoch ?? -1));
  if (unknown !== undefined)
    throw mismatch(`it does not know the registration ${formatRegistration(unknown)}, whose WAL is in ${wal.description}`);
  if (view.appliedIndex === 0 && object !== null) throw mismatch(`it is empty, and ${store.description} holds ${object}`);
  if (wal.kind === "local") {
    const absent = walWithoutFiles(view, nodeId, registrations);
    if (absent !== null) throw missingWal(absent, wal.description);
  }
  // Listed again: the first object of all may have come meanwhile.
  if (object === null && hasLiveObject(view) && (await firstObject(store, clusterId)) === null) {
    throw new PicoError(
      "corrupt",
      `the database knows data objects, and ${store.description} has none of cluster ${clusterId}; name the node's own with --data-dir, --storage and --cluster-id, or restore a backup`,
      { where: "the data objects" },
    );
  }
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

async function firstObject(store: ObjectStore, clusterId: string): Promise<string | null> {
  for await (const { key } of listAll(store, `${clusterId}/data/`, 1)) return key;
  return null;
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

function mismatch(what: string): PicoError {
  return new PicoError("corrupt", `the database is older than what is stored, or another one: ${what}; restore the newest database`, {
    where: "the database",
  });
}
