/**
 * What a cluster leaves in its stores, and a database that is new, emptied or another one does not know. The one list
 * for who asks before a database is made (`missing-database.ts`) and for who compares one with its stores
 * (`database-witness.ts`). What else a cluster comes to store that outlives a start belongs here.
 */
import { markerPrefix } from "../engine/store-marker.ts";
import type { WalStore } from "../engine/wal-store.ts";
import { formatRegistration } from "../lib/registration.ts";
import { objectPrefix } from "../metadata/entries.ts";
import { mirrorPrefix } from "../mirror/mirror-object.ts";
import { listAll, type ObjectStore } from "../storage/object-store.ts";

export interface TracedStores {
  readonly store: Pick<ObjectStore, "description" | "list">;
  readonly wal: Pick<WalStore, "description" | "registrations">;
  readonly clusterId: string;
}

/**
 * Each gives the first of its kind in words, `s3://bucket holds picomq/data/…`, or null where there is none. Throws as
 * the stores do. In the order in which a refusal names them.
 */
export const STORED_TRACES = {
  /** What the database must reach: the highest one names a row of its log. */
  marker: (stores: TracedStores) => firstKey(stores, markerPrefix(stores.clusterId)),
  /** Its id comes from a command, so an empty database has none. */
  dataObject: (stores: TracedStores) => firstKey(stores, objectPrefix(stores.clusterId)),
  /** Of this database's log, or a node that mirrors is refused (`Mirror.check`). */
  mirror: (stores: TracedStores) => firstKey(stores, mirrorPrefix(stores.clusterId)),
  /** Registering comes before the first segment. */
  wal: async ({ wal }: TracedStores) => {
    const [registration] = await wal.registrations();
    return registration === undefined ? null : `${wal.description} holds the WAL of registration ${formatRegistration(registration)}`;
  },
} as const;

async function firstKey({ store }: TracedStores, prefix: string): Promise<string | null> {
  for await (const { key } of listAll(store, prefix, 1)) return `${store.description} holds ${key}`;
  return null;
}
