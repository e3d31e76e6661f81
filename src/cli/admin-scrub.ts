/** `pico admin scrub`: begins a comparison of store and metadata on a node, and follows it to its end. */
import type { ScrubRunTold } from "../admin/scrub-schemas.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { formatBytes, formatCount } from "../lib/format-count.ts";
import { ADMIN_FOLLOW_MS, SCRUB_AGE_SECONDS_DEFAULT, SCRUB_AGE_SECONDS_MAX, SCRUB_AGE_SECONDS_MIN } from "../lib/limits.ts";
import { AdminClient } from "./admin-client.ts";
import { printReply } from "./admin-output.ts";
import type { CommandCall, CommandDefinition } from "./command-definition.ts";
import { defineCallFlag } from "./flag-definition.ts";
import type { FlagValues } from "./flag-values.ts";
import { ProgressLine } from "./progress-line.ts";

const BAR_WIDTH = 24;

export const ADMIN_SCRUB_COMMAND: CommandDefinition = {
  name: "scrub",
  summary: "compare the object store with the metadata",
  description: [
    "Has the node list every key of the cluster in the store and compare it with the metadata, waits for it, and prints what it found: data objects that are missing or of a wrong size, " +
      "orphans (keys that are certainly nobody's), and keys that the metadata cannot explain. Nothing is changed, unless --delete-orphans says so. Interrupting the command does not end the scrub.",
    "The exit code is 1 if something is missing or damaged, or the scrub could not be finished.",
  ],
  operands: [],
  flags: [
    defineCallFlag("--verify", null, "also read every live data object whole, and check its checksums", null),
    defineCallFlag("--delete-orphans", null, "also delete orphans that are old enough, if nothing is missing or damaged", null),
    defineCallFlag(
      "--min-age",
      "SECONDS",
      `with --delete-orphans: age that an orphan needs to be deleted, at least ${SCRUB_AGE_SECONDS_MIN}`,
      SCRUB_AGE_SECONDS_DEFAULT,
    ),
    defineCallFlag("--show", null, "begin none: print the one under way, or the last one, of the node", null),
  ],
  isClient: false,
  examples: [
    { line: "pico admin scrub", does: "is everything there that should be, and nothing else?" },
    { line: "pico admin scrub --verify --json", does: "the same with all checksums, for a program" },
    { line: "pico admin scrub --delete-orphans --min-age 604800", does: "delete what has been nobody's for a week" },
  ],
  run: scrub,
};

async function scrub(call: CommandCall): Promise<number> {
  const { values, self } = call;
  const client = AdminClient.of(values);
  refuseIdleFlags(values);
  const minAgeSeconds = values.number("--min-age", SCRUB_AGE_SECONDS_MIN, SCRUB_AGE_SECONDS_MAX);
  if (!values.isOn("--show")) {
    const order = { verify: values.isOn("--verify"), deleteOrphans: values.isOn("--delete-orphans") };
    await client.startScrub(minAgeSeconds === null ? order : { ...order, minAgeSeconds });
  }
  const reply = values.isOn("--show") ? await client.scrub() : await follow(client, self.clock, new ProgressLine(self));
  await printReply(call, reply, ({ run }) => (run === null ? [] : describe(run)));
  const { run } = reply.answer;
  if (run === null) self.errors.write("pico: there was no scrub since the start of the node\n");
  return run?.outcome === "damage" || run?.outcome === "failed" ? 1 : 0;
}

/** A flag that would change nothing is a mistake about what the other one does. */
function refuseIdleFlags(values: FlagValues): void {
  const given = ["--verify", "--delete-orphans", "--min-age"].find((flag) => values.isGiven(flag));
  if (values.isOn("--show") && given !== undefined) {
    throw idleFlag(
      given,
      "--show begins no scrub and prints the one that is there",
      `${given} needs a scrub of its own: leave one of them out`,
    );
  }
  if (values.isGiven("--min-age") && !values.isOn("--delete-orphans")) {
    throw idleFlag("--min-age", "nothing is deleted without --delete-orphans", "add --delete-orphans, or leave --min-age out");
  }
}

function idleFlag(flag: string, reason: string, remedy: string): PicoError {
  return new PicoError("settings", `${flag} would have no effect: ${reason}; ${remedy}`, { flag });
}

async function follow(client: AdminClient, clock: Clock, progress: ProgressLine): ReturnType<AdminClient["scrub"]> {
  try {
    for (;;) {
      const reply = await client.scrub();
      const { running, run } = reply.answer;
      if (!running) return reply;
      if (run !== null) progress.show(() => describeProgress(run));
      await sleep(clock, ADMIN_FOLLOW_MS);
    }
  } finally {
    progress.clear();
  }
}

/** `verify  [##########..............]  42 %  1.2 GiB of 2.9 GiB`. */
export function describeProgress({ progress: { phase, done, total } }: Pick<ScrubRunTold, "progress">): string {
  const amount = (count: number) => (phase === "verify" ? formatBytes(count) : formatCount(count, phase === "confirm" ? "object" : "key"));
  if (total === null) return `${phase}  ${amount(done)}`;
  const share = total === 0 ? 1 : Math.min(1, done / total);
  const filled = Math.floor(share * BAR_WIDTH);
  const bar = `[${"#".repeat(filled)}${".".repeat(BAR_WIDTH - filled)}]`;
  return `${phase}  ${bar}  ${Math.floor(share * 100)} %  ${amount(done)} of ${amount(total)}`;
}

function describe(run: ScrubRunTold): readonly string[] {
  const { missing, wrongSize, damaged, orphans, unexplained, refused } = run;
  return [
    `outcome=${run.outcome} keys=${run.keys} bytes=${run.bytes} objects=${run.liveObjects} verified=${run.verified.count}`,
    `missing=${missing.count} wrongSize=${wrongSize.count} damaged=${damaged.count} orphans=${orphans.count} orphanBytes=${run.orphanBytes} unexplained=${unexplained.count}`,
    ...(run.deleteOrphans ? [describeDeletion(run)] : []),
    ...(run.error === null ? [] : [`error ${run.error}`]),
    ...linesOf("missing", missing, ({ key, bytes }) => `${key} bytes=${bytes}`),
    ...linesOf("wrongSize", wrongSize, ({ key, expectedBytes, foundBytes }) => `${key} expected=${expectedBytes} found=${foundBytes}`),
    ...linesOf("damaged", damaged, ({ key, what }) => `${key} ${what}`),
    ...linesOf("unexplained", unexplained, ({ key, bytes, reason }) => `${key} bytes=${bytes} reason=${reason}`),
    ...linesOf("orphan", orphans, ({ key, bytes, reason }) => `${key} bytes=${bytes} reason=${reason}`),
    ...linesOf("refused", refused, ({ key, code, message }) => `${key} ${code}: ${message}`),
  ];
}

function describeDeletion({ deleted, tooYoung, refused, nothingDeletedBecause }: ScrubRunTold): string {
  return `deleted=${deleted.count} deletedBytes=${deleted.bytes} tooYoung=${tooYoung} refused=${refused.count} keptBecause=${nothingDeletedBecause ?? "-"}`;
}

/** A line each, and how many there are beyond those that the node tells. */
function linesOf<Item>(
  word: string,
  { count, items }: { readonly count: number; readonly items: readonly Item[] },
  tell: (item: Item) => string,
): readonly string[] {
  const lines = items.map((item) => `${word} ${tell(item)}`);
  return count > items.length ? [...lines, `${word} ... ${count - items.length} more`] : lines;
}
