/**
 * The one place where calls to a store are given time and are tried again: attempts with a time-out each, back-off
 * with jitter between them, a deadline over all, and so many requests at once.
 *
 * Data objects and WAL segments have places of their own beside reads, so that many reads never keep a write waiting.
 */
import { backOffMs } from "../lib/back-off.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import {
  KIB,
  S3_ATTEMPT_TIMEOUT_MS,
  S3_ATTEMPTS_MAX,
  S3_CALL_TIMEOUT_MS,
  S3_READS_MAX,
  S3_RETRY_MS_MAX,
  S3_RETRY_MS_MIN,
  S3_WRITES_MAX,
} from "../lib/limits.ts";
import type { Random } from "../lib/random.ts";
import { withDeadline } from "./call-deadline.ts";
import { CallGate } from "./call-gate.ts";
import { connectionFailure, lateAnswer, S3Error, storeError } from "./s3-failure.ts";
import type { S3Place } from "./s3-place.ts";

export interface S3Call {
  /** For messages: `create`. */
  readonly operation: string;
  /** Without the prefix; null where the call is about the bucket. */
  readonly key: string | null;
  /** Whether an attempt without an answer may have changed something. */
  readonly isWrite: boolean;
  /** Bytes that go over the wire, as far as known: more take longer. */
  readonly bytes: number;
}

export class S3Calls {
  readonly #place: S3Place;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #reads = new CallGate(S3_READS_MAX);
  readonly #writes = new CallGate(S3_WRITES_MAX);
  readonly #underWay = new Set<AbortController>();
  #isClosed = false;

  constructor(place: S3Place, clock: Clock, random: Random) {
    this.#place = place;
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Runs attempts until one resolves or none may help. `isInDoubt` tells an attempt whether one before it may have
   * taken effect. Throws `storage_failed`, `storage_full`, and of a write `unknown_outcome`.
   */
  async run<T>(call: S3Call, attempt: (signal: AbortSignal, isInDoubt: boolean) => Promise<T>): Promise<T> {
    this.checkOpen(call.operation);
    const whole = new AbortController();
    const timer = this.#clock.schedule(S3_CALL_TIMEOUT_MS + transferMs(call.bytes), () => whole.abort());
    this.#underWay.add(whole);
    let isInDoubt = false;
    try {
      for (let number = 1; ; number++) {
        try {
          return await this.#attempt(call, whole.signal, (signal) => attempt(signal, isInDoubt));
        } catch (error) {
          const failed = error instanceof S3Error ? error : connectionFailure(error);
          if (call.isWrite && failed.failure.isInDoubt) isInDoubt = true;
          const isOver = whole.signal.aborted || !failed.failure.isRetryable || number >= S3_ATTEMPTS_MAX;
          if (!isOver) await sleep(this.#clock, backOffMs(this.#random, number, S3_RETRY_MS_MIN, S3_RETRY_MS_MAX), whole.signal);
          if (isOver || whole.signal.aborted) throw this.#errorOf(call, isInDoubt, failed);
        }
      }
    } finally {
      timer.cancel();
      this.#underWay.delete(whole);
    }
  }

  checkOpen(operation: string): void {
    if (this.#isClosed) throw new PicoError("storage_failed", `${operation} refused: the store is closed`, { operation });
  }

  /** Ends what is under way. */
  close(): void {
    this.#isClosed = true;
    for (const call of this.#underWay) call.abort();
  }

  async #attempt<T>({ bytes, isWrite }: S3Call, whole: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const timeoutMs = S3_ATTEMPT_TIMEOUT_MS + transferMs(bytes);
    const gate = isWrite ? this.#writes : this.#reads;
    if (!(await gate.enter(whole))) throw waitedTooLong();
    const attempt = new AbortController();
    const abort = () => attempt.abort();
    whole.addEventListener("abort", abort);
    const expire = () => {
      attempt.abort();
      return lateAnswer(timeoutMs);
    };
    try {
      return await withDeadline(this.#clock, timeoutMs, work(attempt.signal), expire);
    } finally {
      whole.removeEventListener("abort", abort);
      gate.leave();
    }
  }

  #errorOf({ operation, key }: S3Call, isInDoubt: boolean, error: S3Error): PicoError {
    return storeError({ operation, place: this.#place, key, isInDoubt, error });
  }
}

/** A connection of a megabyte a second is not given up. */
function transferMs(bytes: number): number {
  return bytes / KIB;
}

/** Nothing was sent. */
function waitedTooLong(): S3Error {
  return new S3Error({
    status: null,
    code: "Waited",
    message: "too many requests are under way, or the store was closed",
    isRetryable: false,
    isInDoubt: false,
    region: null,
  });
}
