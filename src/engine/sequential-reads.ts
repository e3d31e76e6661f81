/**
 * Who reads streams from front to back, in pages: a reader is known by where its last page ended, since the
 * next one begins there. What asks for the first page of a stream, or for pages here and there, is none.
 *
 * Only a guess at what will be wanted next: a reader that is forgotten, or taken for another one at the same
 * offset, costs a request or a few bytes. Bounded in number; the one that has not read for longest goes first.
 */
import { READ_AHEAD_WINDOW_BYTES } from "../lib/limits.ts";
import { RecentMap } from "../lib/recent-map.ts";

/** One reader, from page to page. Bytes are counted from the beginning of its first one. */
export class SequentialRead {
  /** Of all pages so far. */
  readBytes = 0;
  /** Up to here it is fetched, as far as is known. */
  aheadUntil = 0;
  /** Somebody looks what to fetch. */
  isLooking = false;

  /** What to have ahead of it: as much as it has read, so that who stops early has cost little. */
  get windowBytes(): number {
    return Math.min(this.readBytes, READ_AHEAD_WINDOW_BYTES);
  }

  /** Whether at most half of that is ahead of it, as far as is known. */
  get isDue(): boolean {
    return !this.isLooking && (this.aheadUntil - this.readBytes) * 2 <= this.windowBytes;
  }
}

export class SequentialReads {
  readonly #reads: RecentMap<string, SequentialRead>;

  constructor(countMax: number) {
    this.#reads = new RecentMap(countMax);
  }

  get count(): number {
    return this.#reads.size;
  }

  /** The reader whose last page ended at `offset`; null where there is none. */
  take(streamId: number, offset: number): SequentialRead | null {
    const key = keyOf(streamId, offset);
    const read = this.#reads.get(key);
    this.#reads.delete(key);
    return read ?? null;
  }

  /** Its page ends at `offset`. Of several readers that stand there the one that has read most is remembered. */
  note(streamId: number, offset: number, read: SequentialRead): void {
    const key = keyOf(streamId, offset);
    const other = this.#reads.get(key);
    this.#reads.set(key, other !== undefined && other.readBytes > read.readBytes ? other : read);
  }
}

function keyOf(streamId: number, offset: number): string {
  return `${streamId}:${offset}`;
}
