/** `GET {stream}` without `live`: catch-up pages (Durable Streams 5.6, 8, 10). */
import { PicoError } from "../lib/errors.ts";
import { PAGE_BYTES_MAX } from "../lib/limits.ts";
import { isJsonMime, mimeOf } from "../lib/mime.ts";
import type { MaybePromise, ReadPage, ReadRequest } from "../streams/stream-service.ts";
import { type Body, sharedBody } from "./answer.ts";
import { durableStreamsAnswer } from "./durable-streams-answer.ts";
import type { DurableStreamsContext } from "./durable-streams-listener.ts";
import { followDurableStream, longPollDurableStream } from "./durable-streams-live.ts";
import { parseReadOffset } from "./durable-streams-offset.ts";
import { DURABLE_STREAMS_READ_PARAMETERS, durableStreamsReadQuery } from "./durable-streams-schemas.ts";
import { durableStreamsEtag, matchesEtag, padOffset } from "./etag.ts";
import { type Exchange, type Head, queryOf } from "./exchange.ts";
import { concatBodies, encodeJsonArray, PageCache, partsOf } from "./page-encoding.ts";
import { CACHEABLE, NO_STORE } from "./pico-answer.ts";
import { checkPart } from "./schema-check.ts";

export interface DurableStreamsRead {
  readonly request: ReadRequest;
  readonly cursor: string | undefined;
}

export function readDurableStream(context: DurableStreamsContext, exchange: Exchange, name: string): MaybePromise<Response> {
  const query = queryOf(exchange);
  if (query.raw !== "") checkPart(durableStreamsReadQuery, query.pick(DURABLE_STREAMS_READ_PARAMETERS));
  if (query.isRepeated("offset")) throw new PicoError("bad_request", "parameter offset is given twice", { what: "offset" });
  const offset = query.get("offset");
  const live = query.get("live");
  if (live !== undefined && offset === undefined) {
    throw new PicoError("bad_request", "parameter offset is missing: a live read needs one", { what: "offset" });
  }
  const request: ReadRequest = {
    name,
    from: offset === undefined ? "start" : parseReadOffset(offset),
    recordsMax: 0,
    bytesMax: Math.min(context.settings.pageBytes, PAGE_BYTES_MAX),
  };
  const read = { request, cursor: query.get("cursor") };
  if (live === "sse") return followDurableStream(context, exchange, read);
  if (live === "long-poll") return longPollDurableStream(context, exchange, read);
  const page = context.service.read(request);
  if (page instanceof Promise) return page.then((ready) => pageAnswer(exchange, request, ready));
  return pageAnswer(exchange, request, page);
}

/** Headers of every page, live or not. */
export function pageHeaders(page: ReadPage): Head {
  const head: Head = { "Stream-Next-Offset": padOffset(page.next), "cache-control": NO_STORE };
  if (page.isUpToDate) head["Stream-Up-To-Date"] = "true";
  if (page.isEnd) head["Stream-Closed"] = "true";
  return head;
}

/** The data of a page: the records' bytes, or a JSON array of them. */
export function encodeData(page: ReadPage): Uint8Array {
  return isJson(page) ? encodeJsonArray(page) : concatBodies(page);
}

/** The data of a page as a body, made once for all who are answered with the page. */
export const pageBodies = new PageCache((page) => sharedBody(isJson(page) ? [encodeJsonArray(page)] : partsOf(page)));

function isJson(page: ReadPage): boolean {
  return isJsonMime(mimeOf(page.info.settings.contentType));
}

/** A page with data, or empty at the tail. Type and sandbox as they go with what a stranger may have written. */
export function dataAnswer(exchange: Exchange, page: ReadPage, body: Body, head: Head): Response {
  head["content-type"] = page.info.settings.contentType;
  head["content-security-policy"] = "sandbox";
  return durableStreamsAnswer(exchange, 200, body, head);
}

function pageAnswer(exchange: Exchange, request: ReadRequest, page: ReadPage): Response {
  const head = pageHeaders(page);
  if (request.from !== "tail") {
    const etag = durableStreamsEtag(page.info.streamId, page.from, page.next, page.isEnd);
    head.etag = etag;
    if (!page.isUpToDate && page.next > page.from) {
      head["cache-control"] = CACHEABLE;
      head.vary = "Origin";
    }
    const ifNoneMatch = exchange.headers["if-none-match"];
    if (ifNoneMatch !== undefined && matchesEtag(ifNoneMatch, etag)) return durableStreamsAnswer(exchange, 304, null, head);
  }
  return dataAnswer(exchange, page, pageBodies.get(page), head);
}
