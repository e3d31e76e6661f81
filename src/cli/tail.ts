/** `pico tail`: the records that come. */
import { RETRY_FLAG, readClientSettings, readRetryMs } from "./client-flags.ts";
import { type CommandDefinition, STREAM_OPERAND } from "./command-definition.ts";
import { defineCallFlag } from "./flag-definition.ts";
import { OutageNotice } from "./outage-notice.ts";
import { openStream } from "./stream-client.ts";
import { toOutputLines } from "./terminal-text.ts";

export const TAIL_COMMAND: CommandDefinition = {
  name: "tail",
  summary: "print the records that come",
  description: [
    "Begins behind the last record and waits for the next ones, as long as the server lets a read wait (25 s unless set otherwise). " +
      "Prints the first that come, like pico read. With --follow it goes on until the stream is closed.",
    "With --follow it survives a restart of the server: no record is left out, none comes twice.",
  ],
  operands: [STREAM_OPERAND],
  flags: [{ ...defineCallFlag("--follow", null, "go on until the stream is closed", null), short: "-f" }, RETRY_FLAG],
  isClient: true,
  examples: [
    { line: "pico tail -f /logs/app", does: "print records as they are appended" },
    { line: "pico tail -f /logs/app --retry-sec 3600", does: "the same, and wait up to an hour for the server" },
  ],
  async run({ operands: [name = ""], values, self }) {
    const settings = readClientSettings(values);
    const isFollowing = values.isOn("--follow");
    const stream = openStream(settings, name, new OutageNotice(self, readRetryMs(values)));
    for await (const lines of stream.tail(isFollowing)) await self.output.write(toOutputLines(lines, self.isOutputTerminal));
    return 0;
  },
};
