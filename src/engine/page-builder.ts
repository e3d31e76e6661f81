/** Collects the slices of one page: consecutive records up to a number of records and of bytes. */
import { assert } from "../lib/assert.ts";
import type { RecordBatchView } from "./record-batch-view.ts";

/** Consecutive records `[from, to)` of one stored batch. */
export interface PageSlice {
  readonly batch: RecordBatchView;
  readonly from: number;
  readonly to: number;
}

export class PageBuilder {
  readonly slices: PageSlice[] = [];
  /** First offset not in the page. */
  next: number;
  /** No further record fits, or the end is reached. */
  isFull: boolean;
  #recordsLeft: number;
  #bytesLeft: number;

  constructor(
    from: number,
    /** The page ends here at the latest. */
    readonly end: number,
    /** 0: no bound. */
    recordsMax: number,
    /** The first record is taken even if it is larger. */
    bytesMax: number,
  ) {
    this.next = from;
    this.#recordsLeft = recordsMax === 0 ? Number.POSITIVE_INFINITY : recordsMax;
    this.#bytesLeft = bytesMax;
    this.isFull = from >= end;
  }

  /** Bytes that may still be taken. */
  get bytesLeft(): number {
    return this.#bytesLeft;
  }

  /** Takes what fits of a batch that holds the offset `next`, up to `limit`: what lies beyond belongs to another stream. */
  take(batch: RecordBatchView, limit = this.end): void {
    assert(batch.baseOffset <= this.next && this.next < batch.endOffset, "the batch holds the next record of the page");
    const from = this.next;
    const last = Math.min(limit, this.end, batch.endOffset);
    const recordsMax = Math.min(this.#recordsLeft, last - from);
    const fit = batch.fit(from, recordsMax, this.#bytesLeft, this.slices.length === 0);
    if (fit.endOffset > from) {
      this.slices.push({ batch, from, to: fit.endOffset });
      this.next = fit.endOffset;
      this.#recordsLeft -= fit.endOffset - from;
      this.#bytesLeft -= fit.sizeBytes;
    }
    this.isFull = this.next < last || this.next >= this.end || this.#recordsLeft <= 0 || this.#bytesLeft <= 0;
  }
}
