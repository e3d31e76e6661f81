/**
 * The log cache: WAL entries in memory, by stream. It holds every entry that no data object holds yet,
 * and beyond them as many of the recent ones as its size allows, so that tail reads touch no store.
 *
 * Bytes stay where the WAL segment put them; an entry is a place in its segment's buffer. Entries leave
 * in the order in which they came, a whole segment at a time and only once it is uploaded.
 *
 * Invariants:
 * - The entries of a stream are consecutive: each begins at the offset where the one before ended.
 * - What was evicted is in committed data objects.
 * - `durableOffset` never falls and never passes an entry whose segment is not durable.
 */
import { assert } from "../lib/assert.ts";
import type { RegistrationName } from "../lib/registration.ts";
import { foldEntries } from "./entry-fold.ts";
import type { TailState } from "./tail-state.ts";
import type { WalSegment } from "./wal-segment.ts";

/**
 * What an entry costs in memory beside its bytes: the object, its places in two lists, a share of its
 * stream's and its segment's objects, and of the room that the allocator keeps between them. Measured, by
 * the resident memory of a million entries of small records.
 */
const ENTRY_OVERHEAD_BYTES = 400;

/** Told that the entry is durable (null), or that it never will be. */
export type EntryCompletion = (error: Error | null) => void;

/** One WAL entry of one stream. */
export class LogEntry {
  constructor(
    readonly log: StreamLog,
    readonly cached: CachedSegment,
    /** Place in `segment.bytes`. */
    readonly start: number,
    readonly end: number,
    readonly changeNumber: number,
    /** Records `[baseOffset, nextOffset)`; equal for an entry without records. */
    readonly baseOffset: number,
    readonly nextOffset: number,
    /** Where its record batch begins in `segment.bytes`; -1 without records. */
    readonly batchStart: number,
    /** Cleared once called. */
    public completion: EntryCompletion | null,
  ) {}

  get segment(): WalSegment {
    return this.cached.segment;
  }

  /** Memory that the entry takes. */
  get costBytes(): number {
    return this.end - this.start + ENTRY_OVERHEAD_BYTES;
  }
}

/** The cached entries of one stream, oldest first. */
export class StreamLog {
  /** First offset that is not durable. */
  durableOffset: number;
  /** Change number of the last durable entry. */
  durableChangeNumber: number;
  /** Segment number, in this registration's WAL, of the stream's last entry; 0 before the first. */
  lastNumber = 0;
  /** A session serves the stream: the log stays even when it is empty. */
  isHeld = false;
  #entries: (LogEntry | undefined)[] = [];
  /** Entries before this place are evicted, and cleared: each keeps a whole segment in memory. */
  #head = 0;

  constructor(
    readonly streamId: number,
    tail: TailState,
  ) {
    this.durableOffset = tail.nextOffset;
    this.durableChangeNumber = tail.changeNumber;
  }

  get isEmpty(): boolean {
    return this.#head === this.#entries.length;
  }

  get last(): LogEntry | undefined {
    return this.#entries[this.#entries.length - 1];
  }

  get first(): LogEntry | undefined {
    return this.#entries[this.#head];
  }

  /** First offset that can be read from here; the durable offset where nothing is cached. */
  get firstOffset(): number {
    return this.first?.baseOffset ?? this.durableOffset;
  }

  push(entry: LogEntry): void {
    assert(this.last === undefined || this.last.nextOffset === entry.baseOffset, "entries of a stream are consecutive");
    assert(this.last === undefined || this.last.changeNumber < entry.changeNumber, "change numbers of a stream rise");
    this.#entries.push(entry);
  }

  /** Evicts the oldest entry, which must be `entry`. */
  evict(entry: LogEntry): void {
    assert(this.first === entry, "entries are evicted in order");
    this.#entries[this.#head] = undefined;
    this.#head += 1;
    if (this.isEmpty) {
      this.#entries = [];
      this.#head = 0;
    } else if (this.#head > 32 && this.#head * 2 > this.#entries.length) {
      this.#entries = this.#entries.slice(this.#head);
      this.#head = 0;
    }
  }

  /** Cached entries up to `last`, oldest first. */
  upTo(last: LogEntry): readonly LogEntry[] {
    const entries: LogEntry[] = [];
    for (let at = this.#head; at < this.#entries.length; at++) {
      const entry = this.#entries[at];
      if (entry !== undefined) entries.push(entry);
      if (entry === last) break;
    }
    return entries;
  }

