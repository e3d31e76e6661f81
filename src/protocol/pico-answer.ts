/** Answers of the Pico protocol: its error form (Pico 2), its CORS lists (Pico 1.6), its state headers. */
import { PicoError } from "../lib/errors.ts";
import type { StreamInfo } from "../streams/stream-service.ts";
import { addCorsHeaders, answer, type Body } from "./answer.ts";
import { type Refusal, toRefusal } from "./error-table.ts";
import type { Exchange, Head } from "./exchange.ts";
import { formatInstant } from "./instant.ts";
import type { ProtocolContext } from "./protocol-context.ts";

export const PICO_METHODS = "GET, PUT, POST, DELETE, HEAD, OPTIONS";

const ALLOWED_HEADERS =
  "content-type, authorization, If-None-Match, Last-Event-ID, Pico-Key, Pico-Match-Seq, Pico-Trim-Seq, Pico-TTL, Pico-Expires-At, Pico-Closed, Pico-Producer-Id, Pico-Producer-Epoch, Pico-Producer-Seq";
const EXPOSED_HEADERS =
  "Pico-Start-Seq, Pico-Next-Seq, Pico-Timestamp, Pico-Cursor, Pico-Up-To-Date, Pico-Closed, Pico-TTL, Pico-Expires-At, Pico-Producer-Epoch, Pico-Producer-Seq, Pico-Expected-Seq, Pico-Received-Seq, etag, content-type, location, retry-after";

/**
 * Cacheable is only what cannot change while its stream lives: a full page below the tail. A cache keeps it,
 * and asks each time whether it still holds, so that no page outlives its stream (FAULTS H5) or a trim.
 */
export const CACHEABLE = "public, max-age=0, must-revalidate";
export const NO_STORE = "no-store";
/** Event streams: a proxy that compresses would hold events back until its buffer is full (FAULTS H2, H3). */
export const EVENT_STREAM_CACHING = "no-cache, no-transform";

export function picoAnswer(exchange: Exchange, status: number, body: Body, head: Head): Response {
  return answer(exchange, status, body, head, EXPOSED_HEADERS);
}

export function picoRedirect(exchange: Exchange, location: string): Response {
  const head: Head = { location, "cache-control": NO_STORE };
  addCorsHeaders(exchange, head, EXPOSED_HEADERS);
  return new Response(null, { status: 307, headers: head });
}

export function picoOptions(exchange: Exchange): Response {
  const head: Head = {
    "cache-control": NO_STORE,
    "access-control-allow-methods": PICO_METHODS,
    "access-control-allow-headers": ALLOWED_HEADERS,
    "access-control-expose-headers": EXPOSED_HEADERS,
  };
  return picoAnswer(exchange, 204, null, head);
}

/** Any error as an answer. What is not the client's doing is logged, with its cause. */
export function picoError(exchange: Exchange, error: unknown, log: ProtocolContext["log"]): Response {
  const refusal = picoRefusal(exchange, error);
  if (refusal.status === 500) log.error("request failed", { method: exchange.method, path: exchange.rawPath, error });
  const head: Head = { "cache-control": NO_STORE, ...factHeaders(refusal) };
  if (isBodyless(exchange, refusal)) return picoAnswer(exchange, refusal.status, null, head);
  head["content-type"] = "application/json";
  const nextSeq = refusal.facts.tail;
  const isSeqTold = typeof nextSeq === "number" && refusal.errorCode !== "offset_gone";
  const body = { error: refusal.code, message: refusal.message, ...(isSeqTold ? { next_seq: nextSeq } : {}) };
  return picoAnswer(exchange, refusal.status, JSON.stringify(body), head);
}

/** A deleted source of living forks is gone for everybody; for who would create it anew it is in the way. */
function picoRefusal(exchange: Exchange, error: unknown): Refusal {
  const refusal = toRefusal(error);
  return refusal.errorCode === "gone" && exchange.method === "PUT" ? { ...refusal, status: 409 } : refusal;
}

/** Headers that tell a stream's state; on creates and HEAD. */
export function stateHeaders(info: StreamInfo): Head {
  const head: Head = {
    "content-type": info.settings.contentType,
    "cache-control": NO_STORE,
    "Pico-Start-Seq": String(info.startOffset),
    "Pico-Next-Seq": String(info.nextOffset),
  };
  if (info.settings.ttlSeconds !== null) head["Pico-TTL"] = String(info.settings.ttlSeconds);
  if (info.settings.expiresAtMs !== null) head["Pico-Expires-At"] = formatInstant(info.settings.expiresAtMs);
  if (info.isClosed) head["Pico-Closed"] = "true";
  return head;
}

/** The 404 of a stream that a reader waits for, or asks about, has no body (Pico 2). */
function isBodyless(exchange: Exchange, refusal: Refusal): boolean {
  if (exchange.method === "HEAD") return true;
  if (refusal.status !== 404) return false;
  return exchange.method === "DELETE" || refusal.facts.bodyless === true;
}

/** `not_found` without a body. */
export function bodylessNotFound(): PicoError {
  return new PicoError("not_found", "no such stream", { bodyless: true });
}

function factHeaders({ errorCode, facts, status }: Refusal): Head {
  const head: Head = {};
  if (facts.tail !== undefined && errorCode !== "offset_gone") head["Pico-Next-Seq"] = String(facts.tail);
  switch (errorCode) {
    case "closed":
      head["Pico-Closed"] = "true";
      break;
    case "sequence_gap":
      head["Pico-Expected-Seq"] = String(facts.expected);
      head["Pico-Received-Seq"] = String(facts.received);
      break;
    case "fenced":
      head["Pico-Producer-Epoch"] = String(facts.producerEpoch);
      break;
    case "offset_gone":
      head["Pico-Start-Seq"] = String(facts.start);
      break;
    case "method_not_allowed":
      head.allow = PICO_METHODS;
      break;
    default:
      break;
  }
  if (status === 503) head["retry-after"] = String(facts.retryAfterSeconds ?? 1);
  return head;
}
