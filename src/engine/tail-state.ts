/**
 * What a stream's owner must know to take the next append, as of one change. It travels in the first
 * WAL entry of the stream behind each upload cut, and in every data object that holds the stream, so
 * that it can always be rebuilt: of two tail states the one with the higher change number is the newer.
 */

/** The last accepted append of a producer. Numbers are u64 on the wire, hence bigint. */
export interface ProducerState {
  readonly producerEpoch: bigint;
  readonly lastSeq: bigint;
  /** Server time of the last accepted append: decides who makes room (`PRODUCERS_MAX`). */
  readonly lastUsedMs: number;
}

/** A producer append, as named by its headers. */
export interface ProducerStamp {
  readonly producerId: string;
  readonly producerEpoch: bigint;
  readonly seq: bigint;
}

export interface TailState {
  /** Entries of this stream so far; each entry raises it by one, close-only and producer-only ones too. */
  readonly changeNumber: number;
  /** Where the next record lands. */
  readonly nextOffset: number;
  /** Of the last record; 0 before the first. */
  readonly lastTimestampMs: number;
  /** Last accepted `Stream-Seq` (Durable Streams 5.2). */
  readonly streamSeq: string | null;
  readonly isClosed: boolean;
  /** The producer append that closed the stream; null where none did. */
  readonly closedBy: ProducerStamp | null;
  /** By producer id. Immutable: replaced, never changed. */
  readonly producers: ReadonlyMap<string, ProducerState>;
}
