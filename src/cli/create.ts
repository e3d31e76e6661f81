/** `pico create`: makes a stream, or finds it. */
import { OFFSET_MAX } from "../lib/limits.ts";
import { readClientSettings } from "./client-flags.ts";
import { type CommandDefinition, STREAM_OPERAND } from "./command-definition.ts";
import { defineCallFlag } from "./flag-definition.ts";
import { openStream } from "./stream-client.ts";

const CONTENT_TYPE_DEFAULT = "application/octet-stream";

export const CREATE_COMMAND: CommandDefinition = {
  name: "create",
  summary: "create a stream",
  description: [
    "Says created=true on stderr, or created=false where the stream exists with the same settings, which is no failure. " +
      "One that exists with other settings is.",
  ],
  operands: [STREAM_OPERAND],
  flags: [
    defineCallFlag("--content-type", "TYPE", "type of the stream's data", CONTENT_TYPE_DEFAULT),
    defineCallFlag("--ttl", "SECONDS", "the stream ends when it was neither read nor appended to for this long", "never"),
  ],
  isClient: true,
  examples: [
    { line: "pico create /logs/app --content-type text/plain", does: "a stream of text" },
    { line: "pico create /sessions/42 --ttl 3600", does: "a stream that goes when it is idle for an hour" },
  ],
  async run({ operands: [name = ""], values, self }) {
    const contentType = values.text("--content-type")?.text ?? CONTENT_TYPE_DEFAULT;
    const ttlSeconds = values.number("--ttl", 0, OFFSET_MAX);
    const isNew = await openStream(readClientSettings(values), name, null).create(contentType, ttlSeconds);
    self.errors.write(`created=${isNew}\n`);
    return 0;
  },
};
