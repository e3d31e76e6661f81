/** What a command is at, on one line of the terminal that is written over; nothing where stderr is no terminal. */
import type { Clock } from "../lib/clock.ts";
import { KIB } from "../lib/limits.ts";
import type { LogDestination } from "../lib/log.ts";

export interface ProgressProcess {
  readonly errors: LogDestination;
  readonly isErrorsTerminal: boolean;
  readonly clock: Clock;
}

const PROGRESS_INTERVAL_MS = 100;
/** Back to the start of the line, and empty it. */
const CLEAR_LINE = "\r\u001b[K";

export class ProgressLine {
  readonly #self: ProgressProcess;
  #shownAtMs = Number.NEGATIVE_INFINITY;
  #isShown = false;

  constructor(self: ProgressProcess) {
    this.#self = self;
  }

  /** Shows what `text` gives, unless the line is too young. */
  show(text: () => string): void {
    const nowMs = this.#self.clock.monotonicMs();
    if (!this.#self.isErrorsTerminal || nowMs - this.#shownAtMs < PROGRESS_INTERVAL_MS) return;
    this.#shownAtMs = nowMs;
    this.#isShown = true;
    this.#self.errors.write(`${CLEAR_LINE}${text()}`);
  }

  clear(): void {
    if (this.#isShown) this.#self.errors.write(CLEAR_LINE);
    this.#isShown = false;
  }
}

/** `3.1 MiB` */
/** `1 record`, `2 records`. */
export function formatCount(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? "" : "s"}`;
}

export function formatBytes(count: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  while (value >= KIB && unit < units.length - 1) {
    value /= KIB;
    unit += 1;
  }
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}
