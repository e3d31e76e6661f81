/**
 * One request on its way to an answer: its target and headers, parsed once, and the headers that every
 * answer to it carries. Made for each request of the hot path, so it makes nothing it does not need.
 */
import type { Server } from "bun";
import { NO_QUERY, QueryParameters } from "./query.ts";
import { type Operation, operationOf } from "./traffic.ts";

/** Header names are lower case; repeated ones are joined by ", ". */
export type HeaderRecord = Readonly<Record<string, string | undefined>>;

/** Headers of an answer, by lower-case name. */
export type Head = Record<string, string>;

export interface Exchange {
  readonly request: Request;
  readonly server: Server<unknown> | null;
  readonly method: string;
  readonly headers: HeaderRecord;
  /** Path as sent, escapes and all, without `basePath`. */
  readonly rawPath: string;
  /** What the path began with where the protocol is served below one, such as `/pico`; else "". */
  readonly basePath: string;
  /** Query as sent, without its question mark. */
  readonly rawQuery: string;
  /** Authority of the request's URL; null where it has none (HTTP/1.0 without `Host`). */
  readonly authority: string | null;
  /** `Access-Control-Allow-Origin` of the answer; null: no CORS headers. */
  allowOrigin: string | null;
  /** What is asked for, as far as it is known yet; for figures only. */
  operation: Operation;
  /** What the request was refused with, if it was; for figures only. */
  error: unknown;
}

export function openExchange(request: Request, server: Server<unknown> | null): Exchange {
  const { url } = request;
  const schemeEnd = url.indexOf("://");
  const isAbsolute = url.charCodeAt(0) !== 0x2f && schemeEnd >= 0;
  const pathStart = isAbsolute ? url.indexOf("/", schemeEnd + 3) : 0;
  const queryStart = url.indexOf("?", pathStart);
  return {
    request,
    server,
    method: request.method,
    headers: request.headers.toJSON(),
    rawPath: pathStart < 0 ? "/" : queryStart < 0 ? url.slice(pathStart) : url.slice(pathStart, queryStart),
    basePath: "",
    rawQuery: queryStart < 0 ? "" : url.slice(queryStart + 1),
    authority: isAbsolute && pathStart > 0 ? url.slice(schemeEnd + 3, pathStart) : null,
    allowOrigin: null,
    operation: operationOf(request.method),
    error: undefined,
  };
}

/** The exchange as seen from below `basePath`, with which its path begins: the rest of the path, `/` where there is none. */
export function mountedAt(exchange: Exchange, basePath: string): Exchange {
  const rest = exchange.rawPath.slice(basePath.length);
  return { ...exchange, rawPath: rest === "" ? "/" : rest, basePath };
}

export function queryOf(exchange: Exchange): QueryParameters {
  return exchange.rawQuery === "" ? NO_QUERY : new QueryParameters(exchange.rawQuery);
}
