/**
 * What a producer has still to send, in order, bounded in bytes and in records. Who comes when it is full waits, in
 * order; how many may wait is bounded too.
 */
import { StreamError } from "./stream-error.ts";

export interface QueuedRecord<Ack> {
  readonly bytes: Uint8Array;
  /** Who waits for its acknowledgement; null: nobody. */
  readonly waiter: { resolve(ack: Ack): void; reject(reason: unknown): void } | null;
}

interface Waiting<Ack> {
  readonly record: QueuedRecord<Ack>;
  readonly admit: () => void;
  readonly refuse: (reason: unknown) => void;
}

export interface QueueLimits {
  readonly bytesMax: number;
  readonly recordsMax: number;
  readonly waitingMax: number;
}

export class ProducerQueue<Ack> {
  readonly #limits: QueueLimits;
  #records: QueuedRecord<Ack>[] = [];
  /** Index of the first record: those before it have left. */
  #first = 0;
  /** Of all that was admitted and not released: what was taken counts until it is settled, so that the bound holds for all memory. */
  #heldBytes = 0;
  #heldCount = 0;
  #waiting: Waiting<Ack>[] = [];

  constructor(limits: QueueLimits) {
    this.#limits = limits;
  }

  /** Records that `take` would find. */
  get count(): number {
    return this.#records.length - this.#first;
  }

  get heldBytes(): number {
    return this.#heldBytes;
  }

  /** Calls that wait for room. */
  get waitingCount(): number {
    return this.#waiting.length;
  }

  /**
   * Resolves once the record has its place. One larger than the whole queue gets it when nothing else is held. Throws
   * `queue_full` where too many calls wait already.
   */
  add(record: QueuedRecord<Ack>): Promise<void> {
    if (this.#waiting.length === 0 && this.#hasRoom(record)) {
      this.#push(record);
      return Promise.resolve();
    }
    const { waitingMax } = this.#limits;
    if (this.#waiting.length >= waitingMax) {
      throw new StreamError("queue_full", `${waitingMax} calls wait for room in the producer's queue; await each before the next`);
    }
    return new Promise((admit, refuse) => this.#waiting.push({ record, admit, refuse }));
  }

  /** Takes a batch from the front: at least one record, then as many as fit. */
  take(bytesMax: number, recordsMax: number): QueuedRecord<Ack>[] {
    let size = 0;
    let end = this.#first;
    for (const limit = Math.min(this.#records.length, this.#first + recordsMax); end < limit; end++) {
      size += this.#records[end]?.bytes.length ?? 0;
      if (size > bytesMax && end > this.#first) break;
    }
    const batch = this.#records.slice(this.#first, end);
    this.#first = end;
    if (this.#first * 2 >= this.#records.length) {
      this.#records = this.#records.slice(this.#first);
      this.#first = 0;
    }
    return batch;
  }

  /** A batch that was taken is settled, and makes room. */
  release(batch: readonly QueuedRecord<Ack>[]): void {
    for (const { bytes } of batch) this.#heldBytes -= bytes.length;
    this.#heldCount -= batch.length;
    let admitted = 0;
    for (const { record, admit } of this.#waiting) {
      if (!this.#hasRoom(record)) break;
      this.#push(record);
      admit();
      admitted += 1;
    }
    this.#waiting.splice(0, admitted);
  }

  /** Refuses all that is queued or waits. */
  fail(reason: unknown): void {
    const records = this.#records.slice(this.#first);
    const waiting = this.#waiting;
    this.#records = [];
    this.#first = 0;
    this.#heldBytes = 0;
    this.#heldCount = 0;
    this.#waiting = [];
    for (const { waiter } of records) waiter?.reject(reason);
    for (const { refuse } of waiting) refuse(reason);
  }

  #hasRoom({ bytes }: QueuedRecord<Ack>): boolean {
    if (this.#heldCount === 0) return true;
    return this.#heldBytes + bytes.length <= this.#limits.bytesMax && this.#heldCount < this.#limits.recordsMax;
  }

  #push(record: QueuedRecord<Ack>): void {
    this.#records.push(record);
    this.#heldBytes += record.bytes.length;
    this.#heldCount += 1;
  }
}
