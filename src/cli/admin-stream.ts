/** `pico admin stream`: who serves a stream, and how it stands in the replicated state. */
import type { StreamAnswer } from "../admin/admin-schemas.ts";
import { AdminClient } from "./admin-client.ts";
import { printReply, textOr } from "./admin-output.ts";
import { type CommandDefinition, STREAM_OPERAND } from "./command-definition.ts";

export const ADMIN_STREAM_COMMAND: CommandDefinition = {
  name: "stream",
  summary: "print who serves a stream, and how it is stored",
  description: [
    "Prints name, id and the node that serves it; state, epoch and offsets as of the last upload, which lag behind those of pico head; and where it is on its way to. " +
      "Opens nothing. --json tells more: its data objects, forks and producers.",
  ],
  operands: [STREAM_OPERAND],
  flags: [],
  isClient: false,
  examples: [{ line: "pico admin stream /logs/app", does: "its owner and its committed offsets" }],
  async run(call) {
    const [name = ""] = call.operands;
    await printReply(call, await AdminClient.of(call.values).stream(name), describe);
    return 0;
  },
};

function describe(answer: typeof StreamAnswer.static): readonly string[] {
  const { name, streamId, ownerNodeId, ownerAdvertisedAddress, ownerLocal, pendingTransfer } = answer;
  const { state, epoch, startOffset, endOffset, closed, contentType } = answer;
  return [
    `name=${name} id=${streamId} owner=${ownerNodeId} address=${textOr(ownerAdvertisedAddress)} local=${ownerLocal}`,
    `state=${textOr(state)} epoch=${epoch} start=${startOffset} end=${endOffset} closed=${closed} type=${textOr(contentType)}`,
    ...(pendingTransfer === null ? [] : [`transfer from=${pendingTransfer.fromNode} to=${pendingTransfer.toNode}`]),
  ];
}
