/**
 * What the log is told of something that fails for a while: a warning with the cause when that begins, a line when it
 * is over, and nothing for each failure between (they would fill the log). Whoever fails some and not others is away
 * until nothing has failed for `calmMs`.
 */
import type { Clock, Timer } from "./clock.ts";
import type { LogFields, Logger } from "./log.ts";

export interface OutageLogOptions {
  readonly clock: Clock;
  readonly log: Logger;
  /** At the first failure: what fails, and what that means. */
  readonly begun: string;
  readonly over: string;
  /** Of both lines: which store. */
  readonly fields: LogFields;
  /** From the first success to the line that it is over; 0: at once. */
  readonly calmMs: number;
}

export class OutageLog {
  readonly #options: OutageLogOptions;
  #failures = 0;
  #calm: Timer | null = null;
  #isStopped = false;

  constructor(options: OutageLogOptions) {
    this.#options = options;
  }

  /** Since the warning; 0: nothing fails. */
  get failures(): number {
    return this.#failures;
  }

  failed(error: unknown): void {
    if (this.#isStopped) return;
    this.#calm?.cancel();
    this.#calm = null;
    const { log, begun, fields } = this.#options;
    this.#failures += 1;
    if (this.#failures === 1) log.warn(begun, { ...fields, error });
  }

  /** Something worked that was begun behind the last failure. */
  succeeded(): void {
    if (this.#failures === 0 || this.#calm !== null || this.#isStopped) return;
    const { clock, calmMs } = this.#options;
    if (calmMs === 0) this.#end();
    else this.#calm = clock.schedule(calmMs, () => this.#end());
  }

  /** From here on nothing is told. */
  stop(): void {
    this.#isStopped = true;
    this.#calm?.cancel();
  }

  #end(): void {
    const { log, over, fields } = this.#options;
    log.info(over, { ...fields, failures: this.#failures });
    this.#failures = 0;
    this.#calm = null;
  }
}
