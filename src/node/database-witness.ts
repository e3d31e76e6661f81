/**
 * Proof, before a node changes anything, that its database is not older than what the stores hold. An
 * emptied, restored or mistaken database knows neither the records that were acknowledged since nor their
 * streams: it would answer for them that they never were, and use their numbers again (FAULTS L2, D1).
 *
 * Registering comes before the first byte of a WAL, and preparing comes before a data object. So a
 * registration that has left a WAL is known, and an empty database has no objects beside it.
 */
import type { WalStore } from "../engine/wal-store.ts";
import { PicoError } from "../lib/errors.ts";
import { formatRegistration } from "../lib/registration.ts";
import type { Metadata } from "../metadata/metadata.ts";
import { listAll, type ObjectStore } from "../storage/object-store.ts";

export interface StoresOfCluster {
  readonly metadata: Metadata;
  readonly wal: WalStore;
  readonly store: ObjectStore;
  readonly clusterId: string;
}

/** Throws `corrupt`, naming what the database does not know; and as the stores do. Writes nothing. */
export async function assertDatabaseKnowsStores({ metadata, wal, store, clusterId }: StoresOfCluster): Promise<void> {
  // Listed first: what another node registers meanwhile is then known below.
  const registrations = await wal.registrations();
  const object = await firstObject(store, clusterId);
  await metadata.catchUp();
  const { view } = metadata;
  const unknown = registrations.find(({ nodeId, nodeEpoch }) => nodeEpoch > (view.node(nodeId)?.lastEpoch ?? -1));
  if (unknown !== undefined)
    throw mismatch(`it does not know the registration ${formatRegistration(unknown)}, whose WAL is in ${wal.description}`);
  if (view.appliedIndex === 0 && object !== null) throw mismatch(`it is empty, and ${store.description} holds ${object}`);
}

async function firstObject(store: ObjectStore, clusterId: string): Promise<string | null> {
  for await (const { key } of listAll(store, `${clusterId}/data/`, 1)) return key;
  return null;
}

function mismatch(what: string): PicoError {
  return new PicoError("corrupt", `the database is older than what is stored, or another one: ${what}; restore the newest database`, {
    where: "the database",
  });
}
