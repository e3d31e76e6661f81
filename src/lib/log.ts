/**
 * The server's log. Lines go to one destination, normally stderr: stdout is for data. JSON lines for
 * machines, human lines for a terminal.
 *
 * - Writing is synchronous, so that nothing is lost at exit, and a line never waits for another thread.
 * - A destination that fails or throws (a closed pipe), or a fact that cannot be written, loses lines and stops
 *   nothing: no call of a logger throws (FAULTS A5).
 * - An error is logged once, where it is handled, as the field `error`.
 */
import pino, { type DestinationStream } from "pino";
import type { Clock } from "./clock.ts";
import { PicoError } from "./errors.ts";
import { escapeControls } from "./plain-text.ts";

export type LogLevel = "trace" | "debug" | "info" | "warn" | "error" | "silent";
export const LOG_LEVELS: readonly LogLevel[] = ["trace", "debug", "info", "warn", "error", "silent"];

export type LogFormat = "text" | "json";
export const LOG_FORMATS: readonly LogFormat[] = ["text", "json"];

/** Facts of a line. `error` takes anything that was thrown; `undefined` is left out. */
export type LogFields = Readonly<Record<string, unknown>>;

export interface Logger {
  trace(message: string, fields?: LogFields): void;
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** A logger that adds `fields` to each line. */
  child(fields: LogFields): Logger;
}

/** Takes whole lines, each with its line end. */
export interface LogDestination {
  write(line: string): void;
}

/** Writes to a file descriptor at once; what it refuses is dropped. */
export function fileDescriptorDestination(fileDescriptor: number): LogDestination {
  const destination = pino.destination({ dest: fileDescriptor, sync: true });
  destination.on("error", () => {});
  return destination;
}

export function createLogger(options: {
  readonly level: LogLevel;
  readonly format: LogFormat;
  readonly destination: LogDestination;
  readonly clock: Pick<Clock, "nowMs">;
}): Logger {
  const { destination, clock } = options;
  const target: DestinationStream = options.format === "json" ? destination : { write: (line) => destination.write(formatTextLine(line)) };
  const base = pino(
    {
      level: options.level,
      base: null,
      messageKey: "message",
      timestamp: () => `,"time":"${new Date(clock.nowMs()).toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: describeError },
    },
    target,
  );
  return wrapPino(base);
}

/** Logs nothing. */
export const silentLogger: Logger = {
  trace: () => {},
  debug: () => {},
  info: () => {},
  warn: () => {},
  error: () => {},
  child: () => silentLogger,
};

function wrapPino(logger: pino.Logger): Logger {
  const line = (level: Exclude<LogLevel, "silent">) => (message: string, fields?: LogFields) => {
    try {
      logger[level](fields ?? {}, message);
    } catch {
      // The line is lost. Whoever logs is in the middle of something that matters more.
    }
  };
  return {
    trace: line("trace"),
    debug: line("debug"),
    info: line("info"),
    warn: line("warn"),
    error: line("error"),
    child: (fields) => wrapPino(logger.child(fields)),
  };
}

/**
 * The parts of a thrown value that help: an expected error (`PicoError`) says where it comes from by its code
 * and facts, any other one by its stack.
 */
function describeError(error: unknown): unknown {
  if (!(error instanceof Error)) return { message: String(error) };
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) };
  if (error instanceof PicoError) return { code: error.code, message: error.message, facts: error.facts, ...cause };
  return { name: error.name, message: error.message, stack: error.stack, ...cause };
}

/** `12:34:56.789 WARN  message key=value` from a JSON line; the time is UTC. Stacks follow on lines of their own. */
function formatTextLine(jsonLine: string): string {
  const { level, time, message, error, ...fields } = JSON.parse(jsonLine) as Record<string, unknown>;
  const facts = Object.entries(fields).map(([key, value]) => ` ${key}=${formatValue(value)}`);
  const head = `${String(time).slice(11, 23)} ${String(level).toUpperCase().padEnd(5)} ${escapeControls(String(message))}${facts.join("")}`;
  return `${head}${error === undefined ? "" : formatError(error as Record<string, unknown>)}\n`;
}

function formatError(error: Record<string, unknown>): string {
  const code = error.code === undefined ? "" : ` (${error.code})`;
  const stack = typeof error.stack === "string" ? error.stack.split("\n").filter((line) => /^\s+at /.test(line)) : [];
  const cause = typeof error.cause === "object" && error.cause !== null ? formatError(error.cause as Record<string, unknown>) : "";
  return `: ${escapeControls(String(error.message))}${code}${stack.map((line) => `\n${escapeControls(line)}`).join("")}${cause}`;
}

function formatValue(value: unknown): string {
  if (typeof value === "string" && /^[^\s"=\p{C}]+$/u.test(value)) return value;
  return escapeControls(JSON.stringify(value));
}
