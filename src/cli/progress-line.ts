/** What a command is at, on one line of the terminal that is written over; nothing where stderr is no terminal. */
import type { Clock } from "../lib/clock.ts";
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
