/** `pico delete`: removes a stream with its records. */
import { readClientSettings } from "./client-flags.ts";
import { type CommandDefinition, STREAM_OPERAND } from "./command-definition.ts";
import { openStream } from "./stream-client.ts";

export const DELETE_COMMAND: CommandDefinition = {
  name: "delete",
  summary: "delete a stream and its records",
  description: [
    "Says deleted=true on stderr, or deleted=false where there was none, which is no failure. It asks nothing and cannot be undone.",
  ],
  operands: [STREAM_OPERAND],
  flags: [],
  isClient: true,
  examples: [{ line: "pico delete /logs/app", does: "the stream is gone" }],
  async run({ operands: [name = ""], values, self }) {
    self.errors.write(`deleted=${await openStream(readClientSettings(values), name, null).delete()}\n`);
    return 0;
  },
};
