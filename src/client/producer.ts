/**
 * An idempotent, batching writer of one stream.
 *
 * - Each request carries producer id, epoch and a sequence that rises by one, and one request is under way at a time.
 *   What has no answer is sent again as it was, under the same sequence, which the server takes once. So records are
 *   in the stream once and in order, whatever the network does.
 * - An idle producer sends at once (after `lingerMs`, if set); what comes while a request is under way is the next batch.
 * - What is queued or under way is bounded in bytes and records. Beyond that `write` and `append` wait.
 * - The first refusal, or an outage longer than the bounds of the retries, ends the producer: nothing behind a gap
 *   is ever sent. Everything not acknowledged, and each later call, is rejected with that error.
 */
import { utf8Encoder } from "../lib/bytes.ts";
import {
  BATCH_RECORDS_MAX,
  CLIENT_ATTEMPTS_MAX,
  OFFSET_MAX,
  PRODUCER_BATCH_BYTES,
  PRODUCER_BATCH_RECORDS,
  PRODUCER_CALLS_WAITING_MAX,
  PRODUCER_ID_BYTES_MAX,
  PRODUCER_QUEUE_BYTES,
  PRODUCER_QUEUE_RECORDS,
} from "../lib/limits.ts";
import { ProducerQueue, type QueuedRecord } from "./producer-queue.ts";
import type { RetryBudget, RetryOptions } from "./retry.ts";
import { isStreamError, StreamError } from "./stream-error.ts";
import type { AppendResult, ProducerStamp } from "./stream-handle.ts";
import type { Transport } from "./transport.ts";

export interface ProducerOptions<Result extends TakenBatch = TakenBatch> {
  /** Names the writer over its restarts: 1 to 1,024 bytes. Two that write at once need two ids. */
  readonly id: string;
  /** One more at each start of the same writer: a higher epoch fences all lower ones. @default 0 */
  readonly epoch?: number;
  /** Sequence of the first request: 0 in a new epoch; to go on in an epoch, one more than its last. @default 0 */
  readonly firstSeq?: number;
  /**
   * Where the stream knows a higher epoch, takes the one above it in place of failing as `fenced`; only at the first
   * request. For writers that cannot store their epoch. Of two that do so at once the later one wins. @default false
   */
  readonly claim?: boolean;
  /**
   * Writers that do not know of each other may use this id at once: who is `fenced` takes the id over, also later than at
   * the first request, unless a lost answer may have told that the batch is written. Give `epoch` a part that is chance.
   * For many short lives of writers, since a stream remembers each id for days and takes 10,000 of them. @default false
   */
  readonly isShared?: boolean;
  /** How long a lone record waits for company, in milliseconds: larger batches against a later acknowledgement. @default 0 */
  readonly lingerMs?: number;
  /** A batch is sent when it is this large; a larger record goes alone. In bytes. @default 1048576 */
  readonly batchBytesMax?: number;
  /** 1 to 10,000. @default 1000 */
  readonly batchRecordsMax?: number;
  /** Records queued or under way: more memory against fewer waits. In bytes. @default 16777216 */
  readonly queueBytesMax?: number;
  /** @default 10000 */
  readonly queueRecordsMax?: number;
  /** Bounds of one outage. @default those of the client */
  readonly retry?: RetryOptions;
  /** Told of each request that the stream took, and how many records it carried, in order. */
  readonly onBatch?: (result: Result, count: number) => void;
  /** Ends the producer at once; what is under way may have been written. */
  readonly signal?: AbortSignal;
}

/** What a producer asks of an answer. */
export type TakenBatch = Pick<AppendResult<unknown>, "isDuplicate" | "producerSeq">;

/** A protocol, as a producer needs it. */
export interface ProducerLink<Input, Result extends TakenBatch, Ack> {
  /** A record as it goes into a batch. */
  encode(input: Input): Uint8Array;
  /** One attempt; `bodies` is empty for a close alone. */
  send(bodies: readonly Uint8Array[], stamp: ProducerStamp, close: boolean, signal: AbortSignal | undefined): Promise<Result>;
  /** What is told of the record at `index` of its batch. */
  ack(result: Result, stamp: ProducerStamp, index: number): Ack;
}

/** Writers that share an id draw their epochs from so many above the last one. */
const SHARED_EPOCH_STEP_MAX = 2 ** 20;

