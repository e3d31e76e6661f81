/** A logger that keeps its lines: `warn: MESSAGE` and, of an error, `: ITS MESSAGE`. */
import { messageOf } from "../../src/lib/errors.ts";
import type { LogFields, Logger } from "../../src/lib/log.ts";

export interface NotedLine {
  readonly text: string;
  readonly fields: LogFields;
}

export function noted(): { readonly log: Logger; readonly lines: NotedLine[] } {
  const lines: NotedLine[] = [];
  const note =
    (level: string) =>
    (message: string, fields: LogFields = {}) => {
      const error = fields.error === undefined ? "" : `: ${messageOf(fields.error)}`;
      lines.push({ text: `${level}: ${message}${error}`, fields });
    };
  const log: Logger = {
    trace() {},
    debug() {},
    info: note("info"),
    warn: note("warn"),
    error: note("error"),
    child: () => log,
  };
  return { log, lines };
}
