/** Errors of the Pico protocol (Pico 2): a JSON object, facts in headers, and some without a body. */
import { PICO_HEADERS as NAMES } from "../protocol/header-names.ts";
import { tryNumber } from "./header-reading.ts";
import { isObject } from "./pico-records.ts";
import { codeByStatus, refusalError } from "./refusal.ts";
import type { StreamError, StreamErrorCode, StreamErrorFacts } from "./stream-error.ts";
import type { Refusal } from "./transport.ts";

/** Codes on the wire that keep their names. `internal` of a 413 is told by its status. */
const WIRE_CODES: readonly string[] = [
  "bad_request",
  "schema_violation",
  "unauthenticated",
  "permission_denied",
  "fenced",
  "not_found",
  "gone",
  "conflict",
  "closed",
  "sequence_gap",
  "match_failed",
  "offset_gone",
  "capacity_exceeded",
  "method_not_allowed",
  "unavailable",
  "durability",
  "unknown_outcome",
] satisfies StreamErrorCode[];

export function picoError(refusal: Refusal): StreamError {
  const { status, headers, text } = refusal;
  const body = parseBody(text);
  const wireCode = typeof body.error === "string" ? body.error : codeByStatus(status);
  const code = isKnown(wireCode) ? wireCode : codeByStatus(status);
  const message = typeof body.message === "string" ? body.message : "";
  return refusalError(refusal, { code, wireCode, message, facts: readFacts(headers) });
}

function isKnown(code: string): code is StreamErrorCode {
  return WIRE_CODES.includes(code);
}

/** A gateway in between answers in its own words, which tell us nothing. */
function parseBody(text: string): Readonly<Record<string, unknown>> {
  try {
    const body: unknown = JSON.parse(text);
    return isObject(body) ? body : {};
  } catch {
    return {};
  }
}

function readFacts(headers: Headers): StreamErrorFacts {
  const facts = {
    tail: tryNumber(headers, NAMES.nextSeq),
    start: tryNumber(headers, NAMES.startSeq),
    producerEpoch: tryNumber(headers, NAMES.producerEpoch),
    expectedSeq: tryNumber(headers, NAMES.expectedSeq),
    receivedSeq: tryNumber(headers, NAMES.receivedSeq),
  };
  return Object.fromEntries(Object.entries(facts).filter(([, value]) => value !== undefined));
}
