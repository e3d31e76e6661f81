/**
 * Uploads an interval of a WAL: its records, sorted by stream, into data objects of level 0, and then
 * the one command that commits them. The same code serves a live node's own WAL and the replay of a
 * dead one's.
 *
 * Invariants:
 * - An interval is a whole prefix of what is not committed; all of it is durable.
 * - A commit names only objects that the store has confirmed.
 * - Streams that the state does not know by then are deleted, or were never created, and are left out; so
 *   the interval waits for the outcome of each create that it carries.
 * - Each stream's tail state goes along, folded from its entries; the first of them has the base.
 * - An object that is complete is stored before the building goes on, so that few bytes are held twice.
 * - The objects of a try that failed are given up, unless its commit may have been applied.
 */
import { assert } from "../lib/assert.ts";
import { backOffMs } from "../lib/back-off.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { DurationHistogram } from "../lib/duration-histogram.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { UPLOAD_RETRY_MS_MAX, UPLOAD_RETRY_MS_MIN } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { LoopRecord } from "../lib/loop-record.ts";
import type { Random } from "../lib/random.ts";
import { formatRegistration, type RegistrationName } from "../lib/registration.ts";
import type { StreamEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { ObjectStore } from "../storage/object-store.ts";
import { DataObjectWriter } from "./data-object-writer.ts";
import { foldEntriesInSlices } from "./entry-fold.ts";
import type { CachedSegment, LogEntry } from "./log-cache.ts";
import { isRetryable, lostRegistration, type ObjectBatch, ObjectStorer, stopping } from "./object-storer.ts";
import { RecordBatchView } from "./record-batch-view.ts";
import type { TailState } from "./tail-state.ts";
import { WorkSlices } from "./work-slices.ts";

/** The interval (from, to] of a WAL, with its segments that hold entries. */
export interface UploadSource {
  readonly wal: RegistrationName;
  readonly from: number;
  readonly to: number;
  readonly segments: readonly CachedSegment[];
}

export interface UploaderComponents {
  readonly clusterId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metadata: Metadata;
  readonly store: ObjectStore;
}

/** What was uploaded, for operators. */
export interface UploadFigures {
  /** Intervals committed, and tries that failed. */
  readonly uploadCount: number;
  readonly failureCount: number;
  /** Data objects that the store has confirmed, and their bytes. */
  readonly objectCount: number;
  readonly objectBytes: number;
  /** Of committed intervals, failed tries included. */
  readonly durations: DurationHistogram;
}

/** Between two looks of the upload loop at what there is to upload. */
export const UPLOAD_LOOK_MS = 1000;

/** One try of an upload. */
interface Attempt {
  readonly wal: RegistrationName;
  readonly writer: DataObjectWriter;
  readonly slices: WorkSlices;
  readonly objects: ObjectBatch;
}

export class Uploader {
  /** Rounds of the loop that uploads; failures are those of single tries. */
  readonly record: LoopRecord;
  readonly #components: UploaderComponents;
  /** Streams written before their create is decided, each with the outcome. */
  readonly #undecided = new Map<number, Promise<unknown>>();
  readonly #durations = new DurationHistogram();
  readonly #storer: ObjectStorer;
  #uploadCount = 0;

  constructor(components: UploaderComponents) {
    this.#components = components;
    this.#storer = new ObjectStorer(components);
    this.record = new LoopRecord("upload", UPLOAD_LOOK_MS, components.clock);
  }

  get figures(): UploadFigures {
    return {
      uploadCount: this.#uploadCount,
      failureCount: this.record.failures,
      objectCount: this.#storer.objectCount,
      objectBytes: this.#storer.objectBytes,
      durations: this.#durations,
    };
  }

  /** No upload passes the stream's entries before `decided` settles. */
  hold(streamId: number, decided: Promise<unknown>): void {
    const settled = decided.then(
      () => {},
      () => {},
    );
    this.#undecided.set(
      streamId,
      settled.then(() => this.#undecided.delete(streamId)),
    );
  }

  /**
   * Uploads and commits the interval, however often the store or the database has to be asked again.
   * Throws `fenced_node` where the interval is not this node's to commit any more, `corrupt` where its
   * entries do not fit together, and `unavailable` once `signal` aborts.
   */
  async upload(source: UploadSource, signal: AbortSignal): Promise<void> {
    const { clock, random, log } = this.#components;
    const startedMs = clock.monotonicMs();
    for (let attempt = 1; ; attempt++) {
      try {
        await this.#settleCreates(source, signal);
        await this.#attempt(source, signal);
        this.#uploadCount += 1;
        this.#durations.record(clock.monotonicMs() - startedMs);
        return;
      } catch (error) {
        this.record.failed(error);
        if (!isRetryable(error)) throw error;
        if (signal.aborted) throw stopping(error);
        log.warn("an upload failed and is tried again", {
          wal: formatRegistration(source.wal),
          from: source.from,
          to: source.to,
          attempt,
          error,
        });
      }
      await sleep(clock, backOffMs(random, attempt, UPLOAD_RETRY_MS_MIN, UPLOAD_RETRY_MS_MAX), signal);
      if (signal.aborted) throw stopping();
    }
  }

  /** A create may wait for the database for as long as that is away, so that a stop must not wait for the create. */
  async #settleCreates(source: UploadSource, signal: AbortSignal): Promise<void> {
    if (this.#undecided.size === 0) return;
    if (signal.aborted) throw stopping();
    const { promise: aborted, resolve: onAbort } = Promise.withResolvers<unknown>();
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      for (const streamId of new Set(entriesOf(source).map((entry) => entry.log.streamId))) {
        await Promise.race([this.#undecided.get(streamId), aborted]);
        if (signal.aborted) throw stopping();
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #attempt(source: UploadSource, signal: AbortSignal): Promise<void> {
    const objects = this.#storer.begin(signal);
    try {
      const closedStreams = await this.#storeObjects(source, objects);
      await this.#commit(source, objects, closedStreams);
    } catch (error) {
      // A commit without an outcome may have made them live.
      if (!isPicoError(error, "unknown_outcome") || !objects.isInCommit) await objects.giveUp();
      throw error;
    }
  }

  /** Returns the streams that the interval closes. */
  async #storeObjects(source: UploadSource, objects: ObjectBatch): Promise<readonly number[]> {
    const { metadata, clusterId, clock } = this.#components;
    const byStream = Map.groupBy(entriesOf(source), (entry) => entry.log.streamId);
    const bytesExpected = source.segments.reduce((sum, { segment }) => sum + segment.length, 0);
    const writer = new DataObjectWriter({ clusterId, level: 0, bytesExpected });
    // Appends and reads go on between slices.
    const attempt: Attempt = { wal: source.wal, writer, slices: new WorkSlices(clock), objects };
    const closedStreams: number[] = [];
    for (const streamId of [...byStream.keys()].sort((left, right) => left - right)) {
      const entries = byStream.get(streamId) ?? [];
      const stream = metadata.view.streamById(streamId);
      if (stream === null) continue;
      if ((await this.#write(attempt, stream, entries)).isClosed) closedStreams.push(streamId);
    }
    writer.finish();
    await this.#storeFinished(attempt);
    return closedStreams;
  }

  /** Adds one stream's records and tail state to the objects; returns that state. */
  async #write(attempt: Attempt, stream: StreamEntry, entries: readonly LogEntry[]): Promise<TailState> {
    const { wal, writer, slices } = attempt;
    const last = entries.at(-1);
    assert(last !== undefined, "a stream of an interval has entries in it");
    // From all that is cached: a replay may begin before the interval, and the base lie there.
    const tail = (await foldEntriesInSlices(last.log.upTo(last), wal, slices)).state();
    // Forks may need what the stream itself has trimmed.
    const fromOffset = stream.forkCount > 0 ? 0 : stream.startOffset;
    writer.startStream(stream.streamId, tail, fromOffset);
    for (const entry of entries) {
      if (entry.batchStart >= 0) writer.add(new RecordBatchView(entry.segment.bytes, entry.batchStart));
      if (writer.hasFinished) await this.#storeFinished(attempt);
      const pause = slices.step(entry.end - entry.start);
      if (pause !== null) await pause;
    }
    writer.finishStream();
    if (writer.hasFinished) await this.#storeFinished(attempt);
    return tail;
  }

  async #storeFinished({ writer, objects }: Attempt): Promise<void> {
    for (let draft = writer.takeFinished(); draft !== null; draft = writer.takeFinished()) await objects.store(draft);
  }

  async #commit(source: UploadSource, batch: ObjectBatch, closedStreams: readonly number[]): Promise<void> {
    const { wal, from, to } = source;
    const objects = batch.forCommit();
    const outcome = await this.#components.metadata.propose({ type: "commit", wal, from, to, objects, closedStreams }).outcome;
    if (outcome.applied) return;
    // The objects were given up meanwhile: they are written again under new keys.
    if (outcome.code === "object_state" || outcome.code === "unknown_object") {
      throw new PicoError("storage_failed", `a commit was refused (${outcome.code}): its prepared objects expired`);
    }
    throw lostRegistration(`the commit of WAL ${formatRegistration(wal)} (${from}, ${to}] was refused (${outcome.code})`);
  }
}

function entriesOf(source: UploadSource): LogEntry[] {
  return source.segments.flatMap((cached) => cached.entries);
}
