/**
 * Recovery of a fenced registration: its WAL gets an end, what lies below is replayed into the log cache
 * and uploaded, and the registration is ended, with the recoverer as the heir of its streams.
 *
 * Everything here can be repeated from any point, by this node or another: the replay always begins at
 * the position of the fence, the upload at the present committed position, and the end is refused while
 * that is not the last number (DESIGN 6; FAULTS W6).
 */
import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import { formatRegistration, type RegistrationName } from "../lib/registration.ts";
import type { RegistrationEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import { type CachedSegment, type LogCache, LogEntry } from "./log-cache.ts";
import { emptyTailState } from "./tail-state-format.ts";
import type { Uploader } from "./uploader.ts";
import { decodeWalEntry, type WalEntry } from "./wal-entry.ts";
import { WalSegment } from "./wal-segment.ts";
import { describeSegment, SEGMENT_HEADER_BYTES } from "./wal-segment-format.ts";
import { ALL_NUMBERS, type WalStore } from "./wal-store.ts";
import { inspectWal, type ReplayedSegment, type TakenWal, takeOverWal } from "./wal-takeover.ts";
import type { WalTrimmer } from "./wal-trimmer.ts";

export interface RecoveryComponents {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metadata: Metadata;
  readonly wal: WalStore;
  readonly cache: LogCache;
  readonly uploader: Uploader;
  readonly trimmer: WalTrimmer;
  /** Aborts when the node stops. */
  readonly signal: AbortSignal;
  /** Told of each step. */
  readonly report: (progress: RecoveryProgress) => void;
}

/** Progress, for `/ready`. */
export interface RecoveryProgress {
  readonly victim: RegistrationName;
  /** `survey`: all that is there is read and checked, before any of it is replayed. */
  readonly step: "survey" | "replay" | "upload" | "end" | "done";
  /** Surveyed so far, and from the replay on replayed so far. */
  readonly segments: number;
  readonly bytes: number;
}

export class Recovery {
  readonly #components: RecoveryComponents;
  readonly #victim: RegistrationName;
  /** Segments in the log cache: a replay that broke off goes on behind them, for none may come there twice. */
  readonly #replayed: CachedSegment[] = [];
  /** Where the WAL ended when it was replayed to its end; null before. */
  #lastNumber: number | null = null;
  #replayedBytes = 0;
  #progress: RecoveryProgress;

  constructor(components: RecoveryComponents, victim: RegistrationName) {
    this.#components = components;
    this.#victim = victim;
    this.#progress = { victim, step: "survey", segments: 0, bytes: 0 };
  }

  /**
   * Replays without ending anything: for a start that cannot write yet, whose readers are shown what is replayed.
   * Valid only while the WAL is certainly not written by others (its directory's lock is held).
   */
  async inspect(position: number): Promise<void> {
    const { wal, clock, random } = this.#components;
    if (this.#lastNumber !== null) return;
    await wal.persist(this.#victim);
    const onSurveyed = this.#beginSurvey();
    await this.#replay(await inspectWal({ store: wal, clock, random, registration: this.#victim, position, onSurveyed }));
  }

  /** Ends the WAL, uploads what is not uploaded, ends the registration in favour of `self`. */
  async run(self: RegistrationName): Promise<void> {
    const { wal, clock, random, uploader, trimmer, cache, log, signal } = this.#components;
    const registration = this.#victim;
    const position = this.#entry().fencedNumber;
    if (position === null)
      throw new PicoError("internal", `registration ${formatRegistration(registration)} is recovered before it is fenced`);
    const onSurveyed = this.#beginSurvey();
    const taken = await takeOverWal({ store: wal, clock, random, registration, position, onSurveyed, takenBy: self });
    if (this.#lastNumber === null) await this.#replay(taken);
    this.#assertSame(taken);
    const segments = this.#replayed;
    const from = this.#entry().committedNumber;
    for (const cached of segments) cached.isUploaded = cached.number <= from;
    this.#tellReplayed("upload");
    // Below the committed position where a power cut took from a local disk what an earlier recovery had uploaded.
    const lastNumber = Math.max(taken.lastNumber, from);
    if (lastNumber > from) {
      const pending = segments.filter((cached) => !cached.isUploaded);
      await uploader.upload({ wal: registration, from, to: lastNumber, segments: pending }, signal);
    }
    for (const cached of segments) cached.isUploaded = true;
    this.#tell({ step: "end" });
    await this.#end(lastNumber, self);
    cache.evict();
    this.#tell({ step: "done" });
    log.info("recovered a registration", {
      registration: formatRegistration(registration),
      segments: this.#progress.segments,
      bytes: this.#progress.bytes,
    });
    // Its tombstone stays.
    trimmer.want(registration, ALL_NUMBERS);
  }

  #entry(): RegistrationEntry {
    const entry = this.#components.metadata.view.registration(this.#victim);
    if (entry === null)
      throw new PicoError("corrupt", `registration ${formatRegistration(this.#victim)} is not known`, { where: "metadata" });
    return entry;
  }

  #tell(change: Partial<RecoveryProgress>): void {
    this.#progress = { ...this.#progress, ...change };
    this.#components.report(this.#progress);
  }

  #beginSurvey(): (bytes: number) => void {
    this.#tell({ step: "survey", segments: 0, bytes: 0 });
    return (bytes) => this.#tell({ segments: this.#progress.segments + 1, bytes: this.#progress.bytes + bytes });
  }

  #tellReplayed(step: "replay" | "upload"): void {
    this.#tell({ step, segments: this.#replayed.length, bytes: this.#replayedBytes });
  }

  async #replay(taken: TakenWal): Promise<void> {
    this.#tellReplayed("replay");
    for await (const segment of taken.segments()) {
      if (segment.number <= (this.#replayed.at(-1)?.number ?? 0)) continue;
      this.#replayed.push(this.#cache(segment));
      this.#replayedBytes += segment.bytes.length;
      this.#tellReplayed("replay");
    }
    this.#lastNumber = taken.lastNumber;
  }

  /** What was inspected before the takeover must be what the takeover found. */
  #assertSame(taken: TakenWal): void {
    if (taken.lastNumber === this.#lastNumber) return;
    const where = `WAL ${formatRegistration(this.#victim)}`;
    throw new PicoError(
      "corrupt",
      `${where} ended at ${this.#lastNumber} when it was read, and at ${taken.lastNumber} when it was taken over`,
      { where },
    );
  }

  /** Adds a replayed segment's entries to the log cache; they are durable. */
  #cache({ number, bytes }: ReplayedSegment): CachedSegment {
    const { cache, clock } = this.#components;
    const cached = cache.addSegment(this.#victim, WalSegment.stored(number, bytes), clock.monotonicMs());
    const what = describeSegment(this.#victim, number);
    for (let at = SEGMENT_HEADER_BYTES; at < bytes.length; ) {
      const entry = decodeWalEntry(bytes, at, what);
      this.#cacheEntry(cached, entry, what);
      at = entry.end;
    }
    return cached;
  }

  #cacheEntry(cached: CachedSegment, entry: WalEntry, what: string): void {
    const { cache } = this.#components;
    const known = cache.log(entry.streamId);
    if (known === undefined && entry.base === null) {
      throw new PicoError("corrupt", `${what}: stream ${entry.streamId} appears without its tail state`, { where: what });
    }
    const log = known ?? cache.openLog(entry.streamId, entry.base ?? emptyTailState());
    if (log.durableOffset !== entry.baseOffset || log.durableChangeNumber + 1 !== entry.changeNumber) {
      const found = `offset ${entry.baseOffset}, change ${entry.changeNumber}`;
      const expected = `offset ${log.durableOffset}, change ${log.durableChangeNumber + 1}`;
      throw new PicoError("corrupt", `${what}: stream ${entry.streamId} goes on at ${found} instead of ${expected}`, { where: what });
    }
    const { start, end, changeNumber, baseOffset, nextOffset, batch } = entry;
    cache.addEntry(cached, new LogEntry(log, cached, start, end, changeNumber, baseOffset, nextOffset, batch?.start ?? -1, null));
    log.durableOffset = nextOffset;
    log.durableChangeNumber = changeNumber;
  }

  async #end(lastNumber: number, heir: RegistrationName): Promise<void> {
    const outcome = await this.#components.metadata.propose({ type: "end", victim: this.#victim, lastNumber, heir }).outcome;
    if (!outcome.applied && outcome.code !== "already_ended") {
      throw new PicoError("fenced_node", `the end of registration ${formatRegistration(this.#victim)} was refused (${outcome.code})`, {});
    }
  }
}
