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
  S3_READ_TIMEOUT_MS_MAX,
  S3_READS_MAX,
  S3_RETRY_MS_MAX,
  S3_RETRY_MS_MIN,
  S3_WRITES_MAX,
} from "../lib/limits.ts";
import type { Random } from "../lib/random.ts";
import { CallGate } from "./call-gate.ts";
import { connectionFailure, lateAnswer, S3Error, storeError } from "./s3-failure.ts";
import type { S3Place } from "./s3-place.ts";
import { TransferDeadline } from "./transfer-deadline.ts";

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

/** What an attempt tells of its answer, to be given time for it. */
export interface Receiving {
  /** So many bytes will come. False where they are expected well within the time that they have: then nobody need be told of them. */
  announce(bytes: number): boolean;
  /** Some of them came. */
  receive(): void;
}

interface Attempt {
  deadline: TransferDeadline | null;
}

export class S3Calls {
  readonly #place: S3Place;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #reads = new CallGate(S3_READS_MAX);
  readonly #writes = new CallGate(S3_WRITES_MAX);
  readonly #underWay = new Set<AbortController>();
  /** Attempts of reads that have a place. */
  #readsUnderWay = 0;
  /** Of the last long answer; infinite while there was none, or where it did not come whole. */
  #answerMsPerByte = Number.POSITIVE_INFINITY;
  #isClosed = false;

  /** `place`: for messages. */
  constructor(place: S3Place, clock: Clock, random: Random) {
    this.#place = place;
    this.#clock = clock;
    this.#random = random;
  }

  /**
   * Runs attempts until one resolves or none may help. `isInDoubt` tells an attempt whether one before it may have
   * taken effect; one that tells what it receives is not cut off while that goes on coming. Throws `storage_failed`,
   * `storage_full`, and of a write `unknown_outcome`.
   */
  async run<T>(call: S3Call, attempt: (signal: AbortSignal, isInDoubt: boolean, receiving: Receiving) => Promise<T>): Promise<T> {
    this.checkOpen(call.operation);
    const whole = new AbortController();
    const current: Attempt = { deadline: null };
    let isLast = false;
    const timer = this.#clock.schedule(S3_CALL_TIMEOUT_MS + transferMs(call.bytes), () => {
      // What goes on coming has a limit of its own, and no attempt after it.
      isLast = true;
      if (current.deadline?.isExtended !== true) whole.abort();
    });
    this.#underWay.add(whole);
    let isInDoubt = false;
    try {
      for (let number = 1; ; number++) {
        try {
          return await this.#attempt(call, number, whole.signal, current, (signal, receiving) => attempt(signal, isInDoubt, receiving));
        } catch (error) {
          const failed = error instanceof S3Error ? error : connectionFailure(error);
          if (call.isWrite && failed.failure.isInDoubt) isInDoubt = true;
          const isOver = isLast || whole.signal.aborted || !failed.failure.isRetryable || number >= S3_ATTEMPTS_MAX;
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

  async #attempt<T>(
    { bytes, isWrite }: S3Call,
    number: number,
    whole: AbortSignal,
    current: Attempt,
    work: (signal: AbortSignal, receiving: Receiving) => Promise<T>,
  ): Promise<T> {
    const gate = isWrite ? this.#writes : this.#reads;
    if (!(await gate.enter(whole))) throw waitedTooLong();
    if (!isWrite) this.#readsUnderWay += 1;
    const attempt = new AbortController();
    const abort = () => attempt.abort();
    whole.addEventListener("abort", abort);
    const late = Promise.withResolvers<never>();
    const deadline = this.#deadlineOf(bytes, (afterMs) => {
      late.reject(lateAnswer(afterMs));
      attempt.abort();
    });
    current.deadline = deadline;
    const receiving = new AnswerWatch(this.#clock, deadline, (announcedBytes) => number > 1 || this.#isSlow(announcedBytes, bytes));
    try {
      const result = await Promise.race([work(attempt.signal, receiving), late.promise]);
      this.#answerMsPerByte = receiving.msPerByte() ?? this.#answerMsPerByte;
      return result;
    } catch (error) {
      if (receiving.msPerByte() !== null) this.#answerMsPerByte = Number.POSITIVE_INFINITY;
      throw error;
    } finally {
      deadline.cancel();
      current.deadline = null;
      whole.removeEventListener("abort", abort);
      if (!isWrite) this.#readsUnderWay -= 1;
      gate.leave();
    }
  }

  /** Whether an answer may take more than half of its first time, if it comes as the last one did and all reads share the way. */
  #isSlow(announcedBytes: number, bytes: number): boolean {
    return !(this.#answerMsPerByte * announcedBytes * this.#readsUnderWay * 2 <= S3_ATTEMPT_TIMEOUT_MS + transferMs(bytes));
  }

  #deadlineOf(bytes: number, expire: (afterMs: number) => void): TransferDeadline {
    const firstMs = S3_ATTEMPT_TIMEOUT_MS + transferMs(bytes);
    // Those that came to their end meanwhile have had their part of the way, too.
    let sharedBy = 1;
    const limitMs = (announcedBytes: number) => {
      sharedBy = Math.max(sharedBy, this.#readsUnderWay);
      return Math.min(S3_ATTEMPT_TIMEOUT_MS + transferMs(announcedBytes * sharedBy), S3_READ_TIMEOUT_MS_MAX);
    };
    return new TransferDeadline(this.#clock, { firstMs, stepMs: S3_ATTEMPT_TIMEOUT_MS, limitMs }, expire);
  }

  #errorOf({ operation, key }: S3Call, isInDoubt: boolean, error: S3Error): PicoError {
    return storeError({ operation, place: this.#place, key, isInDoubt, error });
  }
}

/** One answer of a read while it comes. */
class AnswerWatch implements Receiving {
  #announcedBytes = 0;
  #announcedAtMs = 0;

  constructor(
    private readonly clock: Clock,
    private readonly deadline: TransferDeadline,
    private readonly isSlow: (announcedBytes: number) => boolean,
  ) {}

  announce(bytes: number): boolean {
    this.#announcedBytes = bytes;
    this.#announcedAtMs = this.clock.monotonicMs();
    this.deadline.announce(bytes);
    return this.isSlow(bytes);
  }

  receive(): void {
    this.deadline.receive();
  }

  /** Since it was announced; null where it was not. */
  msPerByte(): number | null {
    return this.#announcedBytes === 0 ? null : (this.clock.monotonicMs() - this.#announcedAtMs) / this.#announcedBytes;
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
