/** `pico read`: the records of a stream up to its tail. */
import { RETRY_FLAG, readClientSettings, readRetryMs } from "./client-flags.ts";
import { type CommandDefinition, STREAM_OPERAND } from "./command-definition.ts";
import { defineCallFlag } from "./flag-definition.ts";
import { OutageNotice } from "./outage-notice.ts";
import { openStream } from "./stream-client.ts";
import { toOutputLines } from "./terminal-text.ts";

export const READ_COMMAND: CommandDefinition = {
  name: "read",
  summary: "print the records of a stream",
  description: [
    "Prints each record as a line: its position, a tab, its text, or <N bytes> for what is not UTF-8. Ends at the tail of the stream. " +
      "Over Durable Streams a line is what one answer of the server holds, and its position the offset behind it.",
    "Survives a restart of the server: goes on behind the last record that was printed.",
  ],
  operands: [STREAM_OPERAND],
  flags: [
    defineCallFlag("--from", "POSITION", "first record: a sequence, or over Durable Streams an offset", "the first that is still there"),
    RETRY_FLAG,
  ],
  isClient: true,
  examples: [
    { line: "pico read /logs/app", does: "print all records" },
    { line: "pico read /logs/app --from 100 | head -5", does: "print five records from sequence 100 on" },
  ],
  async run({ operands: [name = ""], values, self }) {
    const settings = readClientSettings(values);
    const from = values.text("--from");
    const stream = openStream(settings, name, new OutageNotice(self, readRetryMs(values)));
    for await (const lines of stream.read(from)) await self.output.write(toOutputLines(lines, self.isOutputTerminal));
    return 0;
  },
};
