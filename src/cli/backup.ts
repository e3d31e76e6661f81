/**
 * `pico backup`: copies the state of a node into a folder while the node runs. What was copied goes to
 * stdout; on a terminal a line on stderr shows the progress.
 */
import { resolve } from "node:path";
import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { KIB } from "../lib/limits.ts";
import type { LogDestination, Logger } from "../lib/log.ts";
import { systemRandom } from "../lib/random.ts";
import { type BackupProgress, type BackupReport, backUp } from "../node/backup.ts";
import type { StoredPlaces } from "../node/settings.ts";
import type { FlagValues } from "./flag-values.ts";
import { type FlagDefinition, SERVE_FLAGS } from "./serve-flags.ts";
import { readStoredPlaces } from "./serve-settings.ts";

/** What the command touches of its process. */
export interface BackupProcess {
  print(line: string): void;
  readonly errors: LogDestination;
  readonly isErrorsTerminal: boolean;
  readonly workingDirectory: string;
  readonly clock: Clock;
}

const PLACE_FLAGS = ["--data-dir", "--meta-url", "--storage", "--wal", "--cluster-id"];
const TO_FLAG: FlagDefinition = {
  flag: "--to",
  value: "DIR",
  help: "folder that the copy goes to: a new or an empty one",
  defaultText: null,
};

export const BACKUP_FLAGS: readonly FlagDefinition[] = [TO_FLAG, ...SERVE_FLAGS.filter(({ flag }) => PLACE_FLAGS.includes(flag))];

/** Paragraphs; the help breaks their lines itself. */
export const BACKUP_DESCRIPTION = [
  "copy the state of a node while it runs",
  "Reads the files of the node, which is not asked; run it as the same user, with the flags of places that the node was started with. " +
    "The copy has everything that was acknowledged before the command began, whether uploaded or only in the write-ahead log, " +
    "as after a power cut at that moment. Of what comes meanwhile some may be in it.",
  "The folder becomes a data directory: pico serve --data-dir DIR starts a node on it, which recovers as after a crash.",
].join("\n\n");

const PROGRESS_INTERVAL_MS = 100;
/** Back to the start of the line, and empty it. */
const CLEAR_LINE = "\r\u001b[K";

/** Resolves with the exit code. Throws `settings`, and what `backUp` throws. */
export async function backup(values: FlagValues, log: Logger, self: BackupProcess): Promise<number> {
  const given = values.text("--to");
  if (given === null) throw new PicoError("settings", "--to is missing; name the folder that the copy goes to", { flag: "--to" });
  const target = resolve(self.workingDirectory, given.text);
  const places = readStoredPlaces(values, self.workingDirectory);
  const progress = new ProgressLine(self);
  try {
    const report = await backUp({
      places,
      target,
      clock: self.clock,
      random: systemRandom,
      log,
      onProgress: (step) => progress.show(step),
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
    `metadata: ${streams} streams, at index ${appliedIndex}, state hash ${stateHash}`,
    `records: ${objects} data objects (${formatBytes(objectBytes)}), ${segments} WAL segments (${formatBytes(segmentBytes)})`,
    "everything acknowledged before the command began is in it",
    `start a node on it: pico serve --data-dir ${target}${cluster}`,
  ];
}

/** The newest step, on one line that is written over. */
class ProgressLine {
  readonly #self: BackupProcess;
  #shownAtMs = Number.NEGATIVE_INFINITY;
  #isShown = false;

  constructor(self: BackupProcess) {
    this.#self = self;
  }

  show({ step, done, total }: BackupProgress): void {
    const nowMs = this.#self.clock.monotonicMs();
    if (!this.#self.isErrorsTerminal || nowMs - this.#shownAtMs < PROGRESS_INTERVAL_MS) return;
    this.#shownAtMs = nowMs;
    this.#isShown = true;
    this.#self.errors.write(`${CLEAR_LINE}copying ${step}${total > 0 ? `: ${done} of ${total}` : ""}`);
  }

  clear(): void {
    if (this.#isShown) this.#self.errors.write(CLEAR_LINE);
    this.#isShown = false;
  }
}

/** `3.1 MiB` */
function formatBytes(count: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (value >= KIB && unit < units.length - 1) {
    value /= KIB;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
