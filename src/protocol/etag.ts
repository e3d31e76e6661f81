/**
 * Entity tags of pages. They hold the stream's id, so that a page of a deleted stream never matches one
 * of a new stream of the same name.
 */
import { utf8Encoder } from "../lib/bytes.ts";

export interface PageIdentity {
  readonly streamId: number;
  readonly from: number;
  readonly next: number;
  /** The page is empty, and the stream is closed. */
  readonly isClosedEmpty: boolean;
}

/** Pico 7: `"<base64 of name:format:id>:<from>:<next>"`, both positions 20 digits long, `:c` at the end of a closed stream. */
export function picoEtag(name: string, format: string, page: PageIdentity): string {
  const what = utf8Encoder.encode(`${name}:${format}:${page.streamId}`).toBase64();
  return `"${what}:${padOffset(page.from)}:${padOffset(page.next)}${page.isClosedEmpty ? ":c" : ""}"`;
}

/** Durable Streams 5.6 and 10.1: differs as soon as the page is the end of a closed stream. */
export function durableStreamsEtag(streamId: number, from: number, next: number, isEnd: boolean): string {
  return `"${streamId}:${from}:${next}${isEnd ? ":c" : ""}"`;
}

/** Whether an `If-None-Match` list names the tag, compared weakly (RFC 9110, 13.1.2); `*` matches all. */
export function matchesEtag(ifNoneMatch: string, etag: string): boolean {
  if (ifNoneMatch === etag) return true;
  return ifNoneMatch.split(",").some((part) => {
    const tag = part.trim();
    return tag === "*" || (tag.startsWith("W/") ? tag.slice(2) : tag) === etag;
  });
}

/** A position in 20 digits, so that texts sort as numbers do. */
export function padOffset(offset: number): string {
  return String(offset).padStart(20, "0");
}
