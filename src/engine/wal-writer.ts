/**
 * The writer of one registration's WAL: group commit over a `WalStore`.
 *
 * ```
 *  append ──▶ open segment ──seal──▶ queue ──at most inFlightMax──▶ create … settled
 *                                                                      │ in number order
 *                                                                  onDurable
 * ```
 *
 * An idle WAL seals at the end of the turn in which the first entry came and writes at once; while all
 * places of the store are taken the next segment collects. So latency is one store round trip when
 * there is little to do, and batches grow by themselves when there is much.
 *
 * Invariants:
 * - Numbers rise by one from 1. A number's bytes are fixed at its first attempt and are the only ones
 *   ever offered for it.
 * - `onDurable` is called once a segment, in number order, only when it and all below it are durable. It
 *   is the only ground for an acknowledgement: a bare count of another registration says nothing.
 * - What proves too old is held: where the answer for a segment comes so late that another node may have fenced this
 *   one since (its process stood still), it counts once a segment sent behind that has been taken; an answer that comes
 *   before finds a heartbeat enough.
 * - An outcome that is not known is settled by reading back, never assumed (`wal-settlement.ts`).
 * - Once fenced, failed or abandoned the writer is dead for good: nothing more becomes durable, whatever
 *   creates are still under way, and everyone who waits is told.
 */
import { assert } from "../lib/assert.ts";
import { ByteWriter } from "../lib/bytes.ts";
import type { Clock, Timer } from "../lib/clock.ts";
import { DurationHistogram } from "../lib/duration-histogram.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { fencedNode } from "../lib/fenced-node.ts";
import { FENCE_DOUBT_MARGIN_MS, SEGMENT_BYTES_DEFAULT, SEGMENT_BYTES_MAX, STALL_ANSWER_MS, WAL_SLAB_BYTES } from "../lib/limits.ts";
import type { Random } from "../lib/random.ts";
import type { RegistrationName } from "../lib/registration.ts";
import { ageMs, type SentAt, sentNow } from "../lib/sent-at.ts";
import { type WalPosition, WalSegment } from "./wal-segment.ts";
import { describeSegment, encodeSegmentHeader, reserveSegmentHeader, SEGMENT_HEADER_BYTES } from "./wal-segment-format.ts";
import { settleSegment } from "./wal-settlement.ts";
import type { WalStore } from "./wal-store.ts";

export interface WalWriterOptions {
  readonly store: WalStore;
  readonly registration: RegistrationName;
  readonly clock: Clock;
  readonly random: Random;
  /** A segment seals at this size, even while all places of the store are taken. */
  readonly segmentBytes?: number;
  /** How long an idle WAL collects before it writes; 0 writes at the end of the turn. */
  readonly lingerMs?: number;
  /** Others fence this registration no sooner than this from its last heartbeat. @default Infinity: nobody else can */
  readonly fenceableMs?: number;
  /** When the last heartbeat that was taken had been sent; null before the first. @default none ever */
  readonly lastHeartbeat?: () => SentAt | null;
  /** The segment and all below it are durable. Must not throw. */
  readonly onDurable: (segment: WalSegment) => void;
  /** The store did not take a segment, which is offered again. Must not throw. */
  readonly onRetry?: (error: PicoError) => void;
  /** Another registration holds one of our numbers: `fenced_node`. Called once, and then never `onFailed`. */
  readonly onFenced: (error: PicoError) => void;
  /** The writer is dead: `durability`, or `corrupt` where our own segment reads back damaged. Called once, and then never `onFenced`. */
  readonly onFailed: (error: PicoError) => void;
}

/** A sealed segment on its way. */
interface Flight {
  readonly segment: WalSegment;
  /** Just before the first attempt. */
  sentAt: SentAt;
  isSettled: boolean;
}

/** What was written, for operators. */
export interface WalFigures {
  /** Segments that the store has confirmed, and their bytes. */
  readonly segmentCount: number;
  readonly segmentBytes: number;
  /** Segments being written. */
  readonly inFlightCount: number;
  /** Bytes taken that are not durable yet. */
  readonly undurableBytes: number;
  /** From the first attempt of a segment to its confirmation. */
  readonly flushes: DurationHistogram;
}

/** Of what was not sent yet. */
const NEVER: SentAt = { monotonicMs: Number.NEGATIVE_INFINITY, wallMs: Number.NEGATIVE_INFINITY };

interface DurableWaiter {
  readonly number: number;
  readonly resolve: () => void;
  readonly reject: (error: PicoError) => void;
}

