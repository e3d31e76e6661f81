/** Building of answers: the headers that all of them carry, and those of errors and redirects. */
import { concatBytes } from "../lib/bytes.ts";
import { KIB } from "../lib/limits.ts";
import type { Exchange, Head } from "./exchange.ts";

export type Body = string | Uint8Array<ArrayBuffer> | Blob | ReadableStream<Uint8Array> | null;

/** From this size on a body that several answers may share is a `Blob`: those are not copied for each answer. */
const SHARED_BODY_BYTES_MIN = 8 * KIB;

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

/** Bytes one behind the other as a body that several answers may share. */
export function sharedBody(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> | Blob {
  let size = 0;
  for (const part of parts) size += part.length;
  if (size >= SHARED_BODY_BYTES_MIN) return new Blob(parts.map(bodyOf));
  const [only] = parts;
  return bodyOf(parts.length === 1 && only !== undefined ? only : concatBytes(parts));
}

function isUnshared(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer;
}
