/**
 * What each error becomes on the wire: one exhaustive table. Codes that clients see are those of the
 * Pico protocol (2) and are never renamed. `docs/errors.md` explains them.
 */
import { type ErrorCode, type Facts, isPicoError, PicoError } from "../lib/errors.ts";

export interface WireError {
  readonly status: number;
  /** `error` of a Pico answer; Durable Streams clients derive theirs from the status. */
  readonly code: string;
  /** Whether the message was written for the client. Otherwise it stays in the log. */
  readonly isTold: boolean;
}

const refused = (status: number, code: string): WireError => ({ status, code, isTold: true });
const failed = (status: number, code: string): WireError => ({ status, code, isTold: false });

/** Both protocols share the statuses. Each turns a `gone` of a PUT into 409: the name is in the way there. */
export const WIRE_ERRORS: Readonly<Record<ErrorCode, WireError>> = {
  bad_request: refused(400, "bad_request"),
  not_found: refused(404, "not_found"),
  gone: refused(410, "gone"),
  conflict: refused(409, "conflict"),
  closed: refused(409, "closed"),
  sequence_gap: refused(409, "sequence_gap"),
  fenced: refused(403, "fenced"),
  match_failed: refused(412, "match_failed"),
  stream_seq_conflict: refused(409, "conflict"),
  content_type_mismatch: refused(409, "conflict"),
  offset_gone: refused(410, "offset_gone"),
  capacity_exceeded: refused(429, "capacity_exceeded"),
  // The contract's code for a body over the limit.
  payload_too_large: refused(413, "internal"),
  method_not_allowed: refused(405, "method_not_allowed"),
  forbidden_origin: refused(403, "permission_denied"),
  unavailable: refused(503, "unavailable"),
  durability: refused(500, "durability"),
  unknown_outcome: refused(500, "unknown_outcome"),
  internal: failed(500, "internal"),
  storage_failed: failed(503, "unavailable"),
  storage_full: failed(503, "unavailable"),
  database_failed: failed(503, "unavailable"),
  // Names the damaged object, which is what its operator needs to hear.
  corrupt: refused(500, "internal"),
  incompatible: refused(500, "internal"),
  fenced_node: failed(503, "unavailable"),
  locked: failed(500, "internal"),
  settings: failed(500, "internal"),
};

/** What a client is told of a failure whose message was not written for it. */
const UNTOLD: Readonly<Record<number, string>> = {
  500: "the server failed; its log has the cause",
  503: "the server cannot do this now; try again",
};

export interface Refusal extends WireError {
  readonly errorCode: ErrorCode;
  readonly message: string;
  readonly facts: Facts;
}

/** Anything thrown, as an answer. What is no `PicoError` is `internal`. */
export function toRefusal(error: unknown): Refusal {
  if (isCutUpload(error)) return toRefusal(new PicoError("bad_request", "the upload ended early; nothing was taken", { what: "body" }));
  if (!isPicoError(error)) return { ...WIRE_ERRORS.internal, errorCode: "internal", message: UNTOLD[500] ?? "", facts: {} };
  const wire = WIRE_ERRORS[error.code];
  const message = wire.isTold ? error.message : (UNTOLD[wire.status] ?? "");
  return { ...wire, errorCode: error.code, message, facts: error.facts };
}

/** Bun rejects the body of an upload that its client cut off with this. */
function isCutUpload(error: unknown): boolean {
  return error instanceof Error && error.name === "AbortError";
}
