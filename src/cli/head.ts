/** `pico head`: where a stream starts and ends. */
import { isStreamError } from "../client/stream-error.ts";
import { utf8Encoder } from "../lib/bytes.ts";
import { readClientSettings } from "./client-flags.ts";
import { type CommandDefinition, STREAM_OPERAND } from "./command-definition.ts";
import { openStream } from "./stream-client.ts";
import { toOutputLines } from "./terminal-text.ts";

export const HEAD_COMMAND: CommandDefinition = {
  name: "head",
  summary: "print where a stream starts and ends",
  description: [
    "Prints start=FIRST next=BEHIND-THE-LAST closed=true|false type=CONTENT-TYPE. Says not found, with exit code 1, where there is no stream.",
  ],
  operands: [STREAM_OPERAND],
  flags: [],
  isClient: true,
  examples: [{ line: "pico head /logs/app", does: "start=0 next=3 closed=false type=text/plain" }],
  async run({ operands: [name = ""], values, self }) {
    try {
      const { start, next, isClosed, contentType } = await openStream(readClientSettings(values), name, null).head();
      const type = contentType === "" ? "-" : contentType;
      const line = utf8Encoder.encode(`start=${start} next=${next} closed=${isClosed} type=${type}\n`);
      await self.output.write(toOutputLines(line, self.isOutputTerminal));
      return 0;
    } catch (error) {
      if (!isStreamError(error, "not_found")) throw error;
      self.errors.write("not found\n");
      return 1;
    }
  },
};
