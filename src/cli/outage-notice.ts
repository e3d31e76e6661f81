/**
 * Tells on stderr that the server is away and that it is waited for, once an outage, and when it answers again.
 *
 * Whoever has answered is waited for, also one that has only said that it is busy or starting. An address where nobody
 * has ever answered is more likely a wrong one: that is told at once.
 */
import { type Fetch, globalSeams } from "../client/client-seams.ts";
import type { RetryOptions } from "../client/retry.ts";
import { OFFSET_MAX } from "../lib/limits.ts";
import { describeFailure } from "./failure.ts";
import type { ProgramProcess } from "./program-process.ts";
import type { ProgressLine } from "./progress-line.ts";
import { toPlainLine } from "./terminal-text.ts";

/** A server that is busy, or restarted at once, is no outage that a person must hear of. */
const QUIET_MS = 500;
const PAUSE_MS_MAX = 1000;

export class OutageNotice {
  readonly #self: ProgramProcess;
  readonly #retryMs: number;
  readonly #progress: ProgressLine | null;
  /** Monotonic; null: the server answers. */
  #sinceMs: number | null = null;
  #isTold = false;
  /** Whatever it said. */
  #hasAnswered = false;

  /** `progress`: a line that gives way. */
  constructor(self: ProgramProcess, retryMs: number, progress: ProgressLine | null = null) {
    this.#self = self;
    this.#retryMs = retryMs;
    this.#progress = progress;
  }

  /** Bounds of one outage: its time, not the number of attempts. */
  get retry(): RetryOptions {
    return {
      attemptsMax: this.#retryMs === 0 ? 1 : OFFSET_MAX,
      totalMs: this.#retryMs,
      pauseMsMax: PAUSE_MS_MAX,
      onPause: ({ error }) => this.#failed(error),
    };
  }

  /** The network, which is watched for the first answer behind an outage. */
  readonly fetch: Fetch = async (url, init) => {
    const response = await globalSeams.fetch(url, init);
    this.#hasAnswered = true;
    if (response.ok) this.#answered();
    return response;
  };

  #failed(error: unknown): void {
    if (!this.#hasAnswered) throw error;
    const nowMs = this.#self.clock.monotonicMs();
    this.#sinceMs ??= nowMs;
    if (this.#isTold || nowMs - this.#sinceMs < QUIET_MS) return;
    this.#isTold = true;
    this.#say(`${describeFailure(error)}; trying again for up to ${this.#retryMs / 1000} s`);
  }

  #answered(): void {
    if (this.#isTold && this.#sinceMs !== null) {
      this.#say(`the server answers again after ${((this.#self.clock.monotonicMs() - this.#sinceMs) / 1000).toFixed(1)} s`);
    }
    this.#sinceMs = null;
    this.#isTold = false;
  }

  #say(text: string): void {
    this.#progress?.clear();
    this.#self.errors.write(`pico: ${toPlainLine(text)}\n`);
  }
}
