/** The log of a simulated node goes into the trace: it is part of what a run did, and explains failures. */
import { messageOf, PicoError } from "../../src/lib/errors.ts";
import type { LogFields, Logger } from "../../src/lib/log.ts";
import type { SimProcess } from "./world/process.ts";
import type { Trace } from "./world/trace.ts";

export function traceLogger(trace: Trace, process: SimProcess, base: LogFields = {}): Logger {
  const note =
    (level: string) =>
    (message: string, fields: LogFields = {}): void => {
      if (process.isDead) return;
      const facts = Object.entries({ ...base, ...fields }).map(([name, value]) => ` ${name}=${describe(value)}`);
      trace.note(`${process.name} ${level}: ${message}${facts.join("")}`);
    };
  return {
    trace: note("trace"),
    debug: note("debug"),
    info: note("info"),
    warn: note("warn"),
    error: note("error"),
    child: (fields) => traceLogger(trace, process, { ...base, ...fields }),
  };
}

function describe(value: unknown): string {
  if (value instanceof PicoError) return `${value.code} (${value.message})`;
  return value instanceof Error ? messageOf(value) : String(value);
}