export class WalWriter {
  readonly #options: WalWriterOptions;
  readonly #segmentBytes: number;
  readonly #lingerMs: number;
  readonly #stopRetries = new AbortController();
  #slab: ByteWriter | null = null;
  #open: WalSegment | null = null;
  /** Sealed and not yet acknowledged, in number order; those from `#unsent` on were never attempted. */
  #flights: Flight[] = [];
  #unsent = 0;
  #inFlight = 0;
  #retrying = 0;
  #sealedNumber = 0;
  #durableNumber = 0;
  #settledCount = 0;
  #settledBytes = 0;
  readonly #flushes = new DurationHistogram();
  #trimPoint = 0;
  /** Monotonic time at which an answer was found to be too late; null while there is nothing to prove. */
  #doubtMs: number | null = null;
  #provenMs = Number.NEGATIVE_INFINITY;
  #sealIsDue = false;
  #linger: Timer | null = null;
  #waiters: DurableWaiter[] = [];
  #proof: Promise<number> | null = null;
  #isStopping = false;
  #failure: PicoError | null = null;

  constructor(options: WalWriterOptions) {
    this.#options = options;
    this.#segmentBytes = options.segmentBytes ?? SEGMENT_BYTES_DEFAULT;
    this.#lingerMs = options.lingerMs ?? 0;
  }

  /** Highest sealed number; 0 before the first. */
  get sealedNumber(): number {
    return this.#sealedNumber;
  }

  /** Highest number that is durable with all below it; 0 before the first. */
  get durableNumber(): number {
    return this.#durableNumber;
  }

  get figures(): WalFigures {
    return {
      segmentCount: this.#settledCount,
      segmentBytes: this.#settledBytes,
      inFlightCount: this.#inFlight,
      undurableBytes: this.#flights.reduce((sum, { segment }) => sum + segment.length, this.#open?.length ?? 0),
      flushes: this.#flushes,
    };
  }

  /** Why the writer is dead; null while it lives. */
  get failure(): PicoError | null {
    return this.#failure;
  }

