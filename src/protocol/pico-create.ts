/** `PUT /{name}`: create, or find as it was created (Pico 3). */
import { PicoError } from "../lib/errors.ts";
import type { CreateRequest } from "../streams/stream-service.ts";
import type { Exchange, HeaderRecord } from "./exchange.ts";
import { isFlagSet } from "./field-schemas.ts";
import { DEFAULT_CONTENT_TYPE, PICO_HEADERS } from "./header-names.ts";
import { readU64 } from "./header-values.ts";
import { parsePicoInstant } from "./instant.ts";
import { picoAnswer, stateHeaders } from "./pico-answer.ts";
import { decodePicoBody } from "./pico-append.ts";
import type { PicoContext } from "./pico-context.ts";
import { picoCreateHeaders } from "./pico-schemas.ts";
import { refuseUnbuiltHeaders } from "./pico-unbuilt.ts";
import { badPart, checkPart } from "./schema-check.ts";
import { encodeStreamPath } from "./stream-name.ts";

export async function createInPico(context: PicoContext, exchange: Exchange, name: string): Promise<Response> {
  const body = await context.bodies.read(exchange);
  const request = readCreateRequest(exchange.headers, name, body);
  const { isNew, info } = await context.service.create(request);
  const head = stateHeaders(info);
  if (isNew) head.location = exchange.basePath + encodeStreamPath(name);
  return picoAnswer(exchange, isNew ? 201 : 200, null, head);
}

function readCreateRequest(headers: HeaderRecord, name: string, body: Uint8Array): CreateRequest {
  checkPart(picoCreateHeaders, headers);
  refuseUnbuiltHeaders(headers);
  const ttlSeconds = readU64("header", PICO_HEADERS.ttl, headers[PICO_HEADERS.ttl]);
  const expiresAtMs = readExpiry(headers[PICO_HEADERS.expiresAt]);
  if (ttlSeconds !== null && expiresAtMs !== null) {
    throw new PicoError("bad_request", "headers Pico-TTL and Pico-Expires-At exclude each other", { what: PICO_HEADERS.expiresAt });
  }
  const contentType = headers["content-type"];
  return {
    name,
    contentType: contentType === undefined || contentType === "" ? DEFAULT_CONTENT_TYPE : contentType,
    ttlSeconds,
    expiresAtMs,
    isClosed: isFlagSet(headers[PICO_HEADERS.closed]),
    records: decodePicoBody(headers, body),
    fork: null,
  };
}

function readExpiry(text: string | undefined): number | null {
  if (text === undefined || text === "") return null;
  const instant = parsePicoInstant(text);
  if (instant === null) {
    throw badPart("header", PICO_HEADERS.expiresAt, "an instant in UTC such as 2100-01-01T00:00:00Z, or unix milliseconds", text);
  }
  return instant;
}
