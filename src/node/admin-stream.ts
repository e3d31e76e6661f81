/** One stream, as an operator is told. */
import type { StreamAnswer } from "../admin/admin-schemas.ts";
import type { Engine } from "../engine/engine.ts";
import type { StreamHoldings } from "../engine/stream-holdings.ts";
import { ADMIN_ITEMS_MAX } from "../lib/limits.ts";
import type { StreamEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { View } from "../metadata/view.ts";
import type { SessionFigures, Streams } from "../streams/streams.ts";

type Answer = typeof StreamAnswer.static;

/** The node that answers. */
export interface AnsweringNode {
  readonly nodeId: number;
  readonly address: string;
}

export interface DescribedNode {
  readonly metadata: Metadata;
  readonly engine: Engine;
  readonly streams: Streams;
}

/** Asks the store for the data objects; everything else is at hand. */
export async function describeStream(
  { streamId }: StreamEntry,
  { metadata, engine, streams }: DescribedNode,
  local: AnsweringNode,
): Promise<Answer | null> {
  const { view } = metadata;
  const holdings = await engine.holdings(streamId, ADMIN_ITEMS_MAX);
  // What is told beside the objects is of one moment, which is now.
  const entry = view.streamById(streamId);
  if (entry === null) return null;
  const figures = streams.inspect(streamId);
  const { settings, startOffset, transfer } = entry;
  const nodeId = view.ownerOf(entry)?.owner.name.nodeId ?? null;
  return {
    name: entry.name,
    streamId,
    ...describeOwner(view, entry, local),
    contentType: settings.contentType,
    kafkaTopic: null,
    ttlSeconds: settings.ttlSeconds,
    expiresAtMs: settings.expiresAtMs,
    closed: figures?.isClosed ?? entry.isClosed,
    state: nodeId === null ? "closed" : "opened",
    epoch: entry.streamEpoch,
    nodeId,
    startOffset,
    endOffset: Math.max(startOffset, holdings.tail?.nextOffset ?? entry.fork?.offset ?? 0),
    pendingTransfer: transfer === null ? null : { fromNode: nodeId, toNode: transfer.toNodeId },
    createdAtMs: entry.createdAtMs,
    deadlineMs: streams.deadlineOf(entry),
    deleted: entry.isDeleted,
    fork: describeSource(view, entry),
    forks: describeForks(view, entry),
    objects: describeObjects(holdings),
    serving: figures === null ? null : describeServing(figures),
  };
}

/** As requests are routed: here where nobody owns the stream. */
function describeOwner(
  view: View,
  entry: StreamEntry,
  local: AnsweringNode,
): Pick<Answer, "ownerNodeId" | "ownerAdvertisedAddress" | "ownerLocal"> {
  const owner = view.ownerOf(entry)?.owner ?? null;
  if (owner === null || owner.name.nodeId === local.nodeId) {
    return { ownerNodeId: local.nodeId, ownerAdvertisedAddress: local.address, ownerLocal: true };
  }
  const { pico, durableStreams } = owner.addresses;
  return { ownerNodeId: owner.name.nodeId, ownerAdvertisedAddress: pico ?? durableStreams ?? "", ownerLocal: false };
}

function describeSource(view: View, { fork }: StreamEntry): Answer["fork"] {
  if (fork === null) return null;
  return { name: view.streamById(fork.sourceId)?.name ?? null, streamId: fork.sourceId, offset: fork.offset };
}

function describeForks(view: View, entry: StreamEntry): Answer["forks"] {
  const items: Answer["forks"]["items"] = [];
  for (const { name, streamId, fork, isDeleted } of view.forksOf(entry.streamId)) {
    if (items.length === ADMIN_ITEMS_MAX) break;
    items.push({ name, streamId, offset: fork?.offset ?? 0, deleted: isDeleted });
  }
  return { count: entry.forkCount, items };
}

function describeObjects({ holdings, coveringCount, isComplete }: StreamHoldings): Answer["objects"] {
  const items = holdings.map(({ object: { objectId, summary }, startOffset, endOffset }) => ({
    objectId,
    level: summary?.level ?? 0,
    startOffset,
    endOffset,
    bytes: summary?.sizeBytes ?? 0,
  }));
  return { coveringCount, isComplete, items };
}

function describeServing({ nextOffset, isClosed, waiterCount, producers }: SessionFigures): NonNullable<Answer["serving"]> {
  const items: NonNullable<Answer["serving"]>["producers"]["items"] = [];
  for (const [id, { producerEpoch, lastSeq, lastUsedMs }] of producers) {
    if (items.length === ADMIN_ITEMS_MAX) break;
    items.push({ id, epoch: String(producerEpoch), lastSeq: String(lastSeq), lastUsedMs });
  }
  return { nextOffset, closed: isClosed, liveReads: waiterCount, producers: { count: producers.size, items } };
}
