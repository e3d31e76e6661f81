/**
 * Reads records and tail states of streams wherever they are: the log cache first, then the data
 * objects that the view names, and below a fork's offset its source's.
 *
 * A record that cannot be found is damage and is named as such; it never makes a stream look shorter
 * (FAULTS W8). An object that is missing may have been replaced since the view was asked: the view is
 * brought to the head of the log and the search repeated before it counts as damage (FAULTS G2).
 *
 * For who reads page by page what comes next is fetched while the page before is encoded and sent. Nobody waits
 * for that, and whatever becomes of it no page is different.
 */
import { PicoError } from "../lib/errors.ts";
import { OBJECT_READS_MAX, READ_AHEAD_LOOKS_MAX, SEQUENTIAL_READS_MAX, STREAM_GAPS_MAX } from "../lib/limits.ts";
import { mapConcurrently } from "../lib/map-concurrently.ts";
import type { ObjectEntry, StreamEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
import type { DataObjectReaders } from "./data-object-readers.ts";
import type { LogCache } from "./log-cache.ts";
import { PageBuilder } from "./page-builder.ts";
import { RecordBatchView } from "./record-batch-view.ts";
import { SequentialRead, SequentialReads } from "./sequential-reads.ts";
import { StreamGaps } from "./stream-gaps.ts";
import type { TailState } from "./tail-state.ts";

/** Searches of the view's objects before a record counts as lost. */
const SEARCHES_MAX = 3;

export interface PageBounds {
  /** First offset wanted; at or above the trim point. */
  readonly from: number;
  /** Not beyond this offset, which is at or below the durable tail. */
  readonly end: number;
  /** 0: no bound. */
  readonly recordsMax: number;
  readonly bytesMax: number;
}

/** Whose own records hold an offset, and up to where they are meant. */
interface Home {
  readonly streamId: number;
  readonly end: number;
}

/** Where records came from. */
interface Place {
  readonly object: ObjectEntry;
  readonly home: Home;
}

export class StreamReader {
  readonly #gaps = new StreamGaps(STREAM_GAPS_MAX);
  readonly #sequentialReads = new SequentialReads(SEQUENTIAL_READS_MAX);
  /** Looks at what to fetch ahead that are under way. */
  #looks = 0;

  constructor(
    private readonly cache: LogCache,
    private readonly metadata: Metadata,
    private readonly objects: DataObjectReaders,
  ) {}

  /** The page of a stream. Synchronous where the log cache holds all of it. */
  read(entry: StreamEntry, bounds: PageBounds): PageBuilder | Promise<PageBuilder> {
    const page = new PageBuilder(bounds.from, bounds.end, bounds.recordsMax, bounds.bytesMax);
    this.#takeCached({ streamId: entry.streamId, end: bounds.end }, page);
    if (page.isFull) {
      this.cache.hitCount += 1;
      return page;
    }
    this.cache.missCount += 1;
    return this.#readStored(entry, page, bounds);
  }

  /**
   * The newest tail state that data objects hold of the stream; null where none holds it, which means
   * that nothing of it was ever uploaded.
   */
  async readTailState(streamId: number): Promise<TailState | null> {
    for (let search = 1; ; search++) {
      const objects = this.metadata.view.liveObjectsOf(streamId);
      const found = await mapConcurrently(objects, OBJECT_READS_MAX, (object) => this.objects.readTailState(object, streamId));
      const missing = objects.find((_, at) => found[at] === "object_missing");
      if (missing === undefined) return newest(found);
      if (search >= SEARCHES_MAX) throw this.#damage(streamId, "its tail state", missingFromStore(this.objects.describe(missing)));
      await this.metadata.catchUp();
    }
  }

  /** Takes the records that follow `page.next` from the cache, if it holds that one. */
  #takeCached(home: Home, page: PageBuilder): void {
    const log = this.cache.log(home.streamId);
    if (log === undefined || log.isEmpty || page.next < log.firstOffset) return;
    for (const entry of log.from(page.next)) {
      if (page.isFull || page.next >= home.end) return;
      if (entry.batchStart >= 0) page.take(new RecordBatchView(entry.segment.bytes, entry.batchStart), home.end);
    }
  }

  async #readStored(entry: StreamEntry, page: PageBuilder, { from, bytesMax }: PageBounds): Promise<PageBuilder> {
    const known = this.#sequentialReads.take(entry.streamId, from);
    const place = await this.#fill(entry, page);
    if (place === null || page.next >= page.end) return page;
    const reader = known ?? new SequentialRead();
    reader.readBytes += bytesMax - page.bytesLeft;
    this.#sequentialReads.note(entry.streamId, page.next, reader);
    if (known !== null && reader.isDue) this.#readAhead(reader, place, page.next);
    return page;
  }

  /** Fills the page; returns where its last records came from, or null where that is the cache or it got none. */
  async #fill(entry: StreamEntry, page: PageBuilder): Promise<Place | null> {
    let failedSearches = 0;
    let holdings: Holdings | null = null;
    let place: Place | null = null;
    while (!page.isFull) {
      const before = page.next;
      const home = this.#home(entry, before);
      this.#takeCached(home, page);
      if (page.next > before) place = null;
      if (page.isFull) break;
      if (page.next > before) continue;
      const isKnown: boolean = holdings?.streamId === home.streamId;
      if (holdings === null || !isKnown) holdings = await this.#search(home.streamId, before);
      const { taken, missing } = await this.#takeStored(home, page, holdings);
      if (taken !== null) {
        failedSearches = 0;
        place = { object: taken, home };
        continue;
      }
      holdings = null;
      // What was found for an earlier offset may miss objects committed since.
      if (isKnown) continue;
      this.#assertWanted(entry, before);
      failedSearches += 1;
      if (failedSearches >= SEARCHES_MAX) {
        const fact = missing === null ? "no live data object holds it" : missingFromStore(this.objects.describe(missing));
        throw this.#damage(entry.streamId, `offset ${before}`, fact);
      }
      await this.metadata.catchUp();
    }
    return place;
  }

  /** A stream deleted, or an offset trimmed, while it was read is not damage: it is answered as if asked for now. */
  #assertWanted(entry: StreamEntry, offset: number): void {
    const current = this.metadata.view.streamById(entry.streamId);
    if (current === null) throw new PicoError("not_found", `stream ${entry.name} was deleted while it was read`, { name: entry.name });
    const { startOffset, isDeleted } = current;
    // What its forks do not read of it may be dropped already.
    if (isDeleted) throw new PicoError("gone", `stream ${entry.name} was deleted while it was read`, { name: entry.name });
    if (offset >= startOffset) return;
    throw new PicoError("offset_gone", `offset ${offset} was trimmed while it was read: go on at ${startOffset}`, { start: startOffset });
  }

  /** The stream whose own records hold `offset`: the stream itself, or along its sources. */
  #home(entry: StreamEntry, offset: number): Home {
    let home = entry;
    let end = Number.MAX_SAFE_INTEGER;
    while (home.fork !== null && offset < home.fork.offset) {
      const source = this.metadata.view.streamById(home.fork.sourceId);
      if (source === null) {
        this.#assertWanted(entry, offset);
        throw this.#damage(entry.streamId, `offset ${offset}`, `its source ${home.fork.sourceId} is not kept`);
      }
      end = Math.min(end, home.fork.offset);
      home = source;
    }
    return { streamId: home.streamId, end };
  }

  /**
   * Takes what one data object holds from `page.next` on; which one, and else which the store turned out not to have.
   * The older an object, the lower its offsets of a stream, as a rule: the right one is found by bisection, and
   * only where that misses each one is asked.
   */
  async #takeStored(home: Home, page: PageBuilder, { holders }: Holdings): Promise<Taken> {
    let missing: ObjectEntry | null = null;
    let low = 0;
    let high = holders.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      const object = holders[middle];
      const found = object === undefined ? "nothing" : await this.#takeFrom(object, home, page);
      if (found === "taken") return { taken: object ?? null, missing: null };
      if (found === "missing") missing = object ?? null;
      if (found === "nothing") high = middle;
      else low = middle + 1;
    }
    for (const object of holders) {
      const found = await this.#takeFrom(object, home, page);
      if (found === "taken") return { taken: object, missing: null };
      if (found === "missing") missing = object;
    }
    return { taken: null, missing };
  }

  /** What the object has of the stream from `page.next` on: it, now in the page; only what lies higher; or nothing. */
  async #takeFrom(object: ObjectEntry, home: Home, page: PageBuilder): Promise<"taken" | "above" | "nothing" | "missing"> {
    const { objectId } = object;
    const { streamId } = home;
    const wanted = page.next;
    const known = this.#gaps.find(objectId, streamId);
    if (known !== null && wanted >= known.end) return "nothing";
    if (known !== null && known.from <= wanted && wanted < known.to) return "above";
    // One block tells whether the object is the right one; a whole page is asked of those that are.
    const batches = await this.objects.readBatches(object, streamId, wanted, known?.isHolder === true ? page.bytesLeft : 1);
    if (batches === "object_missing") return "missing";
    const first = batches[0]?.baseOffset ?? Number.POSITIVE_INFINITY;
    if (first > wanted) {
      this.#gaps.noteGap(objectId, streamId, wanted, first);
      return first === Number.POSITIVE_INFINITY ? "nothing" : "above";
    }
    this.#gaps.noteHolder(objectId, streamId);
    for (const batch of batches) {
      if (page.isFull || batch.baseOffset > page.next || page.next >= home.end) break;
      if (batch.endOffset > page.next) page.take(batch, home.end);
    }
    return "taken";
  }

  /** Begins to fetch what `reader` will want next. Nobody waits for it, and an error of it is nobody's. */
  #readAhead(reader: SequentialRead, place: Place, from: number): void {
    if (this.#looks >= READ_AHEAD_LOOKS_MAX) return;
    this.#looks += 1;
    reader.isLooking = true;
    const readBytes = reader.readBytes;
    const done = (aheadBytes: number) => {
      this.#looks -= 1;
      reader.isLooking = false;
      reader.aheadUntil = Math.max(reader.aheadUntil, readBytes + aheadBytes);
    };
    this.#beginAhead(place, from, reader.windowBytes).then(done, () => done(0));
  }

  /** How many bytes from an offset on are cached or on the way now: `bytes`, unless the stream ends, or there is no room. */
  async #beginAhead({ object, home }: Place, from: number, bytes: number): Promise<number> {
    const { streamId, end } = home;
    let ahead = 0;
    let next: { readonly object: ObjectEntry; readonly offset: number } | null = { object, offset: from };
    while (next !== null && next.offset < end && ahead < bytes) {
      const found = await this.objects.readAhead(next.object, streamId, next.offset, end, bytes - ahead);
      if (found === "object_missing") break;
      ahead += found.bytes;
      next = found.isEnd ? this.#objectBehind(next.object, streamId) : null;
    }
    return ahead;
  }

  /** The object that goes on with the stream where this one ends; null where their places do not tell. */
  #objectBehind({ summary }: ObjectEntry, streamId: number): { readonly object: ObjectEntry; readonly offset: number } | null {
    if (summary === null || summary.last.streamId !== streamId) return null;
    const offset = summary.last.offset + 1;
    const isNext = ({ summary: other }: ObjectEntry) => other?.first.streamId === streamId && other.first.offset === offset;
    const object = this.metadata.view.liveObjectsOf(streamId, offset).find(isNext);
    return object === undefined ? null : { object, offset };
  }

  /** The live data objects that may hold records of the stream at or above `offset`, newest first. */
  async #search(streamId: number, offset: number): Promise<Holdings> {
    const candidates = this.metadata.view.liveObjectsOf(streamId, offset);
    const unknown = candidates.filter(({ objectId }) => this.#gaps.find(objectId, streamId) === null);
    const holds = await mapConcurrently(unknown, OBJECT_READS_MAX, (object) => this.objects.mayContain(object, streamId));
    for (const [at, { objectId, summary }] of unknown.entries()) {
      if (holds[at] === false) this.#gaps.noteGap(objectId, streamId, 0, Number.POSITIVE_INFINITY);
      else if (holds[at] === true && summary?.first.streamId === streamId) this.#gaps.noteGap(objectId, streamId, 0, summary.first.offset);
      else if (holds[at] === true) this.#gaps.noteCandidate(objectId, streamId);
    }
    const hasNothing = ({ objectId }: ObjectEntry) => offset >= (this.#gaps.find(objectId, streamId)?.end ?? Number.POSITIVE_INFINITY);
    return { streamId, holders: candidates.filter((object) => !hasNothing(object)) };
  }

  #damage(streamId: number, what: string, fact: string): PicoError {
    return new PicoError("corrupt", `stream ${streamId}: ${what} cannot be read: ${fact}`, { where: `stream ${streamId}, ${what}` });
  }
}

/** The data objects that a page of a stream is looked for in. */
interface Holdings {
  readonly streamId: number;
  readonly holders: readonly ObjectEntry[];
}

/** The object that records were taken from; where there is none, one that should be there and is not, if any. */
interface Taken {
  readonly taken: ObjectEntry | null;
  readonly missing: ObjectEntry | null;
}

function missingFromStore(object: string): string {
  return `${object} is missing from the store`;
}

function newest(states: readonly (TailState | null | "object_missing")[]): TailState | null {
  let best: TailState | null = null;
  for (const state of states) {
    if (state === null || state === "object_missing") continue;
    if (best === null || state.changeNumber > best.changeNumber) best = state;
  }
  return best;
}
