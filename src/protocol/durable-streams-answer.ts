/** Answers of the Durable Streams protocol: statuses, plain-text errors, state headers. */
import type { StreamInfo } from "../streams/stream-service.ts";
import { addCorsHeaders, answer, type Body } from "./answer.ts";
import { type Refusal, toRefusal } from "./error-table.ts";
import { padOffset } from "./etag.ts";
import type { Exchange, Head } from "./exchange.ts";
import { formatInstant } from "./instant.ts";
import { NO_STORE } from "./pico-answer.ts";
import type { ProtocolContext } from "./protocol-context.ts";

export const DURABLE_STREAMS_METHODS = "GET, PUT, POST, DELETE, HEAD, OPTIONS";

const ALLOWED_HEADERS =
  "content-type, authorization, If-None-Match, Stream-Seq, Stream-TTL, Stream-Expires-At, Stream-Closed, Stream-Forked-From, Stream-Fork-Offset, Stream-Fork-Sub-Offset, Producer-Id, Producer-Epoch, Producer-Seq";
const EXPOSED_HEADERS =
  "Stream-Next-Offset, Stream-Cursor, Stream-Up-To-Date, Stream-Closed, Stream-TTL, Stream-Expires-At, Stream-SSE-Data-Encoding, Producer-Epoch, Producer-Seq, Producer-Expected-Seq, Producer-Received-Seq, etag, content-type, location, retry-after";

export function durableStreamsAnswer(exchange: Exchange, status: number, body: Body, head: Head): Response {
  return answer(exchange, status, body, head, EXPOSED_HEADERS);
}

export function durableStreamsRedirect(exchange: Exchange, location: string): Response {
  const head: Head = { location, "cache-control": NO_STORE };
  addCorsHeaders(exchange, head, EXPOSED_HEADERS);
  return new Response(null, { status: 307, headers: head });
}

export function durableStreamsOptions(exchange: Exchange): Response {
  return durableStreamsAnswer(exchange, 204, null, {
    "cache-control": NO_STORE,
    "access-control-allow-methods": DURABLE_STREAMS_METHODS,
    "access-control-allow-headers": ALLOWED_HEADERS,
    "access-control-expose-headers": EXPOSED_HEADERS,
  });
}

/** Any error as an answer. What is not the client's doing is logged, with its cause. */
export function durableStreamsError(exchange: Exchange, error: unknown, log: ProtocolContext["log"]): Response {
  const refusal = toRefusal(error);
  // A deleted source of living forks is in the way of who would create it, or another fork of it (4.2).
  const status = refusal.errorCode === "gone" && exchange.method === "PUT" ? 409 : refusal.status;
  if (status === 500) log.error("request failed", { method: exchange.method, path: exchange.rawPath, error });
  const head: Head = { "cache-control": NO_STORE, ...factHeaders(refusal) };
  if (exchange.method === "HEAD") return durableStreamsAnswer(exchange, status, null, head);
  if (status === 503) {
    head["content-type"] = "application/json";
    return durableStreamsAnswer(exchange, status, JSON.stringify({ error: refusal.code, message: refusal.message }), head);
  }
  head["content-type"] = "text/plain; charset=utf-8";
  return durableStreamsAnswer(exchange, status, refusal.message, head);
}

/** Headers that tell a stream's state; on creates and HEAD. */
export function streamHeaders(info: StreamInfo): Head {
  const head: Head = {
    "content-type": info.settings.contentType,
    "cache-control": NO_STORE,
    "Stream-Next-Offset": padOffset(info.nextOffset),
  };
  if (info.settings.ttlSeconds !== null) head["Stream-TTL"] = String(info.settings.ttlSeconds);
  if (info.settings.expiresAtMs !== null) head["Stream-Expires-At"] = formatInstant(info.settings.expiresAtMs);
  if (info.isClosed) head["Stream-Closed"] = "true";
  return head;
}

function factHeaders({ errorCode, facts, status }: Refusal): Head {
  const head: Head = {};
  switch (errorCode) {
    case "closed":
      head["Stream-Closed"] = "true";
      if (typeof facts.tail === "number") head["Stream-Next-Offset"] = padOffset(facts.tail);
      break;
    case "sequence_gap":
      head["Producer-Expected-Seq"] = String(facts.expected);
      head["Producer-Received-Seq"] = String(facts.received);
      break;
    case "fenced":
      head["Producer-Epoch"] = String(facts.producerEpoch);
      break;
    case "method_not_allowed":
      head.allow = DURABLE_STREAMS_METHODS;
      break;
    default:
      break;
  }
  if (status === 503) head["retry-after"] = String(facts.retryAfterSeconds ?? 1);
  return head;
}
