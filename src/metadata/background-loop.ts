/**
 * Rounds of background work, one behind the other, with a pause between. An error ends its round and
 * never the loop (FAULTS G7); a broken invariant or damage is fatal. Whoever watches it reads `lastSuccessMs`.
 */
import { InvariantError } from "../lib/assert.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { isPicoError } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";

export interface BackgroundLoopOptions {
  /** For the log: what a round does. */
  readonly name: string;
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
  #failures = 0;
  #lastSuccessMs: number | null = null;

  constructor(options: BackgroundLoopOptions) {
    this.#options = options;
  }

  get name(): string {
    return this.#options.name;
  }

  /** Monotonic time at which the last round without an error ended; null before the first. */
  get lastSuccessMs(): number | null {
    return this.#lastSuccessMs;
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
    const { name, clock, logger, round, onFatal } = this.#options;
    try {
      await round();
      this.#lastSuccessMs = clock.monotonicMs();
      if (this.#failures > 0) logger.info(`${name} works again`, { failures: this.#failures });
      this.#failures = 0;
    } catch (error) {
      // The first of a row only: a database that is away would fill the log.
      if (this.#failures === 0) logger.warn(`${name} failed and will be tried again`, { error });
      this.#failures += 1;
      if (error instanceof InvariantError || isPicoError(error, "corrupt")) onFatal(error);
    }
  }
}
