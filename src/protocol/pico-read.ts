/** `GET /{name}` without `live`: pages of records (Pico 7). */
import { PicoError } from "../lib/errors.ts";
import { PAGE_BYTES_MAX } from "../lib/limits.ts";
import type { MaybePromise, ReadPage, ReadRequest } from "../streams/stream-service.ts";
import { type Body, sharedBody } from "./answer.ts";
import { picoEtag } from "./etag.ts";
import { type Exchange, type Head, queryOf } from "./exchange.ts";
import { readU64 } from "./header-values.ts";
import { parsePosition, toCount } from "./integers.ts";
import { encodePicoBinaryPage, encodePicoJsonPage, PageCache, partsOf } from "./page-encoding.ts";
import { CACHEABLE, NO_STORE, picoAnswer } from "./pico-answer.ts";
import type { PicoContext } from "./pico-context.ts";
import { followPico, longPollPico } from "./pico-live.ts";
import { PICO_READ_PARAMETERS, picoReadQuery } from "./pico-schemas.ts";
import { lastOffsetOf, type PagedRead, type PicoFormat, streamPages } from "./pico-unbounded-read.ts";
import { refuseUnbuiltParameters } from "./pico-unbuilt.ts";
import { badPart, checkPart } from "./schema-check.ts";
import { shorten } from "./shorten.ts";

const FORMATS: readonly string[] = ["json", "binary", "raw"] satisfies PicoFormat[];

/** A read as its query asks for it. */
export interface PicoRead {
  readonly from: ReadRequest["from"];
  /** 0: no bound. */
  readonly recordsMax: number;
  /** 0: no bound at all. */
  readonly bytesMax: number;
  /** Checked only where a page is encoded: a 304 comes first (Pico 7). */
  readonly format: string;
  readonly live: string | undefined;
  readonly cursor: string | undefined;
  /** The position came in a header, which no cache looks at. */
  readonly isHeaderPosition: boolean;
}

export function readFromPico(context: PicoContext, exchange: Exchange, name: string): MaybePromise<Response> {
  const read = parseRead(context, exchange);
  if (read.live === "sse") return followPico(context, exchange, name, read);
  if (read.live === "long-poll") return longPollPico(context, exchange, name, read);
  const page = context.service.read(pageRequest(name, read));
  if (page instanceof Promise) return page.then((ready) => pageAnswer(context, exchange, read, ready));
  return pageAnswer(context, exchange, read, page);
}

/** The first page of a read. */
export function pageRequest(name: string, read: PicoRead): ReadRequest {
  return { name, from: read.from, recordsMax: read.recordsMax, bytesMax: read.bytesMax === 0 ? PAGE_BYTES_MAX : read.bytesMax };
}

/** Headers of every page, live or not. */
export function pageHeaders(next: number, isUpToDate: boolean, isEnd: boolean): Head {
  const head: Head = { "Pico-Next-Seq": String(next) };
  if (isUpToDate) head["Pico-Up-To-Date"] = "true";
  if (isEnd) head["Pico-Closed"] = "true";
  return head;
}

/** Pages as bodies, made once for all who are answered with the same page. */
const pageBodies = {
  json: new PageCache(encodePicoJsonPage),
  binary: new PageCache((page) => sharedBody([encodePicoBinaryPage(page)])),
  raw: new PageCache((page) => sharedBody(partsOf(page))),
} as const satisfies Record<PicoFormat, PageCache<Body>>;

/** A page in the format asked for. Throws `bad_request` for a format that is none. */
export function encodePage(page: ReadPage, format: string): { readonly body: Body; readonly contentType: string } {
  const checked = checkFormat(format);
  return {
    body: pageBodies[checked].get(page),
    contentType: checked === "raw" ? page.info.settings.contentType : FORMAT_TYPES[checked],
  };
}

