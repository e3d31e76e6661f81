/**
 * What the two protocols have in common: a handle of one stream, whose positions are sequences (`number`) in the Pico
 * protocol and opaque tokens (`string`) in Durable Streams. Where they differ, the handles differ: `PicoStream` has
 * records with keys, conditional appends, trim; `DurableStream` has bytes or JSON, forks, `Stream-Seq`.
 */
import type { CallOptions } from "./client-options.ts";
import type { RetryOptions } from "./retry.ts";

/** Where a read begins: at a position that the server told, at the first record that is still there, or behind the last. */
export type From<Position> = Position | "start" | "tail";

export interface CreateOptions extends CallOptions {
  /** Media type of the stream, stored verbatim, at most 1,024 printable ASCII characters. @default "application/octet-stream", of a fork: its source's */
  readonly contentType?: string;
  /** Sliding lifetime in seconds, renewed by appends and reads. Excludes `expiresAt`. @default none */
  readonly ttlSeconds?: number;
  /** End of the stream, from 1970 to 9999. @default none */
  readonly expiresAt?: Date;
  /** Creates the stream closed, with `body` as all that it ever holds. @default false */
  readonly close?: boolean;
  /** First content: one record; of a JSON stream of Durable Streams a JSON text, whose elements are records if it is an array. Ignored where the stream exists. */
  readonly body?: string | Uint8Array;
}

export interface StreamState<Position> {
  readonly contentType: string;
  /** Behind the last durable record. */
  readonly tail: Position;
  readonly isClosed: boolean;
  /** Sliding lifetime; null: none. */
  readonly ttlSeconds: number | null;
  /** Milliseconds since 1970; null: none. */
  readonly expiresAtMs: number | null;
}

export interface CreateResult<Position> extends StreamState<Position> {
  /**
   * False: it existed, with equal settings. After an attempt whose answer was lost it may have been created by that
   * attempt. A create that is repeated is harmless either way.
   */
  readonly isNew: boolean;
}

export interface AppendResult<Position> {
  /** The tail behind this append; of a repeat: the present tail. */
  readonly next: Position;
  /** The stream is closed, by this append or before. */
  readonly isClosed: boolean;
  /** A producer's repeat of what had been taken before: nothing was written. */
  readonly isDuplicate: boolean;
  /** The last sequence that the stream took from the producer in its epoch; null without a producer. */
  readonly producerSeq: number | null;
}

/** Identity of one request of a producer. */
export interface ProducerStamp {
  /** 1 to 1,024 bytes. */
  readonly id: string;
  readonly epoch: number;
  /** 0 for the first request of an epoch, then one more for each. */
  readonly seq: number;
}

export interface AppendOptions extends CallOptions {
  /** Closes the stream behind the records, in the same step. @default false */
  readonly close?: boolean;
  /** Makes the append repeatable, and so lets the client repeat it. `producer()` counts for you. */
  readonly producer?: ProducerStamp;
}

export interface ReadOptions<Position> extends CallOptions {
  /** @default "start" */
  readonly from?: From<Position>;
  /** That of the page that told `from`. Where the stream was deleted and made anew since, the read is refused as `gone`. @default null: of any */
  readonly streamTag?: string | null;
}

/** Of a read of one page. */
export interface PageReadOptions<Position> extends ReadOptions<Position> {
  /**
   * At the tail, waits for records, as long as the server lets a read wait (25 s unless set otherwise); then the page is
   * empty. `from` must be a position. @default false
   */
  readonly wait?: boolean;
}

export interface Page<Position> {
  /** Where the next read goes on. */
  readonly next: Position;
  /** The page reaches the tail as it was when the page was made. */
  readonly isUpToDate: boolean;
  /** The page reaches the end of a closed stream: nothing will ever follow. */
  readonly isEnd: boolean;
  /** Tells the stream from a later one of the same name; to be kept with `next`. Null: no answer told, as a read that waits does not. */
  readonly streamTag: string | null;
}

export interface FollowOptions<Position> extends ReadOptions<Position> {
  /**
   * How to wait at the tail. `long-poll` is one request for each batch that arrives; it passes every proxy and gives
   * the exact bytes. `sse` keeps one answer open, which is quicker, but needs proxies that neither buffer nor compress
   * it, and shows texts of Durable Streams with their line ends as `\n`. `off` ends at the tail. @default "long-poll"
   */
  readonly live?: "long-poll" | "sse" | "off";
  /** Bounds of one outage, of the network or the server. @default those of the client */
  readonly retry?: RetryOptions;
}

/** The part of a stream's handle that is the same for both protocols. */
export interface StreamHandle<Position, SomePage extends Page<Position>> {
  /** Decoded, with its slash. */
  readonly name: string;
  create(options?: CreateOptions): Promise<CreateResult<Position>>;
  head(options?: CallOptions): Promise<StreamState<Position>>;
  append(data: string | Uint8Array, options?: AppendOptions): Promise<AppendResult<Position>>;
  read(options?: PageReadOptions<Position>): Promise<SomePage>;
  follow(options?: FollowOptions<Position>): AsyncIterable<SomePage>;
  close(options?: CallOptions & { readonly producer?: ProducerStamp }): Promise<AppendResult<Position>>;
  delete(options?: CallOptions): Promise<boolean>;
}
