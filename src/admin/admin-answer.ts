/** Answers of the admin listener: JSON, and errors as one sentence (contract, admin.md 1). */
import { answer, type Body } from "../protocol/answer.ts";
import type { Exchange, Head } from "../protocol/exchange.ts";

const EXPOSED_HEADERS = "etag, content-type, location, retry-after, allow";

export function adminAnswer(exchange: Exchange, status: number, body: Body, head: Head): Response {
  return answer(exchange, status, body, { "cache-control": "no-store", ...head }, EXPOSED_HEADERS);
}

export function jsonAnswer(exchange: Exchange, status: number, body: unknown): Response {
  return adminAnswer(exchange, status, JSON.stringify(body), { "content-type": "application/json" });
}

/** `{"error": sentence}`. */
export function errorAnswer(exchange: Exchange, status: number, message: string): Response {
  return jsonAnswer(exchange, status, { error: message });
}

/** A known path with another method. */
export function otherMethod(exchange: Exchange, methods: Iterable<string>): Response {
  return adminAnswer(exchange, 405, null, { allow: [...methods, "OPTIONS"].join(", ") });
}

/** To whatever a page asks before it sends something: no path is looked at. */
export function preflightAnswer(exchange: Exchange): Response {
  return adminAnswer(exchange, 204, null, {
    "access-control-allow-methods": "GET, PUT, POST, DELETE, OPTIONS",
    "access-control-allow-headers": "authorization, content-type, If-None-Match",
  });
}
