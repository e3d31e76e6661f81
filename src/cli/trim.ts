/** `pico trim`: drops the oldest records of a stream. */
import { PicoError } from "../lib/errors.ts";
import { OFFSET_MAX } from "../lib/limits.ts";
import { readClientSettings } from "./client-flags.ts";
import { type CommandDefinition, STREAM_OPERAND } from "./command-definition.ts";
import { defineCallFlag } from "./flag-definition.ts";
import { openStream } from "./stream-client.ts";

export const TRIM_COMMAND: CommandDefinition = {
  name: "trim",
  summary: "drop the records below a sequence",
  description: [
    "Says trimmed start=FIRST-THAT-IS-LEFT on stderr. A trim never goes back, and not beyond the tail. Durable Streams has none.",
  ],
  operands: [STREAM_OPERAND],
  flags: [defineCallFlag("--seq", "SEQUENCE", "first record that stays; must be given", null)],
  isClient: true,
  examples: [{ line: "pico trim /logs/app --seq 1000", does: "drop the records 0 to 999" }],
  async run({ operands: [name = ""], values, self }) {
    const seq = values.number("--seq", 0, OFFSET_MAX);
    if (seq === null)
      throw new PicoError("settings", "--seq is missing; give the sequence of the first record that stays", { flag: "--seq" });
    self.errors.write(`trimmed start=${await openStream(readClientSettings(values), name, null).trim(seq)}\n`);
    return 0;
  },
};
