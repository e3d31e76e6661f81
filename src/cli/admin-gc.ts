/** `pico admin gc`: what waits to leave the object store, and holding it back while somebody copies the store. */
import { REMOVAL_HOLD_SECONDS_DEFAULT, REMOVAL_HOLD_SECONDS_MAX } from "../lib/limits.ts";
import { AdminClient } from "./admin-client.ts";
import { describeHold, printReply } from "./admin-output.ts";
import type { CommandCall, CommandDefinition } from "./command-definition.ts";
import { defineCallFlag } from "./flag-definition.ts";
import { type FlagValues, refuseValue } from "./flag-values.ts";

const SECONDS_BY_UNIT: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 24 * 3600 };

export const ADMIN_GC_COMMAND: CommandDefinition = {
  name: "gc",
  summary: "hold back what leaves the object store, during a backup",
  description: [
    "hold: no node of the cluster deletes anything from the store, the write-ahead log included, until the time is over or release ends it. So a copy of the bucket, however long it takes, finds all that its database names. " +
      "A second hold replaces the first. status: what waits to be deleted, and until when it is held back.",
  ],
  operands: [{ name: "ACTION", help: "status, hold or release", words: ["status", "hold", "release"] }],
  flags: [defineCallFlag("--for", "TIME", "with hold: how long, at most 7d; a number with s, m, h or d", "1h")],
  isClient: false,
  examples: [
    { line: "pico admin gc hold --for 6h", does: "begin a backup" },
    { line: "pico admin gc release", does: "end it" },
    { line: "pico admin gc status", does: "what waits" },
  ],
  run: gc,
};

async function gc(call: CommandCall): Promise<number> {
  const { operands, values } = call;
  const holdSeconds = readSeconds(values);
  const client = AdminClient.of(values);
  if (operands[0] === "status") {
    await printReply(call, await client.cluster(), ({ gc: { backlog, refused, heldUntilMs } }) => [
      `gcBacklog=${backlog} refused=${refused} held=${describeHold(heldUntilMs)}`,
    ]);
    return 0;
  }
  const reply = await client.holdRemoval(operands[0] === "hold" ? { holdSeconds } : { release: true });
  await printReply(call, reply, ({ heldUntilMs }) => [`held=${describeHold(heldUntilMs)}`]);
  return 0;
}

function readSeconds(values: FlagValues): number {
  const given = values.text("--for");
  if (given === null) return REMOVAL_HOLD_SECONDS_DEFAULT;
  const [, count = "", unit = ""] = /^(\d{1,9})([smhd])$/.exec(given.text) ?? [];
  const seconds = Number(count) * (SECONDS_BY_UNIT[unit] ?? 0);
  if (seconds >= 1 && seconds <= REMOVAL_HOLD_SECONDS_MAX) return seconds;
  throw refuseValue(given, "is no time from 1s to 7d; write a whole number with s, m, h or d behind it, like 90m");
}
