/** Building of answers: the headers that all of them carry, and those of errors and redirects. */
import type { Exchange, Head } from "./exchange.ts";

export type Body = string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array> | null;

/** An answer with the security headers, and CORS ones for a page of an allowed origin. Takes `head` over. */
export function answer(exchange: Exchange, status: number, body: Body, head: Head, exposed: string): Response {
  head["x-content-type-options"] = "nosniff";
  head["cross-origin-resource-policy"] = "same-origin";
  if (exchange.allowOrigin !== null) addCorsHeaders(exchange, head, exposed);
  return new Response(body, { status, headers: head });
}

/** Lets the page read the answer and `exposed`, its headers. */
export function addCorsHeaders(exchange: Exchange, head: Head, exposed: string): void {
  if (exchange.allowOrigin === null) return;
  head["access-control-allow-origin"] = exchange.allowOrigin;
  head["access-control-expose-headers"] = exposed;
  if (exchange.allowOrigin !== "*") head.vary = "Origin";
}

/** Bytes as a body of an answer. Shares memory where the platform's types allow it. */
export function bodyOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return isUnshared(bytes) ? bytes : new Uint8Array(bytes);
}

function isUnshared(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer;
}