  /** The store refuses, or has not answered for `STALL_ANSWER_MS`: appends should be refused meanwhile. */
  get isStalled(): boolean {
    if (this.#retrying > 0) return true;
    const oldest = this.#flights[0];
    return oldest !== undefined && this.#unsent > 0 && this.#options.clock.monotonicMs() - oldest.sentAt.monotonicMs >= STALL_ANSWER_MS;
  }

  /**
   * Monotonic time at which this registration was certainly not fenced: taken before the newest durable
   * segment was first sent.
   */
  get provenMs(): number {
    return this.#provenMs;
  }

  /**
   * Adds what `encode` writes as one entry. Nothing is durable before `onDurable` was called with the
   * segment. Throws the writer's failure, `unavailable` once it stops, or `payload_too_large` for an entry that
   * no segment holds; these and an error of `encode` leave no trace.
   */
  append(encode: (out: ByteWriter) => void): WalPosition {
    this.#assertTakesAppends();
    const segment = this.#openSegment();
    const out = this.#slab;
    assert(out !== null, "an open segment has a slab");
    const start = out.length;
    try {
      encode(out);
    } catch (error) {
      out.length = start;
      throw error;
    }
    if (out.length > SEGMENT_BYTES_MAX) return this.#appendToNext(out, start);
    const position = { segment, start, end: out.length };
    if (out.length >= this.#segmentBytes) this.#sealOpen();
    else this.#sealSoon();
    return position;
  }

  /** Cuts behind the last entry and returns the highest sealed number, the cut's. */
  seal(): number {
    if (this.#failure === null && this.#hasEntries()) this.#sealOpen();
    return this.#sealedNumber;
  }

  /** Resolves when `number`, which must be sealed, and all below it are durable. Rejects with the writer's failure. */
  whenDurable(number: number): Promise<void> {
    assert(number <= this.#sealedNumber, "a waiter waits for a sealed number");
    if (number <= this.#durableNumber) return Promise.resolve();
    if (this.#failure !== null) return Promise.reject(this.#failure);
    return new Promise((resolve, reject) => this.#waiters.push({ number, resolve, reject }));
  }

  /**
   * Proves that this registration is not fenced: sends what is open, or an empty segment, and resolves
   * when it and all below it are durable, with the monotonic time before it was first sent. Callers that
   * come meanwhile share the proof. Rejects with the writer's failure.
   */
  prove(): Promise<number> {
    this.#proof ??= this.#sendProof().finally(() => {
      this.#proof = null;
    });
    return this.#proof;
  }

  /** Highest number already trimmable, for the headers to come. Never falls. */
  setTrimPoint(number: number): void {
    assert(number <= this.#durableNumber, "only durable segments are trimmed");
    this.#trimPoint = Math.max(this.#trimPoint, number);
  }

  /** Takes no more appends, seals, and resolves when everything is durable. Rejects with the writer's failure. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    const number = this.seal();
    if (this.#failure !== null) throw this.#failure;
    await this.whenDurable(number);
  }

  /** Gives up at once: nothing more becomes durable, retries end, waiting callers get `unavailable`. */
  abandon(): void {
    this.#die(new PicoError("unavailable", "the WAL writer was stopped before everything was durable", { retryAfterSeconds: 1 }));
  }

  #assertTakesAppends(): void {
    if (this.#failure !== null) throw this.#failure;
    if (this.#isStopping) throw new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 });
  }

  #openSegment(): WalSegment {
    if (this.#open !== null) return this.#open;
    if (this.#slab === null) this.#slab = new ByteWriter(WAL_SLAB_BYTES);
    this.#slab.length = 0;
    reserveSegmentHeader(this.#slab);
    this.#open = WalSegment.open(this.#sealedNumber + 1, this.#slab);
    return this.#open;
  }

  /** Moves the entry written last, with which the open segment is too large, into a segment of its own. */
  #appendToNext(out: ByteWriter, start: number): WalPosition {
    const entry = out.buffer.slice(start, out.length);
    out.length = start;
    if (SEGMENT_HEADER_BYTES + entry.length > SEGMENT_BYTES_MAX) {
      throw new PicoError("payload_too_large", `a WAL entry of ${entry.length} bytes fits no segment of ${SEGMENT_BYTES_MAX}`, {
        limit: SEGMENT_BYTES_MAX,
        size: entry.length,
      });
    }
    this.#sealOpen();
    return this.append((next) => next.bytes(entry));
  }

  #hasEntries(): boolean {
    return this.#open !== null && this.#open.length > SEGMENT_HEADER_BYTES;
  }

  #hasRoom(): boolean {
    return this.#inFlight < this.#options.store.inFlightMax && this.#unsent === this.#flights.length;
  }

  /** Lets the entries of this turn, or of the linger time, share a segment. */
  #sealSoon(): void {
    if (this.#sealIsDue || !this.#hasRoom()) return;
    this.#sealIsDue = true;
    if (this.#lingerMs > 0) this.#linger = this.#options.clock.schedule(this.#lingerMs, this.#sealNow);
    else this.#options.clock.soon(this.#sealNow);
  }

  readonly #sealNow = (): void => {
    this.#sealIsDue = false;
    this.#linger = null;
    if (this.#failure === null && this.#hasEntries() && this.#hasRoom()) this.#sealOpen();
  };

  #sealOpen(): Flight {
    const segment = this.#open;
    const slab = this.#slab;
    assert(segment !== null && slab !== null, "there is an open segment to seal");
    // A full slab is handed over; else the segment gets an array of its own size, and the slab serves again.
    const isHandedOver = slab.length > WAL_SLAB_BYTES && slab.length >= slab.buffer.length * 0.875;
    segment.seal(isHandedOver ? slab.written() : slab.copy());
    if (isHandedOver || slab.buffer.length > WAL_SLAB_BYTES) this.#slab = null;
    this.#open = null;
    this.#sealedNumber = segment.number;
    this.#linger?.cancel();
    if (this.#linger !== null) this.#sealIsDue = false;
    this.#linger = null;
    const flight = { segment, sentAt: NEVER, isSettled: false };
    this.#flights.push(flight);
    this.#send();
    return flight;
  }

  /** Starts queued segments, in number order, as far as the store has places. */
  #send(): void {
    while (this.#unsent < this.#flights.length && this.#inFlight < this.#options.store.inFlightMax) {
      const flight = this.#flights[this.#unsent++];
      assert(flight !== undefined, "an unsent flight is queued");
      this.#inFlight++;
      void this.#fly(flight);
    }
  }

  /** Never rejects: every outcome ends in `#settle` or `#die`. */
  async #fly(flight: Flight): Promise<void> {
    try {
      const { segment } = flight;
      flight.sentAt = sentNow(this.#options.clock);
      // Awaited, so that no outcome, be it the writer's end, comes before the append that sealed has returned.
      const outcome = await this.#offer(segment);
      if (this.#failure !== null) return;
      if (outcome === "ours") this.#settle(flight);
      else if (outcome !== "stopped") this.#die(this.#fencedAt(segment.number, outcome.foreignBy));
    } catch (error) {
      this.#die(isPicoError(error) ? error : new PicoError("durability", `the WAL writer failed: ${messageOf(error)}`, {}, error));
    }
  }

  async #offer(segment: WalSegment): ReturnType<typeof settleSegment> {
    const { store, registration, clock, random } = this.#options;
    let isRetried = false;
    const onRetry = (error: PicoError) => {
      if (!isRetried) this.#retrying++;
      isRetried = true;
      if (this.#failure === null) this.#options.onRetry?.(error);
    };
    try {
      encodeSegmentHeader(segment.bytes, {
        registration,
        number: segment.number,
        trimPoint: this.#trimPoint,
        durableNumber: this.#durableNumber,
      });
      const options = { store, registration, clock, random, signal: this.#stopRetries.signal, onRetry };
      return await settleSegment(options, segment.number, segment.bytes);
    } finally {
      if (isRetried) this.#retrying--;
    }
  }

  #settle(flight: Flight): void {
    flight.isSettled = true;
    this.#inFlight--;
    this.#acknowledge();
    this.#settledCount += 1;
    this.#settledBytes += flight.segment.length;
    this.#flushes.record(this.#options.clock.monotonicMs() - flight.sentAt.monotonicMs);
    if (this.#failure !== null) return;
    this.#send();
    // What collected while all places were taken has waited long enough; a turn or linger under way goes on.
    if (!this.#sealIsDue && this.#hasEntries() && this.#hasRoom()) this.#sealOpen();
  }

  /** Tells of every settled segment that has no unsettled one below it, unless this registration may be over. */
  #acknowledge(): void {
    const firstUnsettled = this.#flights.findIndex(({ isSettled }) => !isSettled);
    const settled = this.#flights.slice(0, firstUnsettled < 0 ? this.#flights.length : firstUnsettled);
    const youngest = settled.at(-1);
    if (youngest === undefined) return;
    if (!this.#isProof(youngest)) {
      this.#askForProof();
      return;
    }
    this.#doubtMs = null;
    for (const { segment, sentAt } of settled) {
      assert(segment.number === this.#durableNumber + 1, "segments become durable in number order");
      segment.state = "durable";
      this.#durableNumber = segment.number;
      this.#provenMs = sentAt.monotonicMs;
      this.#options.onDurable(segment);
      if (this.#failure !== null) return;
    }
    this.#flights.splice(0, settled.length);
    this.#unsent -= settled.length;
    this.#wakeWaiters();
  }

  /**
   * Whether this settled segment, the youngest, shows that nobody had fenced this registration lately. One sent behind a doubt
   * does, however long it took: its number was free then, so no tombstone lay below it; and a slow store must not stop appends.
   */
  #isProof({ sentAt }: Flight): boolean {
    const { clock, fenceableMs = Number.POSITIVE_INFINITY, lastHeartbeat } = this.#options;
    if (this.#doubtMs !== null && sentAt.monotonicMs >= this.#doubtMs) return true;
    const doubtfulMs = fenceableMs - FENCE_DOUBT_MARGIN_MS;
    if (ageMs(sentAt, clock) < doubtfulMs) return true;
    const heartbeat = lastHeartbeat?.() ?? null;
    return heartbeat !== null && ageMs(heartbeat, clock) < doubtfulMs;
  }

  /** Once a doubt: whatever is sent from here on proves it, an empty segment where nothing waits to be sent. */
  #askForProof(): void {
    if (this.#doubtMs !== null) return;
    this.#doubtMs = this.#options.clock.monotonicMs();
    if (this.#unsent < this.#flights.length) return;
    this.#openSegment();
    this.#sealOpen();
  }

  #wakeWaiters(): void {
    if (this.#waiters.length === 0) return;
    const waiting: DurableWaiter[] = [];
    for (const waiter of this.#waiters) {
      if (waiter.number <= this.#durableNumber) waiter.resolve();
      else waiting.push(waiter);
    }
    this.#waiters = waiting;
  }

  async #sendProof(): Promise<number> {
    if (this.#failure !== null) throw this.#failure;
    this.#openSegment();
    const flight = this.#sealOpen();
    await this.whenDurable(flight.segment.number);
    return flight.sentAt.monotonicMs;
  }

  #fencedAt(number: number, by: RegistrationName | null): PicoError {
    const { registration } = this.#options;
    const where = describeSegment(registration, number);
    return fencedNode(registration, by, `${where} is another's`, { where, number });
  }

  #die(failure: PicoError): void {
    if (this.#failure !== null) return;
    this.#failure = failure;
    this.#stopRetries.abort();
    this.#linger?.cancel();
    if (this.#open !== null) this.#open.state = "failed";
    for (const { segment } of this.#flights) if (segment.state !== "durable") segment.state = "failed";
    this.#flights = [];
    this.#unsent = 0;
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.reject(failure);
    if (failure.code === "fenced_node") this.#options.onFenced(failure);
    else if (failure.code !== "unavailable") this.#options.onFailed(failure);
  }
}
