/** What the admin API answers, as schemas: the types that the node fills, and what the API description shows. */
import { type TSchema, type TUnsafe, Type as t } from "@sinclair/typebox";
import { ADMIN_ITEMS_MAX } from "../lib/limits.ts";

export const Count = (description: string) => t.Integer({ minimum: 0, description });
/** Names and ids that people chose are data: a page that shows one must not take it for markup. */
const Chosen = (description: string) => t.String({ description });
const OrNull = <T extends TSchema>(schema: T, description: string) => t.Union([schema, t.Null()], { description });
/** The first of many, and how many there are. */
export const FirstOf = <T extends TSchema>(item: T, description: string) =>
  t.Object({ count: Count("All of them, those left out included"), items: t.Array(item, { maxItems: ADMIN_ITEMS_MAX }) }, { description });
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
    phase: t.String({
      description: "opening, starting, degraded (reads only, until the start can write), recovering, serving, stopping or stopped",
    }),
    stalled: t.Boolean({
      description: "The WAL takes no writes now, so that appends are refused. Reads go on, and `ready` does not fall for it",
    }),
    recovery: t.Union(
      [
        t.Object({
          step: t.String({ description: "survey (all is read and checked), replay, upload, end or done" }),
          segments: Count("WAL segments surveyed so far, and from the replay on replayed so far"),
          bytes: Count("Their bytes"),
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
      heldUntilMs: t.Union([Count("In ms since 1970, by the time of the database"), t.Null()], {
        description: "An operator holds back whatever leaves the store until then; null: nothing does",
      }),
      refused: Count("Those of them that the store refused to delete, as this node knows; the lease holder does"),
      refusedSinceMs: t.Union([t.Number({ minimum: 0 }), t.Null()], {
        description: "Since when the store has been refusing without a break, in ms since 1970; null: it refuses none",
      }),
      lastRefusal: t.Union(
        [
          t.Object({
            code: t.String({ description: "The store's own word" }),
            key: t.String({ description: "Key of the data object" }),
            message: t.String({ description: "For people" }),
          }),
          t.Null(),
        ],
        { description: "The newest refusal that stands; null: there is none" },
      ),
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
    mirror: t.Union(
      [
        t.Object({
          coveredIndex: Count("The command log is in the bucket up to here, as far as this node knows; 0 before it asked"),
          behindRows: Count("Rows that are applied here and not in the bucket, as far as this node knows; the lease holder copies them"),
          snapshotIndex: Count("Of the newest snapshot in the bucket that this node knows; 0: none"),
          snapshotBytes: Count("Its size"),
        }),
        t.Null(),
      ],
      { description: "The copy of the command log in the object store, for `pico restore`; null: there is none" },
    ),
    scrub: t.Union(
      [
        t.Object({
          endedAtMs: t.Union([Count("End, in ms since 1970"), t.Null()], { description: "Null while it runs" }),
          outcome: t.Union([t.Literal("running"), t.Literal("sound"), t.Literal("damage"), t.Literal("failed")], {
            description: "As in `/admin/scrub`",
          }),
          missing: Count("Live data objects that the store does not have"),
          damaged: Count("Live data objects of a wrong size or with a wrong checksum"),
          orphans: Count("Keys that are certainly nobody's"),
          unexplained: Count("Keys that the metadata cannot explain"),
        }),
        t.Null(),
      ],
      { description: "The last comparison of store and metadata by this node, or the one under way; null: none since its start" },
    ),
    leaseHolder: t.Union([t.Boolean(), t.Null()], { description: "Whether this node runs maintenance; null where no lease is kept" }),
    pendingTransfers: t.Array(
      t.Object({
        streamId: Count("The stream"),
        fromNode: OrNull(Count("Node id"), "Its owner; null where nobody is"),
        toNode: Count("Node id of the target"),
      }),
      { maxItems: ADMIN_ITEMS_MAX, description: `Streams on their way to another node; the first ${ADMIN_ITEMS_MAX}` },
    ),
  },
  { $id: "Cluster" },
);

export const NodesAnswer = t.Object(
  {
    nodes: t.Array(
      t.Object({
        nodeId: Count("Chosen by the operator"),
        nodeEpoch: Count("Of its last registration: one life of the node"),
        advertisedAddress: OrNull(t.String(), "Where clients reach its stream listener; null where it has none"),
        slots: Count("Its capacity weight; 0: it gets no streams"),
        local: t.Boolean({ description: "It is the node that answers" }),
        openingCount: Count("Streams that it owns"),
        placedCount: Count("Streams assigned to it that it never opened; 0: here a stream is assigned by opening it"),
        state: t.Union([t.Literal("live"), t.Literal("fenced"), t.Literal("ended")], {
          description: "Of its last registration: `fenced` while it is being recovered, `ended` after a graceful stop or a recovery",
        }),
      }),
      { maxItems: ADMIN_ITEMS_MAX, description: `By node id; the first ${ADMIN_ITEMS_MAX}` },
    ),
    nodeCount: Count("Nodes, those left out included, removed ones not"),
  },
  { $id: "Nodes" },
);

/** An integer of JSON, which may have more digits than a number of JavaScript: a bigint here. */
const U64 = t.Integer({ minimum: 0, description: "Seconds, from 0 to 2^64-1" }) as TSchema as TUnsafe<bigint>;
/** Not a JSON number: those of JavaScript do not hold it. */
const U64Text = (description: string) => t.String({ pattern: "^[0-9]{1,20}$", description: `${description}, in decimal digits` });

const ForkSource = t.Object({
  name: OrNull(Chosen("Name"), "Of the source; null where it is not kept any more"),
  streamId: Count("Of the source"),
  offset: Count("First offset that is the fork's own: below it the source's records are read"),
});

const Fork = t.Object({
  name: Chosen("Of the fork"),
  streamId: Count("Of the fork"),
  offset: Count("First offset that is its own"),
  deleted: t.Boolean({ description: "It is deleted, and kept for forks of its own" }),
});

const HoldingObject = t.Object({
  objectId: Count("Last part of its key in the object store"),
  level: Count("0: as uploaded; above: compacted"),
  startOffset: OrNull(Count("Offset"), "First record of the stream in it; null where it holds only the tail state"),
  endOffset: OrNull(Count("Offset"), "The stream's tail as of this object; null where the stream goes on in another object of the level"),
  bytes: Count("Of the whole object, in bytes"),
});

const Serving = t.Object({
  nextOffset: Count("Durable tail: where the next append lands"),
  closed: t.Boolean({ description: "Closed for appends, durably" }),
  liveReads: Count("Long polls and event streams that wait for records"),
  producers: FirstOf(
    t.Object({
      id: Chosen("As the producer named itself"),
      epoch: U64Text("Epoch of its last append"),
      lastSeq: U64Text("Sequence of its last append"),
      lastUsedMs: Millis("Time of its last append"),
    }),
    "Producers that the stream remembers",
  ),
});

export const StreamAnswer = t.Object(
  {
    name: Chosen("As stored, not encoded"),
    streamId: Count("Unique for ever; a name that is created anew has another"),
    ownerNodeId: t.Integer({ description: "Node that serves a request now: the owner, or this node where nobody owns it" }),
    ownerAdvertisedAddress: t.String({ description: "Where clients reach that node; empty where it is not known" }),
    ownerLocal: t.Boolean({ description: "That node is the one that answers" }),
    contentType: Chosen("As given at its creation"),
    kafkaTopic: t.Null({ description: "Always null: there is no Kafka listener" }),
    ttlSeconds: OrNull(U64, "Sliding life in seconds, as given at its creation; null without one"),
    expiresAtMs: OrNull(Millis("Instant"), "Absolute end, as given at its creation; null without one"),
    closed: t.Boolean({ description: "Closed for appends; where another node serves it, as of its last upload" }),
    state: t.Union([t.Literal("opened"), t.Literal("closed")], { description: "`opened`: a node owns it" }),
    epoch: Count("Rises with each change of owner, from 1"),
    nodeId: OrNull(Count("Node id"), "Of the owner; null where nobody owns it"),
    startOffset: Count("Trim point: first offset still readable"),
    endOffset: Count("Tail as of the last upload; lags behind the stream's own HEAD"),
    pendingTransfer: OrNull(
      t.Object({ fromNode: OrNull(Count("Node id"), "Its owner"), toNode: Count("Node id") }),
      "On its way to another node",
    ),
    createdAtMs: Millis("When it was created"),
    deadlineMs: OrNull(
      Millis("Instant"),
      "When it expires unless it is used before; where another node serves it, a lower bound of that; null: never",
    ),
    deleted: t.Boolean({ description: "Deleted, and kept for its forks; its name is taken" }),
    fork: OrNull(ForkSource, "Where it was forked from; null where it is no fork"),
    forks: FirstOf(Fork, "Forks that share its records"),
    objects: t.Object(
      {
        coveringCount: Count("Live data objects whose range covers the stream: at least as many as hold it"),
        isComplete: t.Boolean({ description: "All of them were asked; else only the newest" }),
        items: t.Array(HoldingObject, { maxItems: ADMIN_ITEMS_MAX }),
      },
      { description: `Data objects that hold it, newest first; at most ${ADMIN_ITEMS_MAX}` },
    ),
    serving: OrNull(Serving, "What the answering node knows as its server; null where the stream is not in use there"),
  },
  { $id: "Stream" },
);
