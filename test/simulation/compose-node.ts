/** Builds a simulated node as the product is built, from `NodeCore`, over the simulated seams of its host. */

import type { WalStore } from "../../src/engine/wal-store.ts";
import { LocalDiskWal } from "../../src/engine/wal-store-local.ts";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { type ErrorCode, isPicoError } from "../../src/lib/errors.ts";
import { EXCLUSIVE_LIFE } from "../../src/node/life-lock.ts";
import { NodeCore, type NodeCoreComponents, type NodeCoreSettings } from "../../src/node/node-core.ts";
import type { BuiltNode, NodePlace } from "./build-node.ts";
import { CLUSTER_ID, type NodeFactory } from "./cluster.ts";
import { hastenSnapshots } from "./hasten-snapshots.ts";
import type { SimulationOptions } from "./options.ts";
import { ServiceLink } from "./seams/service-link.ts";
import { SimLocalDirectory } from "./seams/sim-local-directory.ts";
import { SimObjectStore } from "./seams/sim-object-store.ts";
import { SimSqlStore } from "./seams/sim-sql-store.ts";
import { traceLogger } from "./trace-logger.ts";
import { SimClock } from "./world/sim-clock.ts";

/** Where a variant may put something else: each gets what the product has, and returns what is used. */
export interface NodeSubstitutes {
  readonly wal?: (wal: WalStore, components: Omit<NodeCoreComponents, "wal">) => WalStore;
  readonly components?: (components: NodeCoreComponents) => NodeCoreComponents;
  /** Called with the core, and what it was made of, before it starts. */
  readonly core?: (core: NodeCore, components: NodeCoreComponents) => void;
}

/** Reasons for which a node may end by itself while faults are about. */
const EXPLAINED: ReadonlySet<ErrorCode> = new Set([
  "durability",
  "storage_failed",
  "storage_full",
  "database_failed",
  "unknown_outcome",
  "unavailable",
]);

export function composeNodeFactory(substitutes: NodeSubstitutes = {}): NodeFactory {
  return (cluster, options, checker, place) => {
    const { world, process, nodeId, host } = place;
    hastenSnapshots(options.snapshotEveryCommands);
    const log = traceLogger(world.trace, process);
    const clock = new SimClock(world.scheduler, host, process);
    const random = world.prng.branch(`random of ${process.name}`);
    const store = new SimObjectStore(cluster.bucket, new ServiceLink(cluster.store, process, nodeId));
    const sql = new SimSqlStore(cluster.database, new ServiceLink(cluster.databaseService, process, nodeId), process);
    const base = { clock, random, log, sql, store, settings: settingsOf(options, nodeId), lifeLock: EXCLUSIVE_LIFE };
    const stopped = Promise.withResolvers<{ readonly error: unknown }>();
    let core: NodeCore | null = null;

    const start = async (): Promise<void> => {
      const opened = await openWal(options, place, store, random);
      const components: NodeCoreComponents = { ...base, wal: substitutes.wal?.(opened, base) ?? opened };
      core = await NodeCore.open(substitutes.components?.(components) ?? components);
      substitutes.core?.(core, components);
      void core.failed.then((error) => stopped.resolve({ error }));
      await core.start({ pico: null, durableStreams: null, admin: null });
    };
    const built: BuiltNode = {
      get service() {
        return core?.streams ?? null;
      },
      start,
      stop: async () => {
        await core?.stop();
      },
      stopped: stopped.promise,
      checkEnd: (error) => {
        const isExplained = [...EXPLAINED].some((code) => isPicoError(error, code));
        if (!isExplained) world.record(error);
      },
      scrub: (request) => (core?.isReady === true ? core.scrubber.start(request) : null),
      checkState: () => {
        if (core === null) return;
        const { index, ...hash } = core.metadata.stateHash();
        checker.checkHash(process.name, index, hash);
      },
    };
    return built;
  };

  function settingsOf(options: SimulationOptions, nodeId: number): NodeCoreSettings {
    return {
      // Those of the node have the same names there; the others are nothing to it.
      ...options,
      nodeId,
      nodeEpoch: null,
      clusterId: CLUSTER_ID,
      slots: 1,
      failoverTimeoutMs: 5000,
      scrubIntervalMs: 0,
    };
  }
}

export async function openWal(
  options: SimulationOptions,
  place: NodePlace,
  store: SimObjectStore,
  random: NodeCoreComponents["random"],
): Promise<WalStore> {
  const directory = new SimLocalDirectory(place.world, place.process, place.disk, options.disk);
  if (options.walKind === "local") {
    return LocalDiskWal.open({ directory, random, firstFileBytes: options.walFileBytes, fileBytes: options.walFileBytes * 2 });
  }
  // The lock of the node id, which the product keeps beside the database.
  await directory.lock();
  return new ObjectWal(store, CLUSTER_ID);
}
