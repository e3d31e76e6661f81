/** `pico admin cluster`: the cluster as one node sees it. */
import type { ClusterAnswer } from "../admin/admin-schemas.ts";
import { AdminClient } from "./admin-client.ts";
import { describeHold, printReply, textOr } from "./admin-output.ts";
import type { CommandDefinition } from "./command-definition.ts";

export const ADMIN_CLUSTER_COMMAND: CommandDefinition = {
  name: "cluster",
  summary: "print the cluster as the node sees it",
  description: [
    "Prints cluster, node and registration; streams, data objects, those that wait for their removal from the store, whether the node runs maintenance, and until when an operator holds removal back; " +
      "and a line for each stream on its way to another node.",
  ],
  operands: [],
  flags: [],
  isClient: false,
  examples: [
    { line: "pico admin cluster", does: "of the node on this machine" },
    { line: "pico admin cluster --json", does: "all that the node tells" },
  ],
  async run(call) {
    await printReply(call, await AdminClient.of(call.values).cluster(), describe);
    return 0;
  },
};

function describe(answer: typeof ClusterAnswer.static): readonly string[] {
  const { clusterId, nodeId, nodeEpoch, advertisedAddress, registered, appliedIndex, pendingTransfers, gc } = answer;
  return [
    `cluster=${clusterId} node=${nodeId} epoch=${nodeEpoch} address=${textOr(advertisedAddress)} registered=${registered} appliedIndex=${appliedIndex}`,
    `streams=${answer.streamCount} objects=${answer.objectCount} gcBacklog=${gc.backlog} leaseHolder=${answer.leaseHolder} held=${describeHold(gc.heldUntilMs)}`,
    ...pendingTransfers.map(({ streamId, fromNode, toNode }) => `transfer stream=${streamId} from=${fromNode} to=${toNode}`),
  ];
}
