/**
 * A logger that remembers its last warnings and errors, so that an operator sees them without the log.
 * Equal ones are one, with their number. It never throws, as no logger does.
 */
import type { Clock } from "../lib/clock.ts";
import { isPicoError, messageOf } from "../lib/errors.ts";
import { PROBLEM_CHARACTERS_MAX, PROBLEMS_MAX } from "../lib/limits.ts";
import type { LogFields, Logger } from "../lib/log.ts";
import { boundedText } from "../lib/plain-text.ts";
import { RecentMap } from "../lib/recent-map.ts";

export interface Problem {
  /** Wall clock of the last time. */
  readonly atMs: number;
  readonly level: "warn" | "error";
  /** What the log says, with the error's message; bounded, without control characters. */
  readonly message: string;
  /** How often, while it was among those remembered. */
  readonly count: number;
}

export class ProblemLog implements Logger {
  /** By level and message, the latest last. Shared, like the counts, with the loggers made from this one. */
  readonly #problems: RecentMap<string, Problem>;
  readonly #counts: Record<Problem["level"], number>;

  constructor(
    private readonly log: Logger,
    private readonly clock: Pick<Clock, "nowMs">,
    problems = new RecentMap<string, Problem>(PROBLEMS_MAX),
    counts = { warn: 0, error: 0 },
  ) {
    this.#problems = problems;
    this.#counts = counts;
  }

  /** The latest first. */
  get problems(): readonly Problem[] {
    return [...this.#problems.values()].reverse();
  }

  /** Since the start. */
  get counts(): Readonly<Record<Problem["level"], number>> {
    return this.#counts;
  }

  trace(message: string, fields?: LogFields): void {
    this.log.trace(message, fields);
  }

  debug(message: string, fields?: LogFields): void {
    this.log.debug(message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.log.info(message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.log.warn(message, fields);
    this.#remember("warn", message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.log.error(message, fields);
    this.#remember("error", message, fields);
  }

  child(fields: LogFields): Logger {
    return new ProblemLog(this.log.child(fields), this.clock, this.#problems, this.#counts);
  }

  #remember(level: Problem["level"], text: string, fields: LogFields | undefined): void {
    this.#counts[level] += 1;
    const message = boundedText(describe(text, fields?.error), PROBLEM_CHARACTERS_MAX);
    const key = `${level} ${message}`;
    const count = (this.#problems.get(key)?.count ?? 0) + 1;
    this.#problems.set(key, { atMs: this.clock.nowMs(), level, message, count });
  }
}

function describe(text: string, error: unknown): string {
  if (error === undefined) return text;
  const code = isPicoError(error) ? ` (${error.code})` : "";
  return `${text}: ${messageOf(error)}${code}`;
}
