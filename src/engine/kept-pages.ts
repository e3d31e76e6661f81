/**
 * Pages that are kept for readers who ask for the same one: many at a tail, many that catch up from the
 * start. Each holder keeps its last page by itself; this bounds them all together. The oldest go first.
 */
import { KEPT_PAGES_BYTES_MAX } from "../lib/limits.ts";

/** What a kept page costs beside its bytes. */
const PAGE_OVERHEAD_BYTES = 512;

/** Keeps one page; lets go of `page` if that is the one. */
export interface PageHolder {
  releasePage(page: object): void;
}

interface KeptPage {
  readonly holder: PageHolder;
  readonly page: object;
  readonly sizeBytes: number;
}

export class KeptPages {
  /** Oldest first; those before `#head` are gone. */
  #pages: (KeptPage | undefined)[] = [];
  #head = 0;
  #sizeBytes = 0;

  constructor(readonly sizeBytesMax = KEPT_PAGES_BYTES_MAX) {}

  /** Notes that `holder` keeps `page` of `sizeBytes`, and makes the oldest holders let go of theirs where that is too much. */
  add(holder: PageHolder, page: object, sizeBytes: number): void {
    const kept = { holder, page, sizeBytes: sizeBytes + PAGE_OVERHEAD_BYTES };
    this.#pages.push(kept);
    this.#sizeBytes += kept.sizeBytes;
    while (this.#sizeBytes > this.sizeBytesMax) this.#releaseOldest();
    if (this.#head > 1024 && this.#head * 2 > this.#pages.length) {
      this.#pages = this.#pages.slice(this.#head);
      this.#head = 0;
    }
  }

  #releaseOldest(): void {
    const oldest = this.#pages[this.#head];
    this.#pages[this.#head++] = undefined;
    if (oldest === undefined) return;
    this.#sizeBytes -= oldest.sizeBytes;
    oldest.holder.releasePage(oldest.page);
  }
}
