/** A page of a Durable Streams stream: bytes, or the JSON values of a JSON stream. */
import { isJsonMime, mimeOf } from "../lib/mime.ts";
import { parseJson } from "./pico-records.ts";
import { StreamError } from "./stream-error.ts";
import type { Page } from "./stream-handle.ts";

export class DurablePage implements Page<string> {
  constructor(
    /** What was appended, end to end; of a JSON stream a JSON array of its values. */
    readonly bytes: Uint8Array,
    /** Of the stream. */
    readonly contentType: string,
    /** Token of the position behind the page. Tokens of one stream can be compared as texts. */
    readonly next: string,
    readonly isUpToDate: boolean,
    readonly isEnd: boolean,
    /** Tells the stream from a later one of the same name; null where no answer told. */
    readonly streamTag: string | null,
  ) {}

  /** The bytes as UTF-8, with U+FFFD for those that are none. A character may be cut at the ends of a page of bytes. */
  text(): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.bytes);
  }

  /** The values of a JSON stream, in order. Throws `unsupported` for other streams. */
  json(): unknown[] {
    if (!isJsonType(this.contentType)) throw new StreamError("unsupported", `a stream of ${this.contentType} holds no JSON values`);
    if (this.bytes.length === 0) return [];
    const values = parseJson(this.text());
    return Array.isArray(values) ? values : [values];
  }
}

export function isJsonType(contentType: string): boolean {
  return isJsonMime(mimeOf(contentType));
}
