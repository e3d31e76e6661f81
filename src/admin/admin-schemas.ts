/** What the admin API answers, as schemas: the types that the node fills, and what the API description shows. */
import { Type as t } from "@sinclair/typebox";

export const Count = (description: string) => t.Integer({ minimum: 0, description });
export const Millis = (description: string) => t.Integer({ minimum: 0, description: `${description}, in ms since 1970` });

export const ErrorAnswer = t.Object(
  { error: t.String({ description: "What was refused, which value, and what to do" }) },
  { $id: "AdminError", description: "An error of the admin API" },
);

export const ReadyAnswer = t.Object(
  {
    ready: t.Boolean({ description: "Serving and registered: requests may be sent here" }),
    serving: t.Boolean({ description: "False from the begin of a graceful stop" }),
    registered: t.Boolean({ description: "The registration stands and what its predecessor left is recovered" }),
    appliedIndex: Count("Last applied row of the command log"),
    nodeId: t.Integer({ description: "Of the node that answers" }),
    phase: t.String({ description: "opening, starting, degraded (reads only), recovering, serving, stopping or stopped" }),
    recovery: t.Union(
      [
        t.Object({
          step: t.String({ description: "replay, upload, end or done" }),
          segments: Count("WAL segments replayed so far"),
          bytes: Count("Bytes replayed so far"),
        }),
        t.Null(),
      ],
      { description: "How far the recovery of an earlier life of this node is; null without one" },
    ),
  },
  { $id: "Ready" },
);

export const ClusterAnswer = t.Object(
  {
    clusterId: t.String({ description: "First part of every key in the object store" }),
    nodeId: t.Integer({ description: "Of the node that answers" }),
    nodeEpoch: Count("Of this node's registration; 0 before it is registered"),
    advertisedAddress: t.String({ description: "Where clients reach this node's stream listener" }),
    registered: t.Boolean({ description: "The registration stands and what its predecessor left is recovered" }),
    appliedIndex: Count("Last applied row of the command log"),
    streamCount: Count("Streams, deleted ones that forks keep included"),
    objectCount: Count("Live data objects"),
    streamSetObjectCount: Count("Live data objects of level 0"),
    streamObjectCount: Count("Live compacted data objects"),
    preparedObjectCount: Count("Data objects being written, or given up and not yet destroyed"),
    kvEntryCount: Count("0: nothing uses them"),
    kvBytes: Count("0: nothing uses them"),
    levels: t.Array(
      t.Object({
        level: Count("0: as uploaded; above: compacted"),
        objects: Count("Live data objects"),
        bytes: Count("Their size in bytes"),
      }),
      { description: "Live data objects by level, lowest first" },
    ),
    gc: t.Object({
      backlog: Count("Destroyed data objects that the store still holds"),
      oldestSeq: t.Union([Count("Index of the command"), t.Null()], { description: "Command that destroyed the oldest of them" }),
      nextSeq: Count("As `appliedIndex`"),
    }),
    destroyedObjectBacklog: Count("As `gc.backlog`"),
    snapshot: t.Object({
      lastAppliedIndex: Count("Index that the last snapshot written by this node stands for; 0: none yet"),
      lastBytes: Count("Bytes that it wrote"),
      lastDurationMs: t.Number({ minimum: 0, description: "Time that it took, in ms" }),
      lastAtMs: t.Number({ minimum: 0, description: "When it was written, in ms since 1970; 0: none yet" }),
      taken: Count("Snapshots that this process wrote"),
      failed: Count("Snapshots that it could not write"),
    }),
    leaseHolder: t.Union([t.Boolean(), t.Null()], { description: "Whether this node runs maintenance; null where no lease is kept" }),
    pendingTransfers: t.Array(t.Object({ streamId: t.Integer(), fromNode: t.Integer(), toNode: t.Integer() }), {
      description: "Streams on their way to another node",
    }),
  },
  { $id: "Cluster" },
);
