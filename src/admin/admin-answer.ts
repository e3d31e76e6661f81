/** Answers of the admin listener: JSON, and errors as one sentence (contract, admin.md 1). */

import type { Logger } from "../lib/log.ts";
import { answer, type Body } from "../protocol/answer.ts";
import { toRefusal } from "../protocol/error-table.ts";
import type { Exchange, Head } from "../protocol/exchange.ts";

/** As of ES2026; the types do not have it yet. */
const { rawJSON } = JSON as JSON & { rawJSON(text: string): unknown };

const EXPOSED_HEADERS = "etag, content-type, location, retry-after, allow";

export function adminAnswer(exchange: Exchange, status: number, body: Body, head: Head): Response {
  return answer(exchange, status, body, { "cache-control": "no-store", ...head }, EXPOSED_HEADERS);
}

/** Bigints leave with all their digits. */
export function jsonAnswer(exchange: Exchange, status: number, body: unknown, head: Head = {}): Response {
  const text = JSON.stringify(body, (_, value: unknown) => (typeof value === "bigint" ? rawJSON(String(value)) : value));
  return adminAnswer(exchange, status, text, { "content-type": "application/json", ...head });
}

/** `{"error": sentence}`. */
export function errorAnswer(exchange: Exchange, status: number, message: string, head: Head = {}): Response {
  return jsonAnswer(exchange, status, { error: message }, head);
}

/** Whatever was thrown. What is not the client's doing is logged, with its cause. */
export function refusalAnswer(exchange: Exchange, error: unknown, log: Pick<Logger, "error">): Response {
  const { status, message, facts } = toRefusal(error);
  if (status === 500) log.error("an admin request failed", { path: exchange.rawPath, error });
  return errorAnswer(exchange, status, message, status === 503 ? { "retry-after": String(facts.retryAfterSeconds ?? 1) } : {});
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
