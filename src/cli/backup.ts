/**
 * `pico backup`: copies the state of a node into a folder while the node runs. What was copied goes to
 * stdout; on a terminal a line on stderr shows the progress.
 */
import { resolve } from "node:path";
import { PicoError } from "../lib/errors.ts";
import { formatBytes, formatCount } from "../lib/format-count.ts";
import { createLogger } from "../lib/log.ts";
import { type BackupReport, backUp } from "../node/backup.ts";
import type { StoredPlaces } from "../node/settings.ts";
import type { CommandCall, CommandDefinition } from "./command-definition.ts";
import type { FlagDefinition } from "./flag-definition.ts";
import { ProgressLine } from "./progress-line.ts";
import { PLACE_FLAGS } from "./serve-flags.ts";
import { readStoredPlaces } from "./serve-settings.ts";

const TO_FLAG: FlagDefinition = {
  flag: "--to",
  value: "DIR",
  help: "folder that the copy goes to: a new or an empty one",
  defaultText: null,
};

export const BACKUP_COMMAND: CommandDefinition = {
  name: "backup",
  summary: "copy the state of a node while it runs",
  description: [
    "Reads the files of the node, which is not asked; run it as the same user, with the flags of places that the node was started with. " +
      "The copy has everything that was acknowledged before the command began, whether uploaded or only in the write-ahead log, " +
      "as after a power cut at that moment. Of what comes meanwhile some may be in it.",
    "However long it takes, nothing has to be held back: what the node removes or uploads meanwhile is looked up again, and copied from where it is then. " +
      "A node that writes faster than it is copied makes it give up; then run it behind pico admin gc hold, and end with pico admin gc release.",
    "The folder becomes a data directory: pico serve --data-dir DIR starts a node on it, which recovers as after a crash.",
  ],
  operands: [],
  flags: [TO_FLAG, ...PLACE_FLAGS],
  isClient: false,
  examples: [{ line: "pico backup --data-dir ./data --to ./backup-monday", does: "copy the node of ./data" }],
  run: backup,
};

/** Throws `settings`, and what `backUp` throws. */
async function backup({ values, self }: CommandCall): Promise<number> {
  const given = values.text("--to");
  if (given === null) throw new PicoError("settings", "--to is missing; name the folder that the copy goes to", { flag: "--to" });
  const target = resolve(self.workingDirectory, given.text);
  const places = readStoredPlaces(values, self.workingDirectory);
  const log = createLogger({ level: "warn", format: self.isErrorsTerminal ? "text" : "json", destination: self.errors, clock: self.clock });
  const progress = new ProgressLine(self);
  try {
    const report = await backUp({
      places,
      target,
      clock: self.clock,
      random: self.random,
      log,
      onProgress: ({ step, done, total }) => progress.show(() => `copying ${step}${total > 0 ? `: ${done} of ${total}` : ""}`),
    });
    progress.clear();
    for (const line of describe(report, places, target)) self.print(line);
    return 0;
  } finally {
    progress.clear();
  }
}

function describe(report: BackupReport, places: StoredPlaces, target: string): string[] {
  const { streams, objects, objectBytes, segments, segmentBytes, appliedIndex, stateHash } = report;
  const cluster = places.clusterId === "picomq" ? "" : ` --cluster-id ${places.clusterId}`;
  return [
    `backed up to ${target}`,
    `metadata: ${formatCount(streams, "stream")}, at index ${appliedIndex}, state hash ${stateHash}`,
    `records: ${formatCount(objects, "data object")} (${formatBytes(objectBytes)}), ${formatCount(segments, "WAL segment")} (${formatBytes(segmentBytes)})`,
    "everything acknowledged before the command began is in it",
    `start a node on it: pico serve --data-dir ${target}${cluster}`,
  ];
}
