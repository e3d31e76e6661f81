/** When a failed attempt is repeated: bounded in count and time, with back-off and jitter, never sooner than the server asks. */
import { backOffMs } from "../lib/back-off.ts";
import { CLIENT_ATTEMPTS_MAX, CLIENT_RETRY_MS_MAX, CLIENT_RETRY_MS_MIN, CLIENT_RETRY_TOTAL_MS } from "../lib/limits.ts";
import { type ClientClock, type ClientRandom, pause } from "./client-seams.ts";
import { StreamError } from "./stream-error.ts";

/** Bounds of the retries of one request; of a live read or a producer: of one outage, from the last progress on. */
export interface RetryOptions {
  /** Attempts in all; 1 turns retries off. @default 16 */
  readonly attemptsMax?: number;
  /** No attempt begins later than this after the first failure, in milliseconds. @default 60000 */
  readonly totalMs?: number;
  /** Pause before the second attempt, in milliseconds; it doubles from there, and half of it is chance. @default 50 */
  readonly pauseMsMin?: number;
  /** Longest pause, unless the server asks for a longer one, in milliseconds. @default 5000 */
  readonly pauseMsMax?: number;
  /** Called before the pause that precedes another attempt, to tell somebody that it is waited. What it throws ends the attempts. */
  readonly onPause?: (pause: RetryPause) => void;
}

/** Why and how long it is waited. */
export interface RetryPause {
  readonly error: StreamError;
  /** Attempts that failed, since the last progress. */
  readonly failures: number;
  readonly pauseMs: number;
}

export class RetryBudget {
  readonly #options: RetryOptions;
  readonly #clock: ClientClock;
  readonly #random: ClientRandom;
  #failures = 0;
  #firstFailureMs = 0;
  #isOutcomeUnknown = false;

  constructor(options: RetryOptions, seams: { readonly clock: ClientClock; readonly random: ClientRandom }) {
    this.#options = options;
    this.#clock = seams.clock;
    this.#random = seams.random;
  }

  /** Attempts that failed since the last progress. */
  get failures(): number {
    return this.#failures;
  }

  /** One of them may have done what it was to do. */
  get isOutcomeUnknown(): boolean {
    return this.#isOutcomeUnknown;
  }

  /** Progress was made: the next failure is the first again. */
  reset(): void {
    this.#failures = 0;
    this.#isOutcomeUnknown = false;
  }

  /** Resolves when it is time for another attempt; throws the error if there is to be none. */
  async again(error: unknown, signal?: AbortSignal): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    if (this.#failures === 0) this.#firstFailureMs = nowMs;
    this.#failures += 1;
    if (!(error instanceof StreamError)) throw error;
    this.#isOutcomeUnknown ||= error.isOutcomeUnknown;
    const { attemptsMax = CLIENT_ATTEMPTS_MAX, totalMs = CLIENT_RETRY_TOTAL_MS } = this.#options;
    const { pauseMsMin = CLIENT_RETRY_MS_MIN, pauseMsMax = CLIENT_RETRY_MS_MAX } = this.#options;
    const pauseMs = Math.max(error.facts.retryAfterMs ?? 0, backOffMs(this.#random, this.#failures, pauseMsMin, pauseMsMax));
    const isOver = this.#failures >= attemptsMax || nowMs + pauseMs > this.#firstFailureMs + totalMs;
    if (!error.isRetryable || isOver) throw this.#final(error);
    this.#options.onPause?.({ error, failures: this.#failures, pauseMs });
    await pause(this.#clock, pauseMs, signal);
  }

  /** An earlier attempt may have done what the last one was refused for. */
  #final(error: StreamError): StreamError {
    if (this.#failures === 1) return error;
    return error.with({ attempts: this.#failures }, { isOutcomeUnknown: this.#isOutcomeUnknown });
  }
}
