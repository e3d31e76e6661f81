/** `pico close`: ends a stream for appends. */
import { readClientSettings } from "./client-flags.ts";
import { type CommandDefinition, STREAM_OPERAND } from "./command-definition.ts";
import { openStream } from "./stream-client.ts";

export const CLOSE_COMMAND: CommandDefinition = {
  name: "close",
  summary: "end a stream for appends, for ever",
  description: [
    "Its records stay, and readers that follow it end. Closing a closed stream is no failure. Says closed next=BEHIND-THE-LAST on stderr.",
  ],
  operands: [STREAM_OPERAND],
  flags: [],
  isClient: true,
  examples: [{ line: "pico close /logs/app", does: "no record will ever follow" }],
  async run({ operands: [name = ""], values, self }) {
    self.errors.write(`closed next=${await openStream(readClientSettings(values), name, null).close()}\n`);
    return 0;
  },
};
