/**
 * Every error that crosses a module border. Three sorts: an expected refusal (the caller asked for
 * something that cannot be), a failed dependency (with `cause`), and a broken invariant, which is not
 * here but in `assert.ts` and stops the node.
 *
 * Codes are never renamed; `docs/errors.md` has an entry a code. Facts travel as fields, so no layer
 * parses a message. A new code only where a caller would act differently.
 */

export type ErrorCode =
  // Refusals of a request.
  | "bad_request" // malformed, or impossible for this stream: fact `what` names the offending part
  | "not_found" // no such stream
  | "gone" // a deleted stream that living forks still need
  | "conflict" // exists with other settings
  | "closed" // append to a closed stream: fact `tail`
  | "sequence_gap" // producer sequence ahead: facts `expected`, `received`
  | "fenced" // producer epoch older than the recorded one: fact `producerEpoch`
  | "match_failed" // conditional append: fact `tail`
  | "stream_seq_conflict" // Durable Streams `Stream-Seq` did not rise
  | "content_type_mismatch" // Durable Streams append of another type
  | "offset_gone" // read below the trim point: facts `start`, `tail`
  | "capacity_exceeded" // a documented limit of the stream is reached
  | "payload_too_large" // request body over the limit: facts `limit`, `size`
  | "method_not_allowed"
  | "forbidden_origin" // a foreign web page, or a host that is not ours
  // The server cannot answer now; the same request may succeed later.
  | "unavailable" // overloaded, in recovery, frozen, stopping: fact `retryAfterSeconds`
  // The outcome is bad or not known.
  | "durability" // a write could not be made durable
  | "unknown_outcome" // an answer was lost: neither success nor failure
  | "internal"
  // Failures of what we stand on, or of what is stored.
  | "storage_failed" // the store or file system refused: the operation did not happen
  | "storage_full" // the same, for lack of space
  | "database_failed" // SQL refused: the operation did not happen
  | "corrupt" // stored bytes are damaged: fact `where` names them
  | "incompatible" // stored by a version that this program does not read
  | "fenced_node" // this registration is fenced or ended: the node must stop
  | "locked" // another process holds the directory
  | "settings"; // a setting or flag is wrong: exit code 2

export type Facts = Readonly<Record<string, string | number | boolean | null>>;

export class PicoError extends Error {
  override readonly name = "PicoError";

  constructor(
    readonly code: ErrorCode,
    /** What happened, which value, what to do. One sentence or two, for a person. */
    message: string,
    readonly facts: Facts = {},
    cause?: unknown,
  ) {
    super(message, cause === undefined ? undefined : { cause });
  }
}

export function isPicoError(error: unknown, code?: ErrorCode): error is PicoError {
  return error instanceof PicoError && (code === undefined || error.code === code);
}

/** The message of anything that was thrown; whoever asks is in the middle of handling it, so this throws nothing. */
export function messageOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error);
  } catch {
    return "something was thrown that has no text";
  }
}
