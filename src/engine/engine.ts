/**
 * The engine of one registration: appends through the WAL, reads through the caches. What the WAL holds goes
 * to data objects in `upload-loop.ts`, and from the WAL in `wal-trimmer.ts`.
 *
 * ```
 *  append ─▶ open WAL segment ─▶ durable ─▶ completion
 *                 │
 *             log cache ─▶ upload (a whole prefix of the WAL) ─▶ commit ─▶ WAL trimmed
 * ```
 *
 * Invariants:
 * - A completion is called with null only when its entry's segment and all below are durable, in order.
 * - The first entry of a stream behind each upload cut carries the stream's whole tail state.
 * - The WAL is trimmed up to the applied commit, never further.
 * - Bytes not yet uploaded are bounded: beyond, and while the WAL is stalled, appends are refused.
 */
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { DurationHistogram } from "../lib/duration-histogram.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { STALL_ANSWER_MS } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { LoopFigures } from "../lib/loop-record.ts";
import { OutageLog } from "../lib/outage-log.ts";
import type { Random } from "../lib/random.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { StreamEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { DataObjectReaders } from "./data-object-readers.ts";
import { KeptPages } from "./kept-pages.ts";
import { type CachedSegment, type EntryCompletion, LogCache, LogEntry, type StreamLog } from "./log-cache.ts";
import type { PageBuilder } from "./page-builder.ts";
import type { NewRecord } from "./record.ts";
import type { RemovalGate } from "./removal-gate.ts";
import { findStreamHoldings, type StreamHoldings } from "./stream-holdings.ts";
import { type PageBounds, StreamReader } from "./stream-reader.ts";
import type { TailFold } from "./tail-fold.ts";
import type { ProducerStamp, TailState } from "./tail-state.ts";
import { UploadLoop } from "./upload-loop.ts";
import type { Uploader, UploadFigures } from "./uploader.ts";
import { encodeWalEntry } from "./wal-entry.ts";
import type { WalSegment } from "./wal-segment.ts";
import { ALL_NUMBERS, type WalStore } from "./wal-store.ts";
import { WalTrimmer } from "./wal-trimmer.ts";
import { type WalFigures, WalWriter } from "./wal-writer.ts";

export interface EngineSettings {
  readonly clusterId: string;
  /** Memory that entries not yet uploaded take; beyond, appends are refused. More rides out a longer outage of the store, and lengthens a restart. */
  readonly backlogBytesMax: number;
  /** A batch seals at this size. */
  readonly segmentBytes: number;
  /** An idle WAL waits this long for company: fewer store requests for a slower lone append. */
  readonly lingerMs: number;
  /** Entry bytes that start an upload. */
  readonly uploadBytes: number;
  /** Segments that start an upload; 0: no such trigger. Bounds the list that a replay reads. */
  readonly uploadSegments: number;
  /** Age of the oldest entry that starts an upload; 0: no such trigger. */
  readonly uploadIntervalMs: number;
  readonly logCacheBytes: number;
}

export interface EngineComponents {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metadata: Metadata;
  readonly wal: WalStore;
  readonly readers: DataObjectReaders;
  readonly uploader: Uploader;
  readonly gate: RemovalGate;
  /** Whether this node cleans up behind ended registrations of other nodes. */
  readonly isCleaner: () => boolean;
  readonly settings: EngineSettings;
  /** The registration can write no more: it is fenced, or its WAL failed. The node stops. */
  readonly onFatal: (error: PicoError) => void;
}

/** What the engine has to do and has done, for operators. */
export interface EngineFigures {
  /** Bytes of entries that no data object holds yet, and the memory that these take; appends are refused where that reaches `backlogBytesMax`. */
  readonly backlogBytes: number;
  readonly backlogCostBytes: number;
  readonly backlogBytesMax: number;
  /** Age of the oldest entry behind the last upload's cut; null: there is none. */
  readonly oldestPendingAgeMs: number | null;
  readonly isStalled: boolean;
  readonly wal: WalFigures;
  readonly uploads: UploadFigures;
}

/** Of an engine that has not started. */
const NO_WAL: WalFigures = { segmentCount: 0, segmentBytes: 0, inFlightCount: 0, undurableBytes: 0, flushes: new DurationHistogram() };

/** One append, as the session decided it. */
export interface StreamAppend {
  readonly records: readonly NewRecord[];
  /** Of the records; not below the stream's last. */
  readonly timestampMs: number;
  readonly producer: ProducerStamp | null;
  readonly streamSeq: string | null;
  readonly closes: boolean;
}

