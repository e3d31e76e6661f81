/** A record as a client gives it, and as a reader gets it. A null body is a tombstone; null and empty differ. */

export interface RecordHeader {
  readonly name: string;
  readonly value: Uint8Array | null;
}

export interface NewRecord {
  readonly key: Uint8Array | null;
  /** In order, repeats kept; at most `RECORD_HEADERS_MAX`. */
  readonly headers: readonly RecordHeader[];
  readonly body: Uint8Array | null;
}

export interface StoredRecord extends NewRecord {
  /** Position in the stream, from 0. */
  readonly offset: number;
  /** Server time of the append, ms since 1970; never falls within a stream. */
  readonly timestampMs: number;
}