function parseRead(context: PicoContext, exchange: Exchange): PicoRead {
  const pageBytes = Math.min(context.settings.pageBytes, PAGE_BYTES_MAX);
  const lastEventId = exchange.headers["last-event-id"];
  const query = queryOf(exchange);
  if (query.raw !== "") {
    checkPart(picoReadQuery, query.pick(PICO_READ_PARAMETERS));
    refuseUnbuiltParameters(query);
  }
  const seq = query.get("seq");
  const bytes = readU64("parameter", "bytes", query.get("bytes"));
  return {
    from: seq !== undefined ? readSeq(seq) : readLastEventId(lastEventId),
    recordsMax: toCount(readU64("parameter", "count", query.get("count")) ?? 0n),
    bytesMax: bytes === null ? pageBytes : Math.min(toCount(bytes), PAGE_BYTES_MAX),
    format: query.get("format") || "json",
    live: query.get("live"),
    cursor: query.get("cursor"),
    isHeaderPosition: seq === undefined && lastEventId !== undefined && lastEventId !== "",
  };
}

function readSeq(text: string): ReadRequest["from"] {
  if (text.toLowerCase() === "now") return "tail";
  const position = parsePosition(text);
  if (position === null) throw badPart("parameter", "seq", "a position in signed 64-bit decimal digits, or now", text);
  return position;
}

function readLastEventId(text: string | undefined): number {
  if (text === undefined || text === "") return 0;
  const position = parsePosition(text);
  if (position === null) throw badPart("header", "last-event-id", "a position in signed 64-bit decimal digits", text);
  return position;
}

function pageAnswer(context: PicoContext, exchange: Exchange, read: PicoRead, page: ReadPage): Response {
  if (read.bytesMax === 0 && !page.isUpToDate) {
    const last = lastOffsetOf(page, read.recordsMax);
    if (last > page.next) return unboundedAnswer(context, exchange, read, { page, last });
  }
  const head = pageHeaders(page.next, page.isUpToDate, page.isEnd);
  if (isUnchanged(exchange, read, page, page.next, head)) return picoAnswer(exchange, 304, null, head);
  const { body, contentType } = encodePage(page, read.format);
  head["content-type"] = contentType;
  if (read.format === "raw") head["content-security-policy"] = "sandbox";
  return picoAnswer(exchange, 200, body, head);
}

/** The whole rest of the stream, page by page, never gathered in memory. */
function unboundedAnswer(context: PicoContext, exchange: Exchange, read: PicoRead, paged: PagedRead): Response {
  const { page, last } = paged;
  const isUpToDate = last === page.info.nextOffset;
  const head = pageHeaders(last, isUpToDate, isUpToDate && page.info.isClosed);
  if (isUnchanged(exchange, read, page, last, head)) return picoAnswer(exchange, 304, null, head);
  const format = checkFormat(read.format);
  head["content-type"] = format === "raw" ? page.info.settings.contentType : FORMAT_TYPES[format];
  if (format === "raw") head["content-security-policy"] = "sandbox";
  return picoAnswer(exchange, 200, streamPages(context.service, paged, format), head);
}

const FORMAT_TYPES = { json: "application/json", binary: "application/vnd.picomq.batch" } as const;

/** Adds what caches need to `head`; true if the client has this page. */
function isUnchanged(exchange: Exchange, read: PicoRead, page: ReadPage, next: number, head: Head): boolean {
  const isCacheable = next < page.info.nextOffset && next > page.from && !read.isHeaderPosition && read.from !== "tail";
  head["cache-control"] = isCacheable ? CACHEABLE : NO_STORE;
  if (isCacheable) head.vary = "Origin";
  const isClosedEmpty = page.isEnd && next === page.from;
  const etag = picoEtag(page.info.name, read.format, { streamId: page.info.streamId, from: page.from, next, isClosedEmpty });
  head.etag = etag;
  return exchange.headers["if-none-match"] === etag;
}

function checkFormat(format: string): PicoFormat {
  if (isFormat(format)) return format;
  throw new PicoError("bad_request", `parameter format must be json, binary or raw; it is ${shorten(format)}`, { what: "format" });
}

function isFormat(format: string): format is PicoFormat {
  return FORMATS.includes(format);
}
