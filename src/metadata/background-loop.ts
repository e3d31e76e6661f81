/**
 * Rounds of background work, one behind the other, with a pause between. An error ends its round and
 * never the loop (FAULTS G7); a broken invariant or damage is fatal. Whoever watches it reads `record`.
 */
import { InvariantError } from "../lib/assert.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { isPicoError } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import { type LoopFigures, LoopRecord } from "../lib/loop-record.ts";

export interface BackgroundLoopOptions {
  /** For operators: lower case with underscores. */
  readonly name: string;
  /** For the log: what a round does. */
  readonly task: string;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly round: () => Promise<void>;
  readonly onFatal: (error: unknown) => void;
}

export class BackgroundLoop {
  readonly #options: BackgroundLoopOptions;
  #running: Promise<void> | null = null;
  #isStopped = false;
  #isWoken = false;
  #pause: AbortController | null = null;
  /** Of rounds in a row. */
  #failures = 0;
  readonly #record: LoopRecord;

  constructor(options: BackgroundLoopOptions) {
    this.#options = options;
    this.#record = new LoopRecord(options.name, options.intervalMs, options.clock);
  }

  get record(): LoopFigures {
    return this.#record;
  }

  /** Begins with a round at once. Calling it again does nothing. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends the pause; a round under way is followed by another at once. */
  wake(): void {
    this.#isWoken = true;
    this.#pause?.abort();
  }

  /** Starts no further round, and resolves when the one under way is over. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    this.#pause?.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, intervalMs } = this.#options;
    while (!this.#isStopped) {
      this.#isWoken = false;
      await this.#tryRound();
      if (this.#isStopped) return;
      if (this.#isWoken) continue;
      this.#pause = new AbortController();
      await sleep(clock, intervalMs, this.#pause.signal);
      this.#pause = null;
    }
  }

  async #tryRound(): Promise<void> {
    const { task, logger, round, onFatal } = this.#options;
    try {
      await round();
      this.#record.succeeded();
      if (this.#failures > 0) logger.info(`${task} works again`, { failures: this.#failures });
      this.#failures = 0;
    } catch (error) {
      // The first of a row only: a database that is away would fill the log.
      if (this.#failures === 0) logger.warn(`${task} failed and will be tried again`, { error });
      this.#failures += 1;
      this.#record.failed(error);
      if (error instanceof InvariantError || isPicoError(error, "corrupt")) onFatal(error);
    }
  }
}
