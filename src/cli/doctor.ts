/** `pico doctor`: what may keep a node from starting or running well, a line a finding. */
import { utf8Encoder } from "../lib/bytes.ts";
import { formatCount } from "../lib/format-count.ts";
import { examine, type Finding } from "../node/doctor.ts";
import { PROTOCOL_FLAG } from "./client-flags.ts";
import type { CommandDefinition } from "./command-definition.ts";
import { SERVE_FLAGS } from "./serve-flags.ts";
import { readServeSettings } from "./serve-settings.ts";
import { hasColors, paint } from "./terminal-colors.ts";

const COLORS = { ok: "green", warn: "yellow", fail: "red" } as const;
const LEVEL_WIDTH = 4;
const WHAT_WIDTH = 20;

export const DOCTOR_COMMAND: CommandDefinition = {
  name: "doctor",
  summary: "look for what keeps a node from running well",
  description: [
    "Give it the flags, and the environment, of pico serve. It looks at folders, free space, file systems, the lock of a running node, buckets, the database, " +
      "the ports of the listeners, the limit of open files and the clock. It changes nothing (in a bucket it creates and deletes one small object), and may be run beside a running node, as the same user.",
    "Prints ok, warn or fail, what was looked at, and how it is; where it is not well, what to do. A line on stderr sums up. The exit code is 1 if something fails.",
  ],
  operands: [],
  flags: [...SERVE_FLAGS, PROTOCOL_FLAG],
  isClient: false,
  examples: [
    { line: "pico doctor", does: "before, or while, pico serve runs in this folder" },
    { line: "pico doctor --data-dir /var/lib/pico --listen 127.0.0.1:8080", does: "with the flags that the node gets" },
  ],
  async run({ values, self }) {
    const settings = readServeSettings(values, self.workingDirectory);
    const isColored = hasColors(self.environment, self.isOutputTerminal);
    const counts = { ok: 0, warn: 0, fail: 0 };
    for await (const finding of examine(settings, self.clock)) {
      counts[finding.level] += 1;
      await self.output.write(utf8Encoder.encode(lineOf(finding, isColored)));
    }
    self.errors.write(`${verdictOf(counts)}\n`);
    return counts.fail > 0 ? 1 : 0;
  },
};

function verdictOf({ warn, fail }: Readonly<Record<Finding["level"], number>>): string {
  const warnings = warn === 0 ? "" : `, ${formatCount(warn, "warning")}`;
  return fail === 0 ? `pico serve can run here${warnings}` : `${formatCount(fail, "failure")}${warnings}: pico serve cannot run well here`;
}

function lineOf({ level, what, detail }: Finding, isColored: boolean): string {
  const word = paint(COLORS[level], level.padEnd(LEVEL_WIDTH), isColored);
  return `${word}  ${what.padEnd(WHAT_WIDTH)}  ${detail.replace(/\s*[\r\n]+\s*/g, " ")}\n`;
}