interface Flusher {
  readonly settledCount: number;
  readonly resolve: () => void;
  readonly reject: (reason: unknown) => void;
}

/**
 * Made by `PicoStream.producer`, `DurableStream.producer` and `DurableStream.jsonProducer`.
 *
 * @example
 * ```ts
 * import { PicoClient } from "picomq/client";
 *
 * const stream = new PicoClient({ url: "http://127.0.0.1:4437" }).stream("/orders");
 * await stream.create();
 * const producer = stream.producer({ id: "shop-1", claim: true });
 * for (let order = 0; order < 1000; order++) await producer.write(`order ${order}`); // waits for room only
 * const { seq } = await producer.append("last order"); // waits until it is durable
 * console.log(`durable up to ${seq}`);
 * await producer.close();
 * ```
 */
export class Producer<Input, Result extends TakenBatch, Ack> {
  readonly id: string;
  readonly #link: ProducerLink<Input, Result, Ack>;
  readonly #transport: Transport;
  readonly #options: ProducerOptions<Result>;
  readonly #queue: ProducerQueue<Ack>;
  readonly #batchBytesMax: number;
  readonly #batchRecordsMax: number;
  readonly #onAbort = () => this.#fail(this.#options.signal?.reason);
  #epoch: number;
  #nextSeq: number;
  #hasSent = false;
  /** An attempt for the batch under way failed in a way that does not exclude that the stream has it. */
  #mayBeWritten = false;
  /** In a row, without an acknowledgement. */
  #claims = 0;
  #isRunning = false;
  #underWay: readonly QueuedRecord<Ack>[] = [];
  /** Records that got or await a place, and those acknowledged, since the beginning. */
  #acceptedCount = 0;
  #settledCount = 0;
  #flushers: Flusher[] = [];
  #endLinger: (() => void) | null = null;
  #failure: { readonly reason: unknown } | null = null;
  #isClosing = false;
  /** The stream is to be closed with the last batch. */
  #isStreamCloseDue = false;
  #closed: Promise<void> | null = null;

