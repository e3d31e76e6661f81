/** `pico admin`: what operators ask a node through its admin listener. */
import { ADMIN_CLUSTER_COMMAND } from "./admin-cluster.ts";
import { ADMIN_FLAGS } from "./admin-flags.ts";
import { ADMIN_GC_COMMAND } from "./admin-gc.ts";
import { ADMIN_NODES_COMMAND } from "./admin-nodes.ts";
import { ADMIN_SCRUB_COMMAND } from "./admin-scrub.ts";
import { ADMIN_STREAM_COMMAND } from "./admin-stream.ts";
import type { CommandGroup } from "./command-group.ts";

export const ADMIN_GROUP: CommandGroup = {
  name: "admin",
  summary: "look after a cluster",
  description: [
    "Asks a node through its admin listener. A refusal is told as the listener tells it: pico: 404 Not Found: there is no stream /x.",
  ],
  flags: ADMIN_FLAGS,
  commands: [ADMIN_CLUSTER_COMMAND, ADMIN_NODES_COMMAND, ADMIN_STREAM_COMMAND, ADMIN_SCRUB_COMMAND, ADMIN_GC_COMMAND],
};
