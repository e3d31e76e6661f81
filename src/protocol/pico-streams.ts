/** HEAD, DELETE and the list of streams (Pico 10). */

import { decodeUtf8, utf8Encoder } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { LIST_LIMIT_DEFAULT, LIST_LIMIT_MAX } from "../lib/limits.ts";
import type { ListItem, MaybePromise } from "../streams/stream-service.ts";
import { type Exchange, queryOf } from "./exchange.ts";
import { readU64 } from "./header-values.ts";
import { formatInstant } from "./instant.ts";
import { toCount } from "./integers.ts";
import { NO_STORE, picoAnswer, stateHeaders } from "./pico-answer.ts";
import type { PicoContext } from "./pico-context.ts";
import { PICO_LIST_PARAMETERS, picoListQuery } from "./pico-schemas.ts";
import { badPart, checkPart } from "./schema-check.ts";
import { reservedSegmentOf } from "./stream-name.ts";

export function headOfPico(context: PicoContext, exchange: Exchange, name: string): MaybePromise<Response> {
  const info = context.service.head(name);
  if (info instanceof Promise) return info.then((ready) => picoAnswer(exchange, 200, null, stateHeaders(ready)));
  return picoAnswer(exchange, 200, null, stateHeaders(info));
}

export function deleteFromPico(context: PicoContext, exchange: Exchange, name: string): Promise<Response> {
  return context.service.delete(name).then(() => picoAnswer(exchange, 204, null, { "cache-control": NO_STORE }));
}

/** Names in byte order, a page at a time. Any node answers. */
export function listPico(context: PicoContext, exchange: Exchange): Response {
  exchange.operation = "list";
  const query = queryOf(exchange);
  checkPart(picoListQuery, query.pick(PICO_LIST_PARAMETERS));
  const limit = toCount(readU64("parameter", "limit", query.get("limit")) ?? 0n);
  const cursor = query.get("cursor");
  const { items, hasMore } = context.service.list({
    prefix: query.get("prefix") ?? "/",
    after: cursor ? decodeListCursor(cursor) : query.get("start_after") || null,
    limit: Math.min(limit === 0 ? LIST_LIMIT_DEFAULT : limit, LIST_LIMIT_MAX),
  });
  const last = items.at(-1);
  const shown = items.filter((item) => reservedSegmentOf(item.name) === null).map(encodeItem);
  const next = hasMore && last !== undefined ? `,"next":"${encodeListCursor(last.name)}"` : "";
  const head = { "content-type": "application/json", "cache-control": NO_STORE };
  return picoAnswer(exchange, 200, `{"items":[${shown.join(",")}]${next}}`, head);
}

/** A lifetime may be any u64, which JSON texts hold and JavaScript numbers do not. */
function encodeItem(item: ListItem): string {
  const { contentType, ttlSeconds, expiresAtMs } = item.settings;
  let text = `{"name":${JSON.stringify(item.name)},"content_type":${JSON.stringify(contentType)},"partitions":1,"closed":${item.isClosed}`;
  if (ttlSeconds !== null) text += `,"ttl":${ttlSeconds}`;
  if (expiresAtMs !== null) text += `,"expires_at":"${formatInstant(expiresAtMs)}"`;
  if (item.startOffset !== null) text += `,"start_seq":${item.startOffset}`;
  if (item.nextOffset !== null) text += `,"next_seq":${item.nextOffset}`;
  return `${text}}`;
}

function encodeListCursor(name: string): string {
  return utf8Encoder.encode(name).toBase64({ alphabet: "base64url", omitPadding: true });
}

function decodeListCursor(cursor: string): string {
  const name = /^[A-Za-z0-9_-]+$/.test(cursor) ? decodeBase64Url(cursor) : null;
  if (name?.startsWith("/")) return name;
  throw badPart("parameter", "cursor", "the next of the answer before", cursor);
}

function decodeBase64Url(text: string): string | null {
  try {
    return decodeUtf8(Uint8Array.fromBase64(text, { alphabet: "base64url" }));
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw new PicoError("internal", "a list cursor could not be decoded", {}, error);
  }
}
