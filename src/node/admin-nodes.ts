/** The nodes of the cluster, as an operator is told. */
import type { NodesAnswer } from "../admin/admin-schemas.ts";
import { ADMIN_ITEMS_MAX } from "../lib/limits.ts";
import type { NodeEntry } from "../metadata/entries.ts";
import type { View } from "../metadata/view.ts";

type Answer = typeof NodesAnswer.static;

export function describeNodes(view: View, localId: number): Answer {
  const owned = new Map<number, number>();
  for (const [{ name }, count] of view.ownedCounts()) owned.set(name.nodeId, (owned.get(name.nodeId) ?? 0) + count);
  const nodes = [...view.nodes()].sort((left, right) => left.nodeId - right.nodeId);
  return {
    nodes: nodes.slice(0, ADMIN_ITEMS_MAX).map((node) => describeNode(view, node, localId, owned.get(node.nodeId) ?? 0)),
    nodeCount: nodes.length,
  };
}

function describeNode(view: View, { nodeId, lastEpoch, slots }: NodeEntry, localId: number, streams: number): Answer["nodes"][number] {
  const registration = view.currentRegistration(nodeId);
  const addresses = registration?.addresses;
  return {
    nodeId,
    nodeEpoch: lastEpoch,
    advertisedAddress: addresses?.pico ?? addresses?.durableStreams ?? null,
    slots,
    local: nodeId === localId,
    openingCount: streams,
    placedCount: 0,
    state: registration?.state ?? "ended",
  };
}
