/** What the admin listener tells, taken from the node's parts at the moment it asks. */

import type { ClusterAnswer, ReadyAnswer } from "../admin/admin-schemas.ts";
import type { AdminSource } from "../admin/admin-source.ts";
import type { GcAnswer } from "../admin/gc-schemas.ts";
import { PicoError } from "../lib/errors.ts";
import { ADMIN_ITEMS_MAX } from "../lib/limits.ts";
import type { ObjectFigures } from "../metadata/object-tally.ts";
import { isRemovalHeld } from "../metadata/removal-hold.ts";
import type { View } from "../metadata/view.ts";
import { describeNodes } from "./admin-nodes.ts";
import { describeScrub, summarizeScrub, toScrubRequest } from "./admin-scrub.ts";
import { describeStream } from "./admin-stream.ts";
import type { NodeCore } from "./node-core.ts";
import type { NodeWatch } from "./node-watch.ts";
import type { Settings } from "./settings.ts";

export interface AdminSourceParts {
  readonly settings: Settings;
  /** Null while the metadata is being loaded. */
  readonly core: () => NodeCore | null;
  readonly isServing: () => boolean;
  readonly watch: NodeWatch;
  readonly advertisedAddress: () => string;
  readonly durableStreamsUrl: () => string | null;
}

const NO_OBJECTS: ObjectFigures = { levels: [], prepared: 0, destroyed: 0, oldestDestroyedIndex: null };

export function createAdminSource(parts: AdminSourceParts): AdminSource {
  const { settings, core, advertisedAddress } = parts;
  return {
    ready: () => describeReadiness(parts),
    cluster: () => describeCluster(parts),
    activity: (sinceMs) => parts.watch.activity(sinceMs),
    metrics: () => parts.watch.metrics(),
    durableStreamsUrl: parts.durableStreamsUrl,
    nodes: () => {
      const view = core()?.metadata.view ?? null;
      return view === null ? { nodes: [], nodeCount: 0 } : describeNodes(view, settings.nodeId);
    },
    scrub: () => describeScrub(core()?.scrubber.run ?? null, settings.scrubIntervalSeconds),
    startScrub: (order) => {
      const node = core();
      if (node?.isReady !== true) throw starting();
      const running = node.scrubber.start(toScrubRequest(order));
      return running === null ? null : describeScrub(node.scrubber.run, settings.scrubIntervalSeconds);
    },
    removalHold: () => describeHold(core()),
    holdRemoval: async (order) => {
      const node = core();
      if (node?.isReady !== true) throw starting();
      const { metadata } = node;
      const untilMs = "holdSeconds" in order ? metadata.databaseNowMs() + order.holdSeconds * 1000 : null;
      const outcome = await metadata.propose({ type: "hold_removal", untilMs: untilMs === null ? null : Math.ceil(untilMs) }).outcome;
      if (!outcome.applied) throw new PicoError("unavailable", `the hold was refused (${outcome.code})`, { retryAfterSeconds: 1 });
      return describeHold(node);
    },
    stream: async (name) => {
      const node = core();
      if (node === null) throw starting();
      const entry = node.metadata.view.streamByName(name);
      return entry === null ? null : describeStream(entry, node, { nodeId: settings.nodeId, address: advertisedAddress() });
    },
  };
}

function starting(): PicoError {
  return new PicoError("unavailable", "this node is starting; try again", { retryAfterSeconds: 1 });
}

export interface ReadinessParts {
  readonly settings: Pick<Settings, "nodeId">;
  readonly core: () => NodeCore | null;
  readonly isServing: () => boolean;
}

export function describeReadiness({ settings, core, isServing }: ReadinessParts): typeof ReadyAnswer.static {
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
    stalled: node?.engine.figures.isStalled ?? false,
    recovery: recovery === null ? null : { step: recovery.step, segments: recovery.segments, bytes: recovery.bytes },
  };
}

function describeCluster({ settings, core, advertisedAddress }: AdminSourceParts): typeof ClusterAnswer.static {
  const node = core();
  const view = node?.metadata.view ?? null;
  const { levels, prepared, destroyed, oldestDestroyedIndex } = view?.objectFigures() ?? NO_OBJECTS;
  const live = levels.reduce((sum, level) => sum + level.objects, 0);
  const uploaded = levels.find(({ level }) => level === 0)?.objects ?? 0;
  return {
    clusterId: settings.clusterId,
    nodeId: settings.nodeId,
    nodeEpoch: node?.metadata.registration?.nodeEpoch ?? 0,
    advertisedAddress: advertisedAddress(),
    registered: node?.isReady ?? false,
    appliedIndex: view?.appliedIndex ?? 0,
    streamCount: view?.streamCount ?? 0,
    objectCount: live,
    streamSetObjectCount: uploaded,
    streamObjectCount: live - uploaded,
    preparedObjectCount: prepared,
    kvEntryCount: 0,
    kvBytes: 0,
    levels: [...levels],
    gc: {
      backlog: destroyed,
      oldestSeq: oldestDestroyedIndex,
      nextSeq: view?.appliedIndex ?? 0,
      ...describeHold(node),
      ...describeRefusals(node),
    },
    destroyedObjectBacklog: destroyed,
    snapshot: node?.metadata.snapshotFigures ?? { lastAppliedIndex: 0, lastBytes: 0, lastDurationMs: 0, lastAtMs: 0, taken: 0, failed: 0 },
    mirror: node?.mirror?.figures ?? null,
    scrub: summarizeScrub(node?.scrubber.run ?? null),
    leaseHolder: node?.metadata.lease == null ? null : node.metadata.isLeaseHeld,
    pendingTransfers: view === null ? [] : describeTransfers(view),
  };
}

/** A hold that has run out is none; while the database's clock cannot be trusted none has. */
function describeHold(node: NodeCore | null): typeof GcAnswer.static {
  if (node === null || !isRemovalHeld(node.metadata)) return { heldUntilMs: null };
  return { heldUntilMs: node.metadata.view.removalHeldUntilMs };
}

/** Of the lease holder: what another node knew when it was that says nothing any more. */
function describeRefusals(node: NodeCore | null): Pick<(typeof ClusterAnswer.static)["gc"], "refused" | "refusedSinceMs" | "lastRefusal"> {
  if (node === null || !node.metadata.isLeaseHeld) return { refused: 0, refusedSinceMs: null, lastRefusal: null };
  const { refused, refusedSinceMs, lastRefusal } = node.removal.figures;
  return { refused, refusedSinceMs, lastRefusal };
}

function describeTransfers(view: View): (typeof ClusterAnswer.static)["pendingTransfers"] {
  const transfers: (typeof ClusterAnswer.static)["pendingTransfers"] = [];
  for (const entry of view.transferringStreams()) {
    const { streamId, transfer } = entry;
    if (transfer === null) continue;
    transfers.push({ streamId, fromNode: view.ownerOf(entry)?.owner.name.nodeId ?? null, toNode: transfer.toNodeId });
    if (transfers.length === ADMIN_ITEMS_MAX) break;
  }
  return transfers;
}