export class Engine {
  readonly cache: LogCache;
  readonly keptPages = new KeptPages();
  readonly trimmer: WalTrimmer;
  readonly #reader: StreamReader;
  readonly #components: EngineComponents;
  #registration: RegistrationName | null = null;
  #writer: WalWriter | null = null;
  /** Segments of this registration that are not durable yet, by number. */
  readonly #undurable = new Map<number, CachedSegment>();
  #newest: CachedSegment | null = null;
  #backlogBytes = 0;
  /** Entries that are small take several times their bytes. */
  #backlogCostBytes = 0;
  #uploads: UploadLoop | null = null;
  /** Of the WAL. */
  readonly #outage: OutageLog;
  #failure: PicoError | null = null;
  #isStopping = false;
  readonly #aborted = new AbortController();

  constructor(components: EngineComponents) {
    this.#components = components;
    this.cache = new LogCache(components.settings.logCacheBytes);
    this.#reader = new StreamReader(this.cache, components.metadata, components.readers);
    const { clock, log, metadata, wal, gate, isCleaner } = components;
    // A broken invariant, or a marker of another database: nothing may go on.
    const onFatal = (error: unknown) => this.#fail(isPicoError(error) ? error : new PicoError("internal", messageOf(error), {}, error));
    this.#outage = new OutageLog({
      clock,
      log,
      begun: "the write-ahead log takes no writes: appends are refused, and what it was given is tried again until it does",
      over: "the write-ahead log takes writes again",
      fields: { wal: wal.description },
      calmMs: 0,
    });
    this.trimmer = new WalTrimmer({ clock, log, metadata, wal, gate, isCleaner, onFatal });
  }

  /** WAL position of this registration up to which everything is in data objects. */
  get committedNumber(): number {
    return this.#uploads?.committedNumber ?? 0;
  }

  /** Appends can be taken, as far as the WAL does. */
  get isStarted(): boolean {
    return this.#writer !== null;
  }

  get durableNumber(): number {
    return this.#writer?.durableNumber ?? 0;
  }

  /** Entry bytes not yet uploaded. */
  get backlogBytes(): number {
    return this.#backlogBytes;
  }

  get figures(): EngineFigures {
    const { clock, uploader, settings } = this.#components;
    const oldestPendingMs = this.#uploads?.oldestPendingMs ?? null;
    return {
      backlogBytes: this.#backlogBytes,
      backlogBytesMax: settings.backlogBytesMax,
      backlogCostBytes: this.#backlogCostBytes,
      oldestPendingAgeMs: oldestPendingMs === null ? null : clock.monotonicMs() - oldestPendingMs,
      isStalled: this.isStarted && this.isStalled,
      wal: this.#writer?.figures ?? NO_WAL,
      uploads: uploader.figures,
    };
  }

  /** The loop that uploads (each look at what there is to upload is a success, an upload once it is committed), and that which trims. */
  get loops(): readonly LoopFigures[] {
    return [this.#components.uploader.record, this.trimmer.record];
  }

  /** The WAL is being retried: appends are refused meanwhile. */
  get isStalled(): boolean {
    return this.#writer?.isStalled ?? true;
  }

  /** Why nothing more becomes durable; null while the engine lives. */
  get failure(): PicoError | null {
    return this.#failure;
  }

  /** Begins to take appends under `registration`, whose WAL is empty. */
  async start(registration: RegistrationName): Promise<void> {
    const { wal, clock, random, uploader, metadata, settings } = this.#components;
    const entry = metadata.view.registration(registration);
    assert(entry !== null, "who writes a WAL is registered");
    await wal.begin(registration);
    this.#registration = registration;
    const writer = new WalWriter({
      store: wal,
      registration,
      clock,
      random,
      segmentBytes: settings.segmentBytes,
      lingerMs: settings.lingerMs,

      fenceableMs: entry.failoverTimeoutMs,
      lastHeartbeat: () => metadata.lastHeartbeat,
      onDurable: (segment) => this.#segmentDurable(segment),
      onRetry: (error) => this.#outage.failed(error),
      onFenced: (error) => this.#fail(error),
      onFailed: (error) => this.#fail(error),
    });
    this.#writer = writer;
    this.#uploads = new UploadLoop({
      clock,
      registration,
      writer,
      cache: this.cache,
      uploader,
      trimmer: this.trimmer,
      uploadSegments: settings.uploadSegments,
      uploadIntervalMs: settings.uploadIntervalMs,
      signal: this.#aborted.signal,
      onLook: () => this.#look(),
      onUploaded: (segments) => this.#uploaded(segments),
      onFailed: (error) => this.#fail(error),
    });
    this.#uploads.start();
    this.trimmer.start();
  }

  /** After the registration's end: its segments serve nobody any more. What cannot be removed now is left-over, and harmless. */
  async removeWal(registration: RegistrationName): Promise<void> {
    const { wal, metadata } = this.#components;
    // A life that never wrote has left nothing, except for its files on local disk.
    if (wal.kind !== "local" && metadata.view.registration(registration)?.committedNumber === 0) return;
    this.trimmer.want(registration, ALL_NUMBERS);
    try {
      await this.trimmer.trimNow();
    } catch (error) {
      this.#components.log.warn("the WAL of an ended registration could not be removed", { error });
    }
  }

  /** Uploads everything and ends the WAL. Resolves with its last number, all of it committed. */
  async stop(): Promise<number> {
    const writer = this.#writer;
    if (writer === null) return 0;
    await writer.stop();
    this.#isStopping = true;
    await this.#uploads?.stop();
    if (this.#failure !== null) throw this.#failure;
    await this.trimmer.stop();
    return writer.sealedNumber;
  }

  /** Gives up at once, as a crash would. */
  abandon(): void {
    this.#isStopping = true;
    this.#fail(new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 }));
  }

  /** The stream's cached entries. Where nothing is cached, `tail` is its tail state, all of it durable. */
  openLog(streamId: number, tail: TailState): StreamLog {
    return this.cache.openLog(streamId, tail);
  }

  releaseLog(log: StreamLog): void {
    this.cache.dropLogIfIdle(log);
  }

  /**
   * Writes one entry behind `tail`, which it advances. `completion` is called with null when the entry is
   * durable, or with the error when it never will be. While the WAL is stalled it may be called before
   * that with `durability`, so that nobody waits for long: whether the entry is durable is open then.
   * Throws `unavailable` where the node cannot take it now; then nothing happened. An entry that does not follow
   * what is cached of the stream breaks an invariant, and ends the engine before it is written.
   */
  append(log: StreamLog, tail: TailFold, append: StreamAppend, completion: EntryCompletion): void {
    const writer = this.#openWriter();
    const { records, timestampMs, producer, streamSeq, closes } = append;
    const baseOffset = tail.nextOffset;
    const head = {
      streamId: log.streamId,
      changeNumber: tail.changeNumber + 1,
      baseOffset,
      nextOffset: baseOffset + records.length,
      timestampMs,
      base: log.lastNumber <= (this.#uploads?.cutNumber ?? 0) ? tail.state() : null,
      producer,
      streamSeq,
      closes,
    };
    let batchStart = -1;
    const { segment, start, end } = writer.append((out) => {
      batchStart = encodeWalEntry(out, head, storedForm(records));
    });
    let entry: LogEntry;
    try {
      const cached = this.#cachedSegment(segment);
      entry = new LogEntry(log, cached, start, end, head.changeNumber, baseOffset, head.nextOffset, batchStart, completion);
      this.cache.addEntry(cached, entry);
      log.lastNumber = segment.number;
      tail.apply(head);
    } catch (error) {
      // The WAL has an entry that memory has not: the next one would take its place. Nothing more is written.
      this.#fail(new PicoError("internal", `an entry of stream ${log.streamId} does not fit: ${messageOf(error)}`, {}, error));
      throw error;
    }
    this.#backlogBytes += end - start;
    this.#backlogCostBytes += entry.costBytes;
    this.#uploads?.noteEntry();
    if (this.#isUploadDue()) this.#uploads?.want();
  }

  /** Well before the backlog is full, whatever is set. */
  #isUploadDue(): boolean {
    const { uploadBytes, backlogBytesMax } = this.#components.settings;
    return this.#backlogBytes >= uploadBytes || this.#backlogCostBytes >= backlogBytesMax / 2;
  }

  /** The page of a stream; at once where the log cache holds it. */
  read(entry: StreamEntry, bounds: PageBounds): PageBuilder | Promise<PageBuilder> {
    return this.#reader.read(entry, bounds);
  }

  /**
   * The newest tail state of a stream that has no session: from the log cache where that holds entries
   * not yet uploaded, else from the data objects. Null where nothing of the stream was ever written.
   */
  async tailState(streamId: number): Promise<TailState | null> {
    return this.cache.pendingTailState(streamId) ?? (await this.#reader.readTailState(streamId));
  }

  /** Which data objects hold the stream, for operators; opens nothing. */
  holdings(streamId: number, holdingsMax: number): Promise<StreamHoldings> {
    const { metadata, readers } = this.#components;
    return findStreamHoldings(metadata, readers, streamId, holdingsMax);
  }

  /** Timestamp of the record at `offset`, which must be readable; ms since 1970. */
  async timestampAt(entry: StreamEntry, offset: number): Promise<number> {
    const page = await this.#reader.read(entry, { from: offset, end: offset + 1, recordsMax: 1, bytesMax: 1 });
    const [slice] = page.slices;
    assert(slice !== undefined, "a page begins with the record asked for");
    return slice.batch.cursorAt(offset).timestampMs;
  }

  /** No upload passes the stream's entries before `decided` settles: its create is on the way. */
  holdUpload(streamId: number, decided: Promise<unknown>): void {
    this.#components.uploader.hold(streamId, decided);
  }

  /** Uploads what the WAL holds now and resolves when it is committed. */
  async uploadNow(): Promise<void> {
    const isCommitted = await this.#uploads?.uploadNow();
    if (isCommitted === false && this.#failure !== null) throw this.#failure;
  }

  #openWriter(): WalWriter {
    const writer = this.#writer;
    if (this.#failure !== null || writer === null) throw refused("the node cannot take appends");
    if (writer.isStalled) throw refused("the write-ahead log is not accepting writes");
    const { backlogBytesMax } = this.#components.settings;
    if (this.#backlogCostBytes >= backlogBytesMax) {
      throw refused(`${this.#backlogCostBytes} bytes of memory wait for upload, the limit is ${backlogBytesMax}`);
    }
    return writer;
  }

  #cachedSegment(segment: WalSegment): CachedSegment {
    if (this.#newest?.segment === segment) return this.#newest;
    assert(this.#registration !== null, "a writer has a registration");
    const cached = this.cache.addSegment(this.#registration, segment, this.#components.clock.monotonicMs());
    this.#newest = cached;
    this.#undurable.set(segment.number, cached);
    return cached;
  }

  #segmentDurable(segment: WalSegment): void {
    this.#tellIfOver();
    const cached = this.#undurable.get(segment.number);
    if (cached === undefined) return; // A proof: it holds no entry.
    this.#undurable.delete(segment.number);
    for (const entry of cached.entries) {
      entry.log.durableOffset = entry.nextOffset;
      entry.log.durableChangeNumber = entry.changeNumber;
      this.#complete(entry, null);
    }
    this.#uploads?.noteDurable(segment.number);
  }

  #look(): void {
    // The answer that ends a silence comes while the writer still counts it, and no other may follow.
    this.#tellIfOver();
    if (this.#writer?.isStalled !== true) return;
    // No attempt has failed: the first one has no answer yet.
    if (this.#outage.failures === 0) this.#outage.failed(silent());
    this.#answerLate();
  }

  #tellIfOver(): void {
    if (this.#outage.failures > 0 && !this.isStalled) this.#outage.succeeded();
  }

  /** Answers those who wait for a stalled WAL for too long; their entries stay under way. */
  #answerLate(): void {
    const lateMs = this.#components.clock.monotonicMs() - STALL_ANSWER_MS;
    for (const cached of this.#undurable.values()) {
      if (cached.startedMs > lateMs) return;
      for (const { completion } of cached.entries) this.#tell(completion, stalled());
    }
  }

  #complete(entry: LogEntry, error: PicoError | null): void {
    const { completion } = entry;
    entry.completion = null;
    this.#tell(completion, error);
  }

  /** An observer that throws must not keep others from their answers (FAULTS A5). */
  #tell(completion: EntryCompletion | null, error: PicoError | null): void {
    try {
      completion?.(error);
    } catch (thrown) {
      this.#components.log.error("a completion threw", { error: thrown });
    }
  }

  #fail(error: PicoError): void {
    if (this.#failure !== null) return;
    this.#failure = error;
    const lost = notDurable(error);
    for (const cached of this.#undurable.values()) {
      for (const entry of cached.entries) this.#complete(entry, lost);
    }
    this.#undurable.clear();
    this.#aborted.abort();
    this.#outage.stop();
    this.#writer?.abandon();
    void this.trimmer.stop();
    if (!this.#isStopping) this.#components.onFatal(error);
  }

  #uploaded(segments: readonly CachedSegment[]): void {
    for (const { entries } of segments) {
      for (const entry of entries) {
        this.#backlogBytes -= entry.end - entry.start;
        this.#backlogCostBytes -= entry.costBytes;
      }
    }
  }
}

function storedForm(records: readonly NewRecord[]): readonly NewRecord[] | Uint8Array | null {
  const [first] = records;
  if (first === undefined) return null;
  if (records.length === 1 && first.body !== null && first.key === null && first.headers.length === 0) return first.body;
  return records;
}

function stalled(): PicoError {
  return new PicoError("durability", "the write-ahead log does not take writes: whether the append will be durable is open");
}

function silent(): PicoError {
  return new PicoError("unknown_outcome", `a write has had no answer for ${STALL_ANSWER_MS / 1000} s`);
}

/** What those are told who wait for durability that `failure` has made impossible. */
export function notDurable(failure: PicoError): PicoError {
  return new PicoError("durability", `the append could not be made durable: ${failure.message}`, {}, failure);
}

function refused(reason: string): PicoError {
  return new PicoError("unavailable", `${reason}; try again`, { retryAfterSeconds: 1 });
}
