/**
 * When a live registration uploads: at so many bytes or segments, at an age of the oldest entry, and when
 * somebody asks. Each round is one cut: everything that is in the WAL at its beginning.
 *
 * Invariants:
 * - Rounds follow each other; the committed position only grows.
 * - The first entry of a stream behind each cut carries the stream's whole tail state: a cut is known to
 *   whoever appends from the moment that the segment is sealed.
 */
import { assert } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf, PicoError } from "../lib/errors.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { CachedSegment, LogCache } from "./log-cache.ts";
import { UPLOAD_LOOK_MS, type Uploader, type UploadSource } from "./uploader.ts";
import type { WalTrimmer } from "./wal-trimmer.ts";
import type { WalWriter } from "./wal-writer.ts";

export interface UploadLoopOptions {
  readonly clock: Clock;
  readonly registration: RegistrationName;
  readonly writer: WalWriter;
  readonly cache: LogCache;
  readonly uploader: Uploader;
  readonly trimmer: WalTrimmer;
  /** Segments that start an upload; 0: no such trigger. */
  readonly uploadSegments: number;
  /** Age of the oldest entry that starts an upload; 0: no such trigger. */
  readonly uploadIntervalMs: number;
  /** Aborts when the engine fails or gives up. */
  readonly signal: AbortSignal;
  /** Called at each look, also while an upload is under way. */
  readonly onLook: () => void;
  /** The segments' entries are in data objects. */
  readonly onUploaded: (segments: readonly CachedSegment[]) => void;
  readonly onFailed: (error: PicoError) => void;
}

export class UploadLoop {
  readonly #options: UploadLoopOptions;
  #cutNumber = 0;
  #committedNumber = 0;
  #oldestPendingMs: number | null = null;
  #running: Promise<void> | null = null;
  /** Settles at the end of the round under way, or of the next. */
  #round: Promise<void> = Promise.resolve();
  #isWanted = false;
  #isStopping = false;
  #endWait: (() => void) | null = null;

  constructor(options: UploadLoopOptions) {
    this.#options = options;
  }

  /** Number of the last segment before the last cut. */
  get cutNumber(): number {
    return this.#cutNumber;
  }

  /** WAL position up to which everything is in data objects. */
  get committedNumber(): number {
    return this.#committedNumber;
  }

  /** Monotonic time of the oldest entry behind the last cut; null: there is none. */
  get oldestPendingMs(): number | null {
    return this.#oldestPendingMs;
  }

  start(): void {
    this.#running ??= this.#run();
    const { signal } = this.#options;
    signal.addEventListener("abort", () => this.want(), { once: true });
  }

  /** An entry went into the WAL. */
  noteEntry(): void {
    this.#oldestPendingMs ??= this.#options.clock.monotonicMs();
  }

  noteDurable(number: number): void {
    const { uploadSegments } = this.#options;
    if (uploadSegments > 0 && number - this.#committedNumber >= uploadSegments) this.want();
  }

  /** Begins a round as soon as none is under way. */
  want(): void {
    this.#isWanted = true;
    this.#endWait?.();
  }

  /** Uploads what the WAL holds now. Resolves with true when it is committed, with false when the engine has ended before. */
  async uploadNow(): Promise<boolean> {
    const target = this.#options.writer.seal();
    this.want();
    while (this.#committedNumber < target && !this.#options.signal.aborted) await this.#round;
    return this.#committedNumber >= target;
  }

  /** Uploads everything and ends; the WAL takes nothing any more. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.want();
    await this.#running;
  }

  /** Round by round until the engine stops or fails. */
  async #run(): Promise<void> {
    const { signal, uploader, onFailed } = this.#options;
    while (!signal.aborted) {
      await this.#untilDue();
      if (signal.aborted) break;
      this.#isWanted = false;
      const isStopping = this.#isStopping;
      this.#round = this.#uploadOnce();
      try {
        await this.#looking(this.#round);
        uploader.record.succeeded();
      } catch (error) {
        onFailed(error instanceof PicoError ? error : new PicoError("internal", messageOf(error), {}, error));
        break;
      }
      if (isStopping) break;
    }
  }

  /** An upload may wait for the very segment that a stalled WAL does not take: those behind it are looked at meanwhile. */
  async #looking(upload: Promise<void>): Promise<void> {
    const { clock, onLook } = this.#options;
    const look = () => {
      onLook();
      timer = clock.schedule(UPLOAD_LOOK_MS, look);
    };
    let timer = clock.schedule(UPLOAD_LOOK_MS, look);
    try {
      await upload;
    } finally {
      timer.cancel();
    }
  }

  #untilDue(): Promise<void> {
    if (this.#isWanted) return Promise.resolve();
    const { clock, uploadIntervalMs, uploader, onLook } = this.#options;
    return new Promise((resolve) => {
      const waitMs = uploadIntervalMs > 0 ? Math.min(uploadIntervalMs, UPLOAD_LOOK_MS) : UPLOAD_LOOK_MS;
      const look = () => {
        onLook();
        uploader.record.succeeded();
        const ageMs = this.#oldestPendingMs === null ? 0 : clock.monotonicMs() - this.#oldestPendingMs;
        if (uploadIntervalMs > 0 && ageMs >= uploadIntervalMs) finish();
        else timer = clock.schedule(waitMs, look);
      };
      const finish = () => {
        timer.cancel();
        this.#endWait = null;
        resolve();
      };
      let timer = clock.schedule(waitMs, look);
      this.#endWait = finish;
    });
  }

  /** One cut: everything that is in the WAL now. */
  async #uploadOnce(): Promise<void> {
    const { writer, registration, uploader, trimmer, cache, signal, onUploaded } = this.#options;
    const to = writer.seal();
    this.#cutNumber = to;
    this.#oldestPendingMs = null;
    if (to === this.#committedNumber) return;
    await writer.whenDurable(to);
    const source: UploadSource = { wal: registration, from: this.#committedNumber, to, segments: this.#segmentsUpTo(to) };
    await uploader.upload(source, signal);
    assert(to > this.#committedNumber, "the committed position grows");
    this.#committedNumber = to;
    for (const cached of source.segments) cached.isUploaded = true;
    onUploaded(source.segments);
    cache.evict();
    writer.setTrimPoint(to);
    trimmer.want(registration, to);
  }

  #segmentsUpTo(to: number): readonly CachedSegment[] {
    const { cache, registration } = this.#options;
    const segments: CachedSegment[] = [];
    for (const cached of cache.pendingSegments()) {
      if (cached.wal === registration && cached.number <= to) segments.push(cached);
    }
    return segments;
  }
}
