import type { Logger } from "../../src/lib/log.ts";

/** A logger that writes nothing. */
export const silentLog: Logger = {
  trace() {},
  debug() {},
  info() {},
  warn() {},
  error() {},
  child: () => silentLog,
};
