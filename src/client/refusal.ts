/** What both protocols make of an answer that is no success: which code, and whether to come again. */
import { StreamError, type StreamErrorCode, type StreamErrorFacts } from "./stream-error.ts";
import { isRead, type Refusal } from "./transport.ts";

/** Codes by status, for answers that tell nothing more. */
const CODES_BY_STATUS: Readonly<Record<number, StreamErrorCode>> = {
  400: "bad_request",
  401: "unauthenticated",
  403: "permission_denied",
  404: "not_found",
  405: "method_not_allowed",
  409: "conflict",
  410: "gone",
  412: "match_failed",
  413: "payload_too_large",
  429: "capacity_exceeded",
  500: "internal",
  502: "unavailable",
  503: "unavailable",
  504: "unavailable",
};

export function codeByStatus(status: number): StreamErrorCode {
  return CODES_BY_STATUS[status] ?? "request_failed";
}

/** What a protocol read from an answer. */
export interface ReadRefusal {
  readonly code: StreamErrorCode;
  readonly wireCode: string;
  /** Empty: the server said nothing. */
  readonly message: string;
  readonly facts: StreamErrorFacts;
}

export function refusalError({ request, status, retryAfterMs }: Refusal, read: ReadRefusal): StreamError {
  const { code, wireCode, facts } = read;
  // A 503 is sent before anything is done; a gateway's 502 and 504, and a 500, tell nothing of what was done.
  const isOutcomeUnknown = !isRead(request) && status >= 500 && status !== 503;
  const message = read.message === "" ? `${request.method} ${request.path}: answered with ${status}` : read.message;
  return new StreamError(code, message, {
    status,
    wireCode,
    facts: retryAfterMs === undefined ? facts : { ...facts, retryAfterMs },
    isRetryable: isTransient(request.method, code, retryAfterMs) && (request.isRepeatable || !isOutcomeUnknown),
    isOutcomeUnknown,
  });
}

function isTransient(method: string, code: StreamErrorCode, retryAfterMs: number | undefined): boolean {
  switch (code) {
    case "unavailable":
    case "durability":
    case "unknown_outcome":
      return true;
    // Of a read: its stream moved to another node meanwhile.
    case "conflict":
      return method === "GET";
    // A limit of a stream stays reached; one of a rate says when it is over.
    case "capacity_exceeded":
      return retryAfterMs !== undefined;
    default:
      return false;
  }
}
