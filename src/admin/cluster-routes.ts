/** The state of the cluster as this node has applied it, from memory. */
import { jsonAnswer } from "./admin-answer.ts";
import type { AdminRoute } from "./admin-route.ts";
import { ClusterAnswer, NodesAnswer } from "./admin-schemas.ts";
import type { AdminSource } from "./admin-source.ts";

const CLUSTER_EXAMPLE: typeof ClusterAnswer.static = {
  clusterId: "picomq",
  nodeId: 1,
  nodeEpoch: 1_760_000_000_000,
  advertisedAddress: "http://127.0.0.1:4437",
  registered: true,
  appliedIndex: 12,
  streamCount: 1,
  objectCount: 3,
  streamSetObjectCount: 2,
  streamObjectCount: 1,
  preparedObjectCount: 0,
  kvEntryCount: 0,
  kvBytes: 0,
  levels: [
    { level: 0, objects: 2, bytes: 4096 },
    { level: 1, objects: 1, bytes: 1_048_576 },
  ],
  gc: { backlog: 0, oldestSeq: null, nextSeq: 12, heldUntilMs: null, refused: 0, refusedSinceMs: null, lastRefusal: null },
  destroyedObjectBacklog: 0,
  snapshot: { lastAppliedIndex: 0, lastBytes: 0, lastDurationMs: 0, lastAtMs: 0, taken: 0, failed: 0 },
  mirror: { coveredIndex: 12, behindRows: 0, snapshotIndex: 0, snapshotBytes: 0 },
  scrub: { endedAtMs: 1_760_000_004_000, outcome: "sound", missing: 0, damaged: 0, orphans: 1, unexplained: 0 },
  leaseHolder: true,
  pendingTransfers: [],
};

export function clusterRoute(source: AdminSource): AdminRoute {
  return {
    method: "GET",
    path: "/admin/cluster",
    about: {
      tag: "Cluster",
      summary: "The cluster as this node sees it",
      description: "Counts of the metadata state that this node has applied, and the figures of its snapshots and its lease.",
      answers: { 200: { description: "The state as applied up to `appliedIndex`", schema: ClusterAnswer, example: CLUSTER_EXAMPLE } },
    },
    handle: (exchange) => jsonAnswer(exchange, 200, source.cluster()),
  };
}

const NODES_EXAMPLE: typeof NodesAnswer.static = {
  nodes: [
    {
      nodeId: 1,
      nodeEpoch: 1_760_000_000_000,
      advertisedAddress: "http://127.0.0.1:4437",
      slots: 1,
      local: true,
      openingCount: 1,
      placedCount: 0,
      state: "live",
    },
  ],
  nodeCount: 1,
};

export function nodesRoute(source: AdminSource): AdminRoute {
  return {
    method: "GET",
    path: "/admin/nodes",
    about: {
      tag: "Cluster",
      summary: "The nodes of the cluster",
      description: "Every node that was ever registered and not removed, with the streams that it owns.",
      answers: { 200: { description: "By node id; empty until the metadata is loaded", schema: NodesAnswer, example: NODES_EXAMPLE } },
    },
    handle: (exchange) => jsonAnswer(exchange, 200, source.nodes()),
  };
}
