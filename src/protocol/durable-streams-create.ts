/** `PUT {stream}`: create and fork (Durable Streams 5.1, 4.2). */
import { PicoError } from "../lib/errors.ts";
import { mimeOf } from "../lib/mime.ts";
import type { CreateRequest } from "../streams/stream-service.ts";
import { durableStreamsAnswer, streamHeaders } from "./durable-streams-answer.ts";
import { recordsOf } from "./durable-streams-append.ts";
import type { DurableStreamsContext } from "./durable-streams-listener.ts";
import { parseMintedOffset } from "./durable-streams-offset.ts";
import { durableStreamsCreateHeaders } from "./durable-streams-schemas.ts";
import type { Exchange, HeaderRecord } from "./exchange.ts";
import { isFlagSet } from "./field-schemas.ts";
import { DEFAULT_CONTENT_TYPE, DURABLE_STREAMS_HEADERS as NAMES } from "./header-names.ts";
import { readU64 } from "./header-values.ts";
import { parseInstant } from "./instant.ts";
import { toCount } from "./integers.ts";
import { badPart, checkPart } from "./schema-check.ts";
import { encodeStreamPath, parseStreamName } from "./stream-name.ts";

export async function createDurableStream(context: DurableStreamsContext, exchange: Exchange, name: string): Promise<Response> {
  const body = await context.bodies.read(exchange);
  const { headers } = exchange;
  checkPart(durableStreamsCreateHeaders, headers);
  const fork = readFork(headers);
  const contentType = readContentType(headers, fork !== null);
  const { isNew, info } = await context.service.create({
    name,
    contentType,
    ...readLifetime(headers),
    isClosed: isFlagSet(headers[NAMES.closed]),
    records: body.length === 0 ? [] : recordsOf(body, await bodyMime(context, contentType, fork)),
    fork,
  });
  const head = streamHeaders(info);
  if (isNew) head.location = absoluteLocation(context, exchange, name);
  return durableStreamsAnswer(exchange, isNew ? 201 : 200, null, head);
}

/** Null: the fork takes its source's. */
function readContentType(headers: HeaderRecord, isFork: boolean): string | null {
  const contentType = headers["content-type"];
  if (contentType !== undefined && contentType !== "") return contentType;
  return isFork ? null : DEFAULT_CONTENT_TYPE;
}

/** Type by which the first body is split: a fork without its own type shares the source's. */
async function bodyMime(context: DurableStreamsContext, contentType: string | null, fork: CreateRequest["fork"]): Promise<string> {
  if (contentType !== null || fork === null) return mimeOf(contentType ?? DEFAULT_CONTENT_TYPE);
  const source = await context.service.head(fork.sourceName);
  return mimeOf(source.settings.contentType);
}

function readLifetime(headers: HeaderRecord): Pick<CreateRequest, "ttlSeconds" | "expiresAtMs"> {
  const ttlSeconds = readU64("header", NAMES.ttl, headers[NAMES.ttl]);
  const expiresAt = headers[NAMES.expiresAt];
  if (expiresAt === undefined || expiresAt === "") return { ttlSeconds, expiresAtMs: null };
  const expiresAtMs = parseInstant(expiresAt);
  if (expiresAtMs === null) throw badPart("header", NAMES.expiresAt, "an instant such as 2100-01-01T00:00:00Z (RFC 3339)", expiresAt);
  if (ttlSeconds !== null) {
    throw new PicoError("bad_request", "headers Stream-TTL and Stream-Expires-At exclude each other", { what: NAMES.expiresAt });
  }
  return { ttlSeconds: null, expiresAtMs };
}

function readFork(headers: HeaderRecord): CreateRequest["fork"] {
  const source = headers[NAMES.forkedFrom];
  const offset = headers[NAMES.forkOffset];
  const subOffset = headers[NAMES.forkSubOffset];
  if (source === undefined) {
    const orphan = offset !== undefined ? NAMES.forkOffset : subOffset !== undefined ? NAMES.forkSubOffset : null;
    if (orphan === null) return null;
    throw new PicoError("bad_request", `header ${orphan} needs Stream-Forked-From`, { what: orphan });
  }
  const past = toCount(readU64("header", NAMES.forkSubOffset, subOffset) ?? 0n);
  if (past > 0 && offset === undefined) {
    throw new PicoError("bad_request", "header Stream-Fork-Sub-Offset needs Stream-Fork-Offset: behind the tail there is nothing", {
      what: NAMES.forkSubOffset,
    });
  }
  return { sourceName: parseStreamName(source), offset: offset === undefined ? null : parseMintedOffset(offset), subOffset: past };
}

/** Absolute, as clients resolve it without a base: under the address that they reached us by. */
function absoluteLocation(context: DurableStreamsContext, exchange: Exchange, name: string): string {
  const { url } = exchange.request;
  const base =
    exchange.authority === null
      ? (context.settings.advertisedUrls.durableStreams ?? "http://localhost")
      : url.slice(0, url.indexOf("://") + 3) + exchange.authority;
  return base + encodeStreamPath(name);
}
