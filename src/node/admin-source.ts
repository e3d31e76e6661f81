/** What the admin listener tells, taken from the node's parts at the moment it asks. */

import type { ClusterAnswer, ReadyAnswer } from "../admin/admin-schemas.ts";
import type { AdminSource } from "../admin/admin-source.ts";
import type { ObjectEntry } from "../metadata/entries.ts";
import type { NodeCore } from "./node-core.ts";
import type { Settings } from "./settings.ts";

export interface AdminSourceParts {
  readonly settings: Settings;
  /** Null while the metadata is being loaded. */
  readonly core: () => NodeCore | null;
  readonly isServing: () => boolean;
  readonly advertisedAddress: () => string;
}

export function createAdminSource(parts: AdminSourceParts): AdminSource {
  return {
    ready: () => describeReadiness(parts),
    cluster: () => describeCluster(parts),
  };
}

function describeReadiness({ settings, core, isServing }: AdminSourceParts): typeof ReadyAnswer.static {
  const node = core();
  const serving = isServing();
  const registered = node?.isReady ?? false;
  const recovery = node?.recovery ?? null;
  return {
    ready: serving && registered,
    serving,
    registered,
    appliedIndex: node?.metadata.view.appliedIndex ?? 0,
    nodeId: settings.nodeId,
    phase: node?.phase ?? "opening",
    recovery: recovery === null ? null : { step: recovery.step, segments: recovery.segments, bytes: recovery.bytes },
  };
}

function describeCluster({ settings, core, advertisedAddress }: AdminSourceParts): typeof ClusterAnswer.static {
  const node = core();
  const view = node?.metadata.view ?? null;
  const objects = countObjects(view?.objects() ?? []);
  return {
    clusterId: settings.clusterId,
    nodeId: settings.nodeId,
    nodeEpoch: node?.metadata.registration?.nodeEpoch ?? 0,
    advertisedAddress: advertisedAddress(),
    registered: node?.isReady ?? false,
    appliedIndex: view?.appliedIndex ?? 0,
    streamCount: view?.streamCount ?? 0,
    objectCount: objects.live,
    streamSetObjectCount: objects.levels.find(({ level }) => level === 0)?.objects ?? 0,
    streamObjectCount: objects.live - (objects.levels.find(({ level }) => level === 0)?.objects ?? 0),
    preparedObjectCount: objects.prepared,
    kvEntryCount: 0,
    kvBytes: 0,
    levels: objects.levels,
    gc: { backlog: objects.destroyed, oldestSeq: objects.oldestDestroyed, nextSeq: view?.appliedIndex ?? 0 },
    destroyedObjectBacklog: objects.destroyed,
    snapshot: node?.metadata.snapshotFigures ?? { lastAppliedIndex: 0, lastBytes: 0, lastDurationMs: 0, lastAtMs: 0, taken: 0, failed: 0 },
    leaseHolder: node?.metadata.lease == null ? null : node.metadata.isLeaseHeld,
    pendingTransfers: [],
  };
}

interface ObjectCounts {
  live: number;
  prepared: number;
  destroyed: number;
  oldestDestroyed: number | null;
  readonly levels: { level: number; objects: number; bytes: number }[];
}

function countObjects(objects: Iterable<ObjectEntry>): ObjectCounts {
  const counts: ObjectCounts = { live: 0, prepared: 0, destroyed: 0, oldestDestroyed: null, levels: [] };
  for (const { state, summary, destroyedIndex } of objects) {
    if (state === "prepared") counts.prepared += 1;
    else if (state === "destroyed") {
      counts.destroyed += 1;
      if (destroyedIndex !== null) counts.oldestDestroyed = Math.min(counts.oldestDestroyed ?? destroyedIndex, destroyedIndex);
    } else if (summary !== null) {
      counts.live += 1;
      let level = counts.levels.find((known) => known.level === summary.level);
      if (level === undefined) {
        level = { level: summary.level, objects: 0, bytes: 0 };
        counts.levels.push(level);
      }
      level.objects += 1;
      level.bytes += summary.sizeBytes;
    }
  }
  counts.levels.sort((left, right) => left.level - right.level);
  return counts;
}
