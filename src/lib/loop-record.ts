/**
 * What became of the rounds of a background loop: what an operator looks at to see that it lives. A loop
 * whose last success grows old has died, hangs or fails, and `lastError` tells which.
 */
import type { Clock } from "./clock.ts";
import { messageOf } from "./errors.ts";
import { PROBLEM_CHARACTERS_MAX } from "./limits.ts";
import { boundedText } from "./plain-text.ts";

export interface LoopFigures {
  /** Lower case with underscores; never changes. */
  readonly name: string;
  /** Rounds that succeed are no further apart while there is little to do. */
  readonly intervalMs: number;
  /** Monotonic times of the ends of rounds; null before the first. */
  readonly lastSuccessMs: number | null;
  readonly lastFailureMs: number | null;
  /** Message of the last failure, bounded, without control characters; kept when rounds succeed again. */
  readonly lastError: string | null;
  /** Since the start. */
  readonly failures: number;
}

export class LoopRecord implements LoopFigures {
  #lastSuccessMs: number | null = null;
  #lastFailureMs: number | null = null;
  #lastError: string | null = null;
  #failures = 0;

  constructor(
    readonly name: string,
    readonly intervalMs: number,
    private readonly clock: Pick<Clock, "monotonicMs">,
  ) {}

  get lastSuccessMs(): number | null {
    return this.#lastSuccessMs;
  }

  get lastFailureMs(): number | null {
    return this.#lastFailureMs;
  }

  get lastError(): string | null {
    return this.#lastError;
  }

  get failures(): number {
    return this.#failures;
  }

  succeeded(): void {
    this.#lastSuccessMs = this.clock.monotonicMs();
  }

  failed(error: unknown): void {
    this.#lastFailureMs = this.clock.monotonicMs();
    this.#lastError = boundedText(messageOf(error), PROBLEM_CHARACTERS_MAX);
    this.#failures += 1;
  }
}
