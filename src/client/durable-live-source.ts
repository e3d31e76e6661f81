/** Reads of Durable Streams (5.6 to 5.8), one attempt each. */
import { EMPTY_BYTES, utf8Decoder } from "../lib/bytes.ts";
import { DURABLE_STREAMS_HEADERS as NAMES } from "../protocol/header-names.ts";
import { decodeBase64 } from "./base64.ts";
import { DurablePage, isJsonType } from "./durable-page.ts";
import { readFlag, requireText } from "./header-reading.ts";
import type { LiveSource, PageEvents } from "./live-reader.ts";
import { EVENT_STREAM } from "./pico-live-source.ts";
import { isObject, parseJson } from "./pico-records.ts";
import { SsePages } from "./sse-pages.ts";
import { type SseEvent, SseParser } from "./sse-parser.ts";
import { malformed } from "./stream-error.ts";
import type { From } from "./stream-handle.ts";
import type { StreamLife } from "./stream-life.ts";
import { queryOf } from "./stream-path.ts";
import type { HttpAnswer, Transport } from "./transport.ts";

const EMPTY_ARRAY_BYTES = 2;

export class DurableLiveSource implements LiveSource<string, DurablePage> {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #life: StreamLife;
  #cursor: string | null = null;
  /** Event streams and empty answers do not tell the stream's type; the read before them did. */
  #contentType = "application/octet-stream";

  constructor(transport: Transport, path: string, life: StreamLife) {
    this.#transport = transport;
    this.#path = path;
    this.#life = life;
  }

  isEmpty(page: DurablePage): boolean {
    if (page.bytes.length === 0) return true;
    return page.bytes.length === EMPTY_ARRAY_BYTES && isJsonType(page.contentType) && page.text() === "[]";
  }

  readPage(from: From<string>, signal: AbortSignal | undefined): Promise<DurablePage> {
    return this.#get({ offset: from === "start" ? "-1" : from === "tail" ? "now" : from }, signal);
  }

  longPoll(from: string, signal: AbortSignal | undefined): Promise<DurablePage> {
    return this.#get({ offset: from, live: "long-poll", cursor: this.#cursor ?? undefined }, signal);
  }

  async openEvents(from: string, signal: AbortSignal | undefined): Promise<PageEvents<DurablePage>> {
    const path = this.#path + queryOf({ offset: from, live: "sse", cursor: this.#cursor ?? undefined });
    const answer = await this.#transport.open({ method: "GET", path, headers: EVENT_STREAM, isRepeatable: true, signal });
    const isBase64 = answer.headers.get(NAMES.sseDataEncoding)?.toLowerCase() === "base64";
    return new SsePages(answer, new SseParser(), (data, control) => this.#readEvents(data, control, isBase64));
  }

  async #get(parameters: Readonly<Record<string, string | undefined>>, signal: AbortSignal | undefined): Promise<DurablePage> {
    const path = this.#path + queryOf(parameters);
    return this.#readPage(await this.#transport.attempt({ method: "GET", path, isRepeatable: true, signal }));
  }

  #readPage({ status, headers, body }: HttpAnswer): DurablePage {
    this.#cursor = headers.get(NAMES.cursor) ?? this.#cursor;
    this.#life.note(headers);
    if (status !== 204) this.#contentType = headers.get("content-type") ?? this.#contentType;
    const isEnd = readFlag(headers, NAMES.closed);
    const isUpToDate = isEnd || readFlag(headers, NAMES.upToDate);
    return new DurablePage(body, this.#contentType, requireText(headers, NAMES.nextOffset), isUpToDate, isEnd, this.#life.tag);
  }

  #readEvents(data: SseEvent | null, control: SseEvent, isBase64: boolean): DurablePage {
    const told = parseJson(utf8Decoder.decode(control.data));
    if (!isObject(told) || typeof told.streamNextOffset !== "string") throw malformed("a control event has no streamNextOffset");
    if (typeof told.streamCursor === "string") this.#cursor = told.streamCursor;
    const bytes = data === null ? EMPTY_BYTES : isBase64 ? decodeBase64(utf8Decoder.decode(data.data).replaceAll("\n", "")) : data.data;
    const isEnd = told.streamClosed === true;
    return new DurablePage(bytes, this.#contentType, told.streamNextOffset, isEnd || told.upToDate === true, isEnd, this.#life.tag);
  }
}
