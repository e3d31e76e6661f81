/** `pico serve`: runs a node until it is told to stop. */
import { createLogger } from "../lib/log.ts";
import { PROTOCOL_FLAG } from "./client-flags.ts";
import type { CommandDefinition } from "./command-definition.ts";
import { serve } from "./serve.ts";
import { SERVE_FLAGS } from "./serve-flags.ts";
import { readServeSettings } from "./serve-settings.ts";

export const SERVE_COMMAND: CommandDefinition = {
  name: "serve",
  summary: "run a node",
  description: ["Says on stdout where it listens. SIGINT or SIGTERM stops it gracefully, a second one at once. Its log goes to stderr."],
  operands: [],
  flags: [...SERVE_FLAGS, PROTOCOL_FLAG],
  isClient: false,
  examples: [
    { line: "pico serve", does: "a node of this machine, with its state in ./data" },
    { line: "pico serve --data-dir /var/lib/pico --listen 127.0.0.1:8080", does: "another place, another port" },
  ],
  run({ values, self }) {
    const settings = readServeSettings(values, self.workingDirectory);
    const format = settings.logFormat ?? (self.isErrorsTerminal ? "text" : "json");
    const log = createLogger({ level: settings.logLevel, format, destination: self.errors, clock: self.clock });
    return serve(settings, log, self.startNode, self);
  },
};
