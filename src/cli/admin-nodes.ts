/** `pico admin nodes`: the nodes of the cluster. */
import type { NodesAnswer } from "../admin/admin-schemas.ts";
import { formatCount } from "../lib/format-count.ts";
import { AdminClient } from "./admin-client.ts";
import { printReply, textOr } from "./admin-output.ts";
import type { CommandDefinition } from "./command-definition.ts";

export const ADMIN_NODES_COMMAND: CommandDefinition = {
  name: "nodes",
  summary: "print the nodes of the cluster",
  description: [
    "Prints a line a node, by node id: its registration, where clients reach it, its weight, and how many streams it owns and was assigned. " +
      "Says on stderr when there are more.",
  ],
  operands: [],
  flags: [],
  isClient: false,
  examples: [
    { line: "pico admin nodes", does: "node=1 epoch=1760000000000 address=http://127.0.0.1:4437 slots=1 opening=1 placed=0 (this node)" },
  ],
  async run(call) {
    const reply = await AdminClient.of(call.values).nodes();
    await printReply(call, reply, ({ nodes }) => nodes.map(describe));
    const left = reply.answer.nodeCount - reply.answer.nodes.length;
    if (left > 0) call.self.errors.write(`pico: there are ${formatCount(left, "more node")}\n`);
    return 0;
  },
};

function describe(node: (typeof NodesAnswer.static)["nodes"][number]): string {
  const { nodeId, nodeEpoch, advertisedAddress, slots, openingCount, placedCount, local } = node;
  const line = `node=${nodeId} epoch=${nodeEpoch} address=${textOr(advertisedAddress)} slots=${slots} opening=${openingCount} placed=${placedCount}`;
  return local ? `${line} (this node)` : line;
}
