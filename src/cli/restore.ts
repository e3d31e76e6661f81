/**
 * `pico restore`: builds the database of a node from its bucket alone. The report goes to stdout; on a terminal a line on
 * stderr shows the progress.
 */
import { formatBytes, formatCount } from "../lib/format-count.ts";
import { createLogger } from "../lib/log.ts";
import type { RestoreReport } from "../node/restore.ts";
import { restoreNode } from "../node/restore-node.ts";
import type { RestoreProgress } from "../node/restore-options.ts";
import type { CommandCall, CommandDefinition } from "./command-definition.ts";
import { defineCallFlag } from "./flag-definition.ts";
import { ProgressLine } from "./progress-line.ts";
import { NODE_ID_FLAG, PLACE_FLAGS } from "./serve-flags.ts";
import { readNodeId, readStoredPlaces } from "./serve-settings.ts";

export const RESTORE_COMMAND: CommandDefinition = {
  name: "restore",
  summary: "build the database of a node from its bucket alone",
  description: [
    "For a node whose SQLite file is lost, with the machine or without it. Takes the newest snapshot and the command log behind it from the mirror that the node kept in its bucket " +
      "(on by itself with s3:// and SQLite, else with pico serve --mirror on), checks them, compares them with what the store holds, and writes a new database. " +
      "pico serve with the same flags then starts a node on it, which replays the write-ahead log.",
    "Stop the old node first, if it may still run somewhere. What it acknowledges after the new node's start is refused, and it stops.",
    "Lost are the commands of the last moments, at most a few seconds: streams created then are missing with their records (of those with records the report tells the ids; nothing in the bucket has their names), streams deleted then are back. Records of all other streams are there as far as they were acknowledged.",
    "A database that is there already is never replaced. If something is missing in the bucket nothing is restored and the exit code is 1, unless --force is given.",
  ],
  operands: [],
  flags: [
    NODE_ID_FLAG,
    ...PLACE_FLAGS,
    defineCallFlag("--force", null, "restore what there is, although something is missing for good", null),
    defineCallFlag("--json", null, "print the report as JSON", null),
  ],
  isClient: false,
  examples: [
    { line: "pico restore --storage 's3://bucket'", does: "make ./data/meta.db from the bucket" },
    { line: "pico restore --storage 's3://bucket' --data-dir /var/lib/pico --json", does: "the same at another place, for a program" },
  ],
  run: restore,
};

/** Throws `settings`, and what `restoreNode` throws. */
async function restore({ values, self }: CommandCall): Promise<number> {
  const nodeId = readNodeId(values);
  const places = readStoredPlaces(values, self.workingDirectory);
  const log = createLogger({ level: "warn", format: self.isErrorsTerminal ? "text" : "json", destination: self.errors, clock: self.clock });
  const progress = new ProgressLine(self);
  try {
    const report = await restoreNode({
      places,
      nodeId,
      isForced: values.isOn("--force"),
      clock: self.clock,
      random: self.random,
      log,
      onProgress: (step) => progress.show(() => describeProgress(step)),
    });
    progress.clear();
    if (values.isOn("--json")) self.print(JSON.stringify(report, null, 2));
    else for (const line of describeReport(report)) self.print(line);
    return 0;
  } finally {
    progress.clear();
  }
}

function describeProgress({ step, done }: RestoreProgress): string {
  switch (step) {
    case "snapshot":
      return `reading the snapshot: ${formatCount(done, "row")}`;
    case "log":
      return `reading the log: ${formatCount(done, "row")}`;
    case "wal":
      return `reading the WAL: ${formatBytes(done)}`;
    case "objects":
      return `comparing data objects: ${done}`;
    case "mirror":
      return "writing to the mirror";
  }
}

export function describeReport(report: RestoreReport): readonly string[] {
  const { snapshotIndex, mirroredIndex, mirroredAtMs, stateHash, streams, objects, walSegments, walBytes } = report;
  const from = snapshotIndex === 0 ? "the log from its start" : `the snapshot at ${snapshotIndex} and the log behind it`;
  return [
    `restored up to command ${mirroredIndex} of ${new Date(mirroredAtMs).toISOString()}, state hash ${stateHash}, from ${from}`,
    `${formatCount(streams, "stream")}, ${formatCount(objects, "data object")}`,
    `to replay at the start: ${formatCount(walSegments, "WAL segment")} (${formatBytes(walBytes)})`,
    ...report.takenBack.map((name) => `taken back with its WAL: registration ${name}`),
    ...describeLost(report),
    ...(report.orphanCount === 0
      ? []
      : [
          `in the store and not known: ${formatCount(report.orphanCount, "object")} (${formatBytes(report.orphanBytes)}); pico admin scrub tells more`,
        ]),
    ...report.problems.map((problem) => `passed over: ${problem}`),
    "start the node with the same flags: pico serve",
  ];
}

/** The WAL and data objects know streams by their ids. A name is in the command that created the stream, and nowhere else. */
function describeLost({ lostStreams, lostStreamCount }: RestoreReport): readonly string[] {
  if (lostStreamCount === 0) {
    return ["no record in the WAL is of a stream that is missing; one created after that command that had no record left no trace"];
  }
  const more = lostStreamCount - lostStreams.length;
  return [
    `missing, created after that command, with records in the WAL: ${formatCount(lostStreamCount, "stream")}`,
    ...lostStreams.map(({ streamId, records }) => `  stream id ${streamId}: ${formatCount(records, "record")}`),
    ...(more > 0 ? [`  and ${more} more`] : []),
    "their names cannot be told, they were in the lost commands only; one whose create was never answered counts too, one that had no record left no trace",
  ];
}
