/** The one error class of the client: what a server refused, what did not arrive, what was asked wrongly. */

/** Codes are never renamed. Those of the server are explained in `docs/errors.md`. */
export type StreamErrorCode =
  // A server refused; nothing was changed.
  | "bad_request"
  | "schema_violation"
  | "unauthenticated"
  | "permission_denied"
  | "fenced" // facts: `producerEpoch`
  | "not_found"
  | "gone"
  | "conflict"
  | "closed" // facts: `tail`
  | "sequence_gap" // facts: `expectedSeq`, `receivedSeq`
  | "match_failed" // facts: `tail`
  | "offset_gone" // facts: `start` (Pico)
  | "capacity_exceeded"
  | "payload_too_large"
  | "method_not_allowed"
  // A server cannot do it now, or does not know what became of it.
  | "unavailable" // facts: `retryAfterMs`
  | "durability"
  | "unknown_outcome" // also: the answer to an append without a producer was lost
  | "internal"
  | "request_failed" // any other status
  // Made by the client.
  | "transport" // no whole answer came to a request that may be repeated
  | "redirect" // a redirect that is not followed; facts: `hops`
  | "malformed_answer" // a success whose headers or body are not of the protocol
  | "unsupported" // the protocol, or the stream's content type, has no such operation
  | "queue_full" // too many calls wait for room in a producer's queue
  | "producer_closed";

/** What an error tells beside its code. A fact that the server did not tell is absent. */
export interface StreamErrorFacts {
  /** The stream's tail: a sequence (Pico) or an offset token (Durable Streams). */
  readonly tail?: number | string;
  /** First sequence that is still readable. */
  readonly start?: number;
  /** The epoch that the stream knows of this producer. */
  readonly producerEpoch?: number;
  /** The sequence of this producer that the stream takes next. */
  readonly expectedSeq?: number;
  readonly receivedSeq?: number;
  /** What `Retry-After` asks for, in milliseconds. */
  readonly retryAfterMs?: number;
  /** Addresses that a request was redirected from, in order. */
  readonly hops?: readonly string[];
  /** Attempts that were made, where there was more than one. */
  readonly attempts?: number;
}

export interface StreamErrorOptions {
  /** HTTP status; absent where no server answered. */
  readonly status?: number;
  readonly facts?: StreamErrorFacts;
  readonly isRetryable?: boolean;
  readonly isOutcomeUnknown?: boolean;
  readonly wireCode?: string;
  readonly cause?: unknown;
}

/**
 * Thrown by every operation of the client, except that an aborted one rejects with its signal's reason.
 *
 * @example
 * ```ts
 * import { isStreamError, PicoClient } from "picomq/client";
 *
 * const stream = new PicoClient({ url: "http://127.0.0.1:4437" }).stream("/accounts/1");
 * await stream.create();
 * try {
 *   await stream.append("paid", { expectedTail: 7 });
 * } catch (error) {
 *   if (!isStreamError(error, "match_failed")) throw error;
 *   console.log(`somebody else appended: the tail is ${error.facts.tail}`);
 * }
 * ```
 */
export class StreamError extends Error {
  override readonly name = "StreamError";
  readonly code: StreamErrorCode;
  /** HTTP status; null where no server answered. */
  readonly status: number | null;
  readonly facts: StreamErrorFacts;
  /** The same call may succeed later, and repeating it does no harm. */
  readonly isRetryable: boolean;
  /** What was asked may have happened: neither success nor failure. */
  readonly isOutcomeUnknown: boolean;
  /** The code as the protocol spells it: `error` of a Pico answer, for Durable Streams as its clients derive it; null where no server answered. */
  readonly wireCode: string | null;

  constructor(code: StreamErrorCode, message: string, options: StreamErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.status = options.status ?? null;
    this.facts = options.facts ?? {};
    this.isRetryable = options.isRetryable ?? false;
    this.isOutcomeUnknown = options.isOutcomeUnknown ?? false;
    this.wireCode = options.wireCode ?? null;
  }

  /** The same error with further facts; `changes` win. */
  with(facts: StreamErrorFacts, changes: Pick<StreamErrorOptions, "isOutcomeUnknown"> = {}): StreamError {
    return new StreamError(this.code, this.message, {
      ...(this.status === null ? {} : { status: this.status }),
      facts: { ...this.facts, ...facts },
      isRetryable: this.isRetryable,
      isOutcomeUnknown: changes.isOutcomeUnknown ?? this.isOutcomeUnknown,
      ...(this.wireCode === null ? {} : { wireCode: this.wireCode }),
      cause: this.cause ?? this,
    });
  }
}

/** Whether something thrown is a `StreamError`, and of that code if one is given. */
export function isStreamError(error: unknown, code?: StreamErrorCode): error is StreamError {
  return error instanceof StreamError && (code === undefined || error.code === code);
}

/** An answer that is not of the protocol. */
export function malformed(message: string, cause?: unknown): StreamError {
  return new StreamError("malformed_answer", message, { cause });
}
