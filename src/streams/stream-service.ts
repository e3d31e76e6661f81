/**
 * What a protocol can ask of the streams that this node owns. Names arrive decoded and checked, numbers
 * strict and in range; answers are values and errors, which the protocol turns into its own words.
 *
 * Promises of every method:
 * - A success is durable before it is returned; so is everything that a refusal depends on.
 * - Readers see durable records only.
 * - Errors are `PicoError` with one of the request codes of `lib/errors.ts`; `not_found`, `gone` and
 *   `unavailable` may come from any method that takes a name.
 * - Where a value is at hand without waiting it is returned as such, not as a promise.
 */

import type { PageSlice } from "../engine/page-builder.ts";
import type { NewRecord } from "../engine/record.ts";
import type { ProducerStamp } from "../engine/tail-state.ts";
import type { ForkOrigin, StreamSettings } from "../metadata/command.ts";

export type MaybePromise<T> = T | Promise<T>;

export interface StreamInfo {
  readonly streamId: number;
  readonly name: string;
  readonly settings: StreamSettings;
  /** Trim point: first offset still readable. */
  readonly startOffset: number;
  /** Durable tail: first offset not yet durable. */
  readonly nextOffset: number;
  readonly isClosed: boolean;
  readonly fork: ForkOrigin | null;
}

export interface CreateRequest {
  readonly name: string;
  /** Null only for a fork: take the source's. */
  readonly contentType: string | null;
  readonly ttlSeconds: bigint | null;
  readonly expiresAtMs: number | null;
  readonly isClosed: boolean;
  /** First records; ignored where the stream exists. */
  readonly records: readonly NewRecord[];
  readonly fork: {
    readonly sourceName: string;
    /** Null: the source's tail. */
    readonly offset: number | null;
    /** Past `offset`: records for a JSON stream, bytes of the record at `offset` for others. */
    readonly subOffset: number;
  } | null;
}

export interface CreateResult {
  /** False: it exists with equal settings (Pico 3.2, Durable Streams 5.1). Otherwise `conflict`. */
  readonly isNew: boolean;
  readonly info: StreamInfo;
}

export interface AppendRequest {
  readonly name: string;
  /** Empty only with `close`. */
  readonly records: readonly NewRecord[];
  readonly close: boolean;
  readonly producer: ProducerStamp | null;
  /** Refused with `match_failed` unless this is the tail, records under way included. */
  readonly matchTail: bigint | null;
  /** Durable Streams `Stream-Seq`: must rise (`stream_seq_conflict`). */
  readonly streamSeq: string | null;
  /** Durable Streams: refused with `content_type_mismatch` unless the stream's MIME type is this. */
  readonly mimeType: string | null;
}

export interface AppendResult {
  /** `duplicate`: this producer append was taken before. `closed_before`: a repeated close. Neither wrote anything. */
  readonly kind: "appended" | "duplicate" | "closed_before";
  /** Offset of the first record written; null where none was. */
  readonly startOffset: number | null;
  /** Tail after this request (`duplicate`: the present tail). */
  readonly nextOffset: number;
  /** Of the records written; null where none was. */
  readonly timestampMs: number | null;
  readonly isClosed: boolean;
  /** Last accepted sequence of the producer in the request's epoch; null without a producer. */
  readonly producerSeq: bigint | null;
}

export interface ReadRequest {
  readonly name: string;
  /** `start`: the trim point; `tail`: the durable tail. A number below the trim point is `offset_gone`, above the tail `bad_request`. */
  readonly from: number | "start" | "tail";
  /** At most this many records; 0: no bound. */
  readonly recordsMax: number;
  /** At most this many bytes (key + body + headers), but at least one record; 1 to `PAGE_BYTES_MAX`. */
  readonly bytesMax: number;
}

/**
 * A page of records. Immutable; readers who ask for the same page of a busy stream may get the same
 * object, so that what is encoded from it can be shared (keep it in a WeakMap).
 */
export interface ReadPage {
  readonly info: StreamInfo;
  /** First offset of the page, resolved. */
  readonly from: number;
  /** Where the next read goes on. */
  readonly next: number;
  readonly slices: readonly PageSlice[];
  /** Key, body and header bytes of its records. */
  readonly sizeBytes: number;
  /** The page reaches the durable tail. */
  readonly isUpToDate: boolean;
  /** Up to date, and the stream is closed: nothing will ever follow. */
  readonly isEnd: boolean;
}

/** Why a wait ended. `moved`: this node no longer owns the stream. */
export type WaitOutcome = "data" | "closed" | "deleted" | "moved" | "timeout";

/** A read that waits and is told by a call: what many wait for costs each of them no promise and no timer. */
export interface Waiter {
  /** The durable tail has to pass it. Does not change while the waiter is parked. */
  readonly offset: number;
  /** The wait is over. Called once for each time that it is parked; must neither throw nor do much. */
  wake(outcome: WaitOutcome): void;
}

export interface ListRequest {
  readonly prefix: string;
  /** Exclusive; null: from the first. */
  readonly after: string | null;
  readonly limit: number;
}

export interface ListItem {
  readonly name: string;
  readonly settings: StreamSettings;
  readonly isClosed: boolean;
  /** Durable; null where the stream is not in use on this node. */
  readonly startOffset: number | null;
  readonly nextOffset: number | null;
}

export interface ListResult {
  readonly items: readonly ListItem[];
  /** Whether more names follow the last item. */
  readonly hasMore: boolean;
}

export interface StreamService {
  create(request: CreateRequest): Promise<CreateResult>;
  append(request: AppendRequest): Promise<AppendResult>;
  /** Moves the trim point to `offset`, clamped to [trim point, durable tail]; returns where it is now. */
  trim(name: string, offset: bigint): Promise<{ readonly startOffset: number }>;
  delete(name: string): Promise<void>;
  /** Does not renew a TTL. */
  head(name: string): MaybePromise<StreamInfo>;
  /** Renews a TTL. */
  read(request: ReadRequest): MaybePromise<ReadPage>;
  /**
   * Resolves when the durable tail passes `offset`, or the stream is closed, deleted or moved, or after
   * `timeoutMs`, or when `signal` aborts (`timeout`). `streamId` is the one of the page read before, so
   * that a recreated name is not mistaken for it. Keeps the stream alive meanwhile.
   */
  wait(streamId: number, offset: number, timeoutMs: number, signal: AbortSignal | null): Promise<WaitOutcome>;
  /**
   * The same without a bound in time: `waiter` is woken once. False, and nothing parked, where there is no
   * reason to wait: the tail is past its offset, the stream is closed or not in use here; a read tells.
   */
  park(streamId: number, waiter: Waiter): boolean;
  /** Takes a parked waiter back; it is not woken any more. */
  unpark(streamId: number, waiter: Waiter): void;
  /** Any node answers; needs no ownership. */
  list(request: ListRequest): ListResult;
}