  /** Not for direct use: the handle of a stream makes producers. */
  constructor(transport: Transport, link: ProducerLink<Input, Result, Ack>, options: ProducerOptions<Result>) {
    checkOptions(options);
    this.id = options.id;
    this.#transport = transport;
    this.#link = link;
    this.#options = options;
    this.#epoch = options.epoch ?? 0;
    this.#nextSeq = options.firstSeq ?? 0;
    this.#batchBytesMax = options.batchBytesMax ?? PRODUCER_BATCH_BYTES;
    this.#batchRecordsMax = options.batchRecordsMax ?? PRODUCER_BATCH_RECORDS;
    this.#queue = new ProducerQueue({
      bytesMax: options.queueBytesMax ?? PRODUCER_QUEUE_BYTES,
      recordsMax: options.queueRecordsMax ?? PRODUCER_QUEUE_RECORDS,
      waitingMax: PRODUCER_CALLS_WAITING_MAX,
    });
    if (options.signal?.aborted) this.#failure = { reason: options.signal.reason };
    else options.signal?.addEventListener("abort", this.#onAbort, { once: true });
  }

  /** The epoch in use; with `claim` known only behind the first acknowledgement. */
  get epoch(): number {
    return this.#epoch;
  }

  /** Sequence of the next new request. */
  get nextSeq(): number {
    return this.#nextSeq;
  }

  /** Records handed over and not acknowledged. */
  get pendingCount(): number {
    return this.#acceptedCount - this.#settledCount;
  }

  /**
   * Hands a record over; resolves once it has its place in the queue, not when it is durable: see `flush`. Records are
   * sent in the order of the calls. Rejects with what ended the producer, `producer_closed`, or `queue_full`.
   */
  async write(input: Input): Promise<void> {
    await this.#enqueue({ bytes: this.#encode(input), waiter: null });
  }

  /** Hands a record over; resolves when it is durable. Rejects as `write` does, or with what became of its batch. */
  async append(input: Input): Promise<Ack> {
    const bytes = this.#encode(input);
    return new Promise<Ack>((resolve, reject) => {
      this.#enqueue({ bytes, waiter: { resolve, reject } }).catch(reject);
    });
  }

  /** Resolves when everything handed over before is durable; rejects with what ended the producer. Cuts `lingerMs` short. */
  flush(): Promise<void> {
    if (this.#failure !== null) return Promise.reject(this.#failure.reason);
    if (this.#settledCount >= this.#acceptedCount) return Promise.resolve();
    const flushed = new Promise<void>((resolve, reject) => this.#flushers.push({ settledCount: this.#acceptedCount, resolve, reject }));
    this.#endLinger?.();
    return flushed;
  }

  /**
   * Takes no more records, and resolves when all are durable. With `closeStream` the last batch also closes the
   * stream, in the same step and as safe to repeat. Later calls return what the first one did.
   */
  close({ closeStream = false }: { readonly closeStream?: boolean } = {}): Promise<void> {
    this.#closed ??= this.#finish(closeStream);
    return this.#closed;
  }

  /** `close` without closing the stream, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #finish(closeStream: boolean): Promise<void> {
    this.#isClosing = true;
    this.#isStreamCloseDue = closeStream;
    try {
      await this.flush();
      // Nothing was left that the close could go with.
      if (this.#isStreamCloseDue) await this.#sendBatch([], true);
    } catch (error) {
      this.#fail(error);
      throw error;
    } finally {
      this.#options.signal?.removeEventListener("abort", this.#onAbort);
    }
  }

  #encode(input: Input): Uint8Array {
    if (this.#failure !== null) throw this.#failure.reason;
    if (this.#isClosing) throw new StreamError("producer_closed", `producer ${this.id} was closed and takes no more records`);
    return this.#link.encode(input);
  }

  #enqueue(record: QueuedRecord<Ack>): Promise<void> {
    const admitted = this.#queue.add(record);
    this.#acceptedCount += 1;
    if (this.#isBatchFull()) this.#endLinger?.();
    if (!this.#isRunning) {
      this.#isRunning = true;
      void this.#run();
    }
    return admitted;
  }

  async #run(): Promise<void> {
    try {
      while (this.#queue.count > 0) {
        await this.#linger();
        const batch = this.#queue.take(this.#batchBytesMax, this.#batchRecordsMax);
        const isLast = this.#queue.count === 0 && this.#queue.waitingCount === 0;
        if (batch.length > 0) await this.#sendBatch(batch, isLast && this.#isStreamCloseDue);
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isRunning = false;
    }
  }

  /** Lets a batch gather: at least until the caller's present turn is over. */
  async #linger(): Promise<void> {
    const { lingerMs = 0 } = this.#options;
    if (lingerMs === 0 || this.#isBatchFull() || this.#flushers.length > 0) return;
    await new Promise<void>((resolve) => {
      const timer = this.#transport.seams.clock.schedule(lingerMs, resolve);
      this.#endLinger = () => {
        timer.cancel();
        resolve();
      };
    });
    this.#endLinger = null;
  }

  #isBatchFull(): boolean {
    if (this.#queue.waitingCount > 0) return true;
    return this.#queue.count >= this.#batchRecordsMax || this.#queue.heldBytes >= this.#batchBytesMax;
  }

  async #sendBatch(batch: readonly QueuedRecord<Ack>[], close: boolean): Promise<void> {
    this.#underWay = batch;
    this.#mayBeWritten = false;
    const budget = this.#transport.budget(this.#options.retry);
    const bodies = batch.map(({ bytes }) => bytes);
    for (;;) {
      const stamp = { id: this.id, epoch: this.#epoch, seq: this.#nextSeq };
      try {
        const result = await this.#link.send(bodies, stamp, close, this.#options.signal);
        if (this.#isShared && result.isDuplicate && !this.#mayBeWritten && this.#raiseEpoch(stamp.epoch)) continue;
        this.#checkTaken(result, stamp, budget);
        this.#settle(batch, result, stamp);
        if (close) this.#isStreamCloseDue = false;
        return;
      } catch (error) {
        if (this.#claim(error, budget)) continue;
        // A server that is ended by force answers with 503 too, and an entry that it had begun may survive.
        this.#mayBeWritten ||= isStreamError(error) && (error.isOutcomeUnknown || (error.status ?? 0) >= 500);
        await budget.again(error, this.#options.signal);
      }
    }
  }

  /**
   * A repeat is taken for ours only where it can be: a fresh epoch whose first request was there before, or a sequence
   * that the stream has passed, is somebody else's, and their records stand where ours should.
   */
  #checkTaken(result: Result, { id, epoch, seq }: ProducerStamp, budget: RetryBudget): void {
    if (!result.isDuplicate) return;
    const isFresh = !this.#hasSent && this.#options.firstSeq === undefined && !budget.isOutcomeUnknown;
    const isForeign = this.#isShared ? !this.#mayBeWritten : isFresh;
    if (!isForeign && (result.producerSeq ?? seq) <= seq) return;
    const message = `the stream took sequence ${seq} of epoch ${epoch} from producer ${id} before, so this batch was not written`;
    throw new StreamError("conflict", `${message}; raise the epoch at each start, and use an id for each writer`);
  }

  /** Takes the epoch above the stream's; not if an attempt under a lower one may have been written. */
  #claim(error: unknown, budget: RetryBudget): boolean {
    if (!isStreamError(error, "fenced") || error.facts.producerEpoch === undefined) return false;
    if (this.#isShared && this.#mayBeWritten) throw error.with({}, { isOutcomeUnknown: true });
    if (!this.#isShared && (this.#options.claim !== true || this.#hasSent || budget.failures > 0)) return false;
    return this.#raiseEpoch(error.facts.producerEpoch);
  }

  /** Goes on in an epoch above this one, from sequence 0. Two that share an id must not come to the same one: chance keeps them apart. */
  #raiseEpoch(above: number): boolean {
    if (this.#claims >= CLIENT_ATTEMPTS_MAX) return false;
    const step = this.#isShared ? 1 + Math.floor(this.#transport.seams.random.fraction() * SHARED_EPOCH_STEP_MAX) : 1;
    if (above + step > OFFSET_MAX) return false;
    this.#claims += 1;
    this.#epoch = above + step;
    this.#nextSeq = 0;
    return true;
  }

  get #isShared(): boolean {
    return this.#options.isShared === true;
  }

  #settle(batch: readonly QueuedRecord<Ack>[], result: Result, stamp: ProducerStamp): void {
    // Aborted meanwhile: its callers were told so.
    if (this.#failure !== null) return;
    this.#underWay = [];
    this.#hasSent = true;
    this.#claims = 0;
    this.#nextSeq = stamp.seq + 1;
    this.#settledCount += batch.length;
    for (const [index, { waiter }] of batch.entries()) waiter?.resolve(this.#link.ack(result, stamp, index));
    this.#queue.release(batch);
    const flushed = this.#flushers.filter(({ settledCount }) => settledCount <= this.#settledCount);
    this.#flushers = this.#flushers.filter(({ settledCount }) => settledCount > this.#settledCount);
    for (const { resolve } of flushed) resolve();
    this.#options.onBatch?.(result, batch.length);
  }

  #fail(reason: unknown): void {
    if (this.#failure !== null) return;
    this.#failure = { reason };
    for (const { waiter } of this.#underWay) waiter?.reject(reason);
    this.#queue.fail(reason);
    for (const { reject } of this.#flushers) reject(reason);
    this.#flushers = [];
    this.#endLinger?.();
  }
}

function checkOptions(options: Omit<ProducerOptions, "onBatch">): void {
  const { id, epoch = 0, firstSeq = 0, lingerMs = 0 } = options;
  const size = utf8Encoder.encode(id).length;
  if (size < 1 || size > PRODUCER_ID_BYTES_MAX) throw wrong("id", `a text of 1 to ${PRODUCER_ID_BYTES_MAX} bytes`);
  if (!isWholeIn(epoch, 0, OFFSET_MAX)) throw wrong("epoch", "a whole number");
  if (!isWholeIn(firstSeq, 0, OFFSET_MAX)) throw wrong("firstSeq", "a whole number");
  if (!(lingerMs >= 0 && Number.isFinite(lingerMs))) throw wrong("lingerMs", "a number of milliseconds");
  if (!isWholeIn(options.batchRecordsMax ?? 1, 1, BATCH_RECORDS_MAX)) throw wrong("batchRecordsMax", `1 to ${BATCH_RECORDS_MAX}`);
  for (const name of ["batchBytesMax", "queueBytesMax", "queueRecordsMax"] as const) {
    if (!isWholeIn(options[name] ?? 1, 1, OFFSET_MAX)) throw wrong(name, "a whole number above 0");
  }
}

function isWholeIn(value: number, min: number, max: number): boolean {
  return Number.isSafeInteger(value) && value >= min && value <= max;
}

function wrong(option: string, wanted: string): StreamError {
  return new StreamError("bad_request", `option ${option} of a producer must be ${wanted}`);
}
