/**
 * Errors of Durable Streams: the status counts, some headers tell more, and the body is a sentence; a 503 of ours has
 * a JSON object, as on a Pico listener. The codes are those of the Pico protocol, so that a program can treat both
 * alike; `wireCode` is what clients of this protocol derive.
 */
import { DURABLE_STREAMS_HEADERS as NAMES } from "../protocol/header-names.ts";
import { readFlag, tryNumber } from "./header-reading.ts";
import { isObject } from "./pico-records.ts";
import { codeByStatus, refusalError } from "./refusal.ts";
import type { StreamError, StreamErrorCode, StreamErrorFacts } from "./stream-error.ts";
import type { Refusal } from "./transport.ts";

/** As other clients of this protocol call it; the rest is `request_failed`. */
const WIRE_CODES: Partial<Readonly<Record<StreamErrorCode, string>>> = {
  bad_request: "bad_request",
  unauthenticated: "unauthenticated",
  permission_denied: "permission_denied",
  fenced: "stale_epoch",
  not_found: "not_found",
  closed: "closed",
  sequence_gap: "sequence_conflict",
  conflict: "conflict",
  gone: "offset_gone",
  offset_gone: "offset_gone",
};

export function durableStreamsError(refusal: Refusal): StreamError {
  const facts = readFacts(refusal.headers);
  const code = codeOf(refusal, facts);
  return refusalError(refusal, { code, wireCode: WIRE_CODES[code] ?? "request_failed", message: messageOf(refusal.text), facts });
}

function codeOf({ request, status, headers }: Refusal, facts: StreamErrorFacts): StreamErrorCode {
  switch (status) {
    case 403:
      return facts.producerEpoch === undefined ? "permission_denied" : "fenced";
    case 409:
      if (readFlag(headers, NAMES.closed)) return "closed";
      return facts.expectedSeq === undefined ? "conflict" : "sequence_gap";
    case 410:
      // A read below the trim point and one of a deleted source of forks are answered alike; only a read can be either.
      return request.method === "GET" && !/[?&]offset=-1(&|$)/.test(request.path) ? "offset_gone" : "gone";
    default:
      return codeByStatus(status);
  }
}

function readFacts(headers: Headers): StreamErrorFacts {
  const facts = {
    tail: headers.get(NAMES.nextOffset) ?? undefined,
    producerEpoch: tryNumber(headers, NAMES.producerEpoch),
    expectedSeq: tryNumber(headers, NAMES.expectedSeq),
    receivedSeq: tryNumber(headers, NAMES.receivedSeq),
  };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}

function messageOf(text: string): string {
  if (!text.startsWith("{")) return text.trim();
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) && typeof body.message === "string" ? body.message : text.trim();
  } catch {
    return text.trim();
  }
}
