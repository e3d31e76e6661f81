/**
 * Folds WAL entries onto a tail state: recovery and upload come by it to the state that the stream's
 * owner had after the last of them.
 *
 * Invariants: entries are consecutive (each change number one above the last, records at the tail), or
 * the fold throws `corrupt`. States given and handed out never change; the producers are copied at most
 * once between two `state` calls, however many entries there are.
 */
import { PicoError } from "../lib/errors.ts";
import { PRODUCER_IDLE_MS, PRODUCERS_MAX } from "../lib/limits.ts";
import type { ProducerStamp, ProducerState, TailState } from "./tail-state.ts";

/** What of an entry changes a tail state; a decoded `WalEntry` is one. */
export interface TailChange {
  readonly streamId: number;
  readonly changeNumber: number;
  readonly baseOffset: number;
  readonly nextOffset: number;
  readonly timestampMs: number;
  readonly producer: ProducerStamp | null;
  readonly streamSeq: string | null;
  readonly closes: boolean;
}

export class TailFold {
  #changeNumber: number;
  #nextOffset: number;
  #lastTimestampMs: number;
  #streamSeq: string | null;
  #isClosed: boolean;
  #closedBy: ProducerStamp | null;
  #producers: ReadonlyMap<string, ProducerState>;
  /** The same map while it is ours to change; null while others may hold it. */
  #ownProducers: Map<string, ProducerState> | null = null;

  constructor(base: TailState) {
    this.#changeNumber = base.changeNumber;
    this.#nextOffset = base.nextOffset;
    this.#lastTimestampMs = base.lastTimestampMs;
    this.#streamSeq = base.streamSeq;
    this.#isClosed = base.isClosed;
    this.#closedBy = base.closedBy;
    this.#producers = base.producers;
  }

  get changeNumber(): number {
    return this.#changeNumber;
  }

  get nextOffset(): number {
    return this.#nextOffset;
  }

  get lastTimestampMs(): number {
    return this.#lastTimestampMs;
  }

  get streamSeq(): string | null {
    return this.#streamSeq;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get closedBy(): ProducerStamp | null {
    return this.#closedBy;
  }

  producer(producerId: string): ProducerState | undefined {
    return this.#producers.get(producerId);
  }

  get producers(): ReadonlyMap<string, ProducerState> {
    return this.#producers;
  }

  /** Whether an append of this producer at that time would be remembered; else its owner refuses it. */
  hasProducerRoom(producerId: string, timestampMs: number): boolean {
    if (this.#producers.size < PRODUCERS_MAX || this.#producers.has(producerId)) return true;
    for (const producer of this.#producers.values()) {
      if (timestampMs - producer.lastUsedMs >= PRODUCER_IDLE_MS) return true;
    }
    return false;
  }

  /** Throws `corrupt` unless the change is the one right behind the last. */
  apply(change: TailChange): void {
    if (change.changeNumber !== this.#changeNumber + 1) {
      throw broken(change.streamId, `change ${change.changeNumber} follows change ${this.#changeNumber}`);
    }
    if (change.baseOffset !== this.#nextOffset || change.nextOffset < change.baseOffset) {
      throw broken(change.streamId, `records ${change.baseOffset} to ${change.nextOffset} follow the tail ${this.#nextOffset}`);
    }
    this.#changeNumber = change.changeNumber;
    if (change.nextOffset > change.baseOffset) {
      this.#nextOffset = change.nextOffset;
      this.#lastTimestampMs = change.timestampMs;
    }
    if (change.streamSeq !== null) this.#streamSeq = change.streamSeq;
    if (change.closes) {
      this.#isClosed = true;
      this.#closedBy = change.producer;
    }
    if (change.producer !== null) this.#applyProducer(change.producer, change.timestampMs);
  }

  state(): TailState {
    this.#ownProducers = null;
    return {
      changeNumber: this.#changeNumber,
      nextOffset: this.#nextOffset,
      lastTimestampMs: this.#lastTimestampMs,
      streamSeq: this.#streamSeq,
      isClosed: this.#isClosed,
      closedBy: this.#closedBy,
      producers: this.#producers,
    };
  }

  #applyProducer(stamp: ProducerStamp, timestampMs: number): void {
    this.#ownProducers ??= new Map(this.#producers);
    this.#producers = this.#ownProducers;
    makeProducerRoom(this.#ownProducers, stamp.producerId, timestampMs);
    this.#ownProducers.set(stamp.producerId, { producerEpoch: stamp.producerEpoch, lastSeq: stamp.seq, lastUsedMs: timestampMs });
  }
}

/**
 * Makes room for a producer that the full map does not know, by the one rule that owner and replay
 * share: those idle for `PRODUCER_IDLE_MS` go. False where there is no room: the owner refuses the append.
 */
export function makeProducerRoom(producers: Map<string, ProducerState>, producerId: string, timestampMs: number): boolean {
  if (producers.size < PRODUCERS_MAX || producers.has(producerId)) return true;
  for (const [id, producer] of producers) {
    if (timestampMs - producer.lastUsedMs >= PRODUCER_IDLE_MS) producers.delete(id);
  }
  return producers.size < PRODUCERS_MAX;
}

function broken(streamId: number, fact: string): PicoError {
  return new PicoError("corrupt", `WAL entries of stream ${streamId} do not follow each other: ${fact}`, {
    where: `WAL entries of stream ${streamId}`,
    streamId,
  });
}