  /** Entries from the one that holds `offset` on. `offset` is at or above `firstOffset`. */
  *from(offset: number): Generator<LogEntry> {
    let low = this.#head;
    let high = this.#entries.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const entry = this.#entries[middle];
      if (entry !== undefined && entry.nextOffset <= offset) low = middle + 1;
      else high = middle;
    }
    for (let at = low; at < this.#entries.length; at++) {
      const entry = this.#entries[at];
      if (entry !== undefined) yield entry;
    }
  }
}

/** A segment of some registration's WAL with its entries, in the order of their bytes. */
export class CachedSegment {
  readonly entries: LogEntry[] = [];
  isUploaded = false;

  constructor(
    readonly wal: RegistrationName,
    readonly segment: WalSegment,
    /** Monotonic time of its first entry. */
    readonly startedMs: number,
  ) {}

  get number(): number {
    return this.segment.number;
  }
}

export class LogCache {
  readonly #logs = new Map<number, StreamLog>();
  /** Oldest first; at the front the uploaded ones. */
  readonly #segments: (CachedSegment | undefined)[] = [];
  /** Segments before this place are evicted, and cleared. */
  #head = 0;
  #sizeBytes = 0;
  #entryCount = 0;
  /** Since the start, for metrics: pages that it held whole, pages for which data objects were asked, entries that left. */
  hitCount = 0;
  missCount = 0;
  evictionCount = 0;

  constructor(readonly sizeBytesMax: number) {}

  get sizeBytes(): number {
    return this.#sizeBytes;
  }

  get entryCount(): number {
    return this.#entryCount;
  }

  get streamCount(): number {
    return this.#logs.size;
  }

  log(streamId: number): StreamLog | undefined {
    return this.#logs.get(streamId);
  }

  /** The stream's log; an absent one begins empty behind `tail`, all of it durable. */
  openLog(streamId: number, tail: TailState): StreamLog {
    let log = this.#logs.get(streamId);
    if (log === undefined) {
      log = new StreamLog(streamId, tail);
      this.#logs.set(streamId, log);
    }
    return log;
  }

  /** The tail state behind the stream's entries, if the newest of them is not uploaded; else null. */
  pendingTailState(streamId: number): TailState | null {
    const log = this.#logs.get(streamId);
    const last = log?.last;
    if (log === undefined || last === undefined || last.cached.isUploaded) return null;
    return foldEntries(log.upTo(last), last.cached.wal).state();
  }

  /** Lets go of a log that no session holds and that has no entries. */
  dropLogIfIdle(log: StreamLog): void {
    if (!log.isHeld && log.isEmpty) this.#logs.delete(log.streamId);
  }

  /** Begins the next segment; segments of one WAL come in ascending order. */
  addSegment(wal: RegistrationName, segment: WalSegment, nowMs: number): CachedSegment {
    const cached = new CachedSegment(wal, segment, nowMs);
    this.#segments.push(cached);
    return cached;
  }

  addEntry(cached: CachedSegment, entry: LogEntry): void {
    entry.log.push(entry);
    cached.entries.push(entry);
    this.#entryCount += 1;
    this.#sizeBytes += entry.costBytes;
  }

  /** Segments not yet uploaded, oldest first. */
  *pendingSegments(): Generator<CachedSegment> {
    for (let at = this.#head; at < this.#segments.length; at++) {
      const cached = this.#segments[at];
      if (cached !== undefined && !cached.isUploaded) yield cached;
    }
  }

  /** Evicts the oldest uploaded segments until the rest fits. */
  evict(): void {
    while (this.#sizeBytes > this.sizeBytesMax) {
      const oldest = this.#segments[this.#head];
      if (oldest === undefined || !oldest.isUploaded) break;
      this.#segments[this.#head] = undefined;
      this.#head += 1;
      this.#entryCount -= oldest.entries.length;
      this.evictionCount += oldest.entries.length;
      for (const entry of oldest.entries) {
        entry.log.evict(entry);
        this.#sizeBytes -= entry.costBytes;
        this.dropLogIfIdle(entry.log);
      }
    }
    if (this.#head > 64 && this.#head * 2 > this.#segments.length) {
      this.#segments.splice(0, this.#head);
      this.#head = 0;
    }
  }
}
