/** Reads of the Pico protocol (Pico 7 to 9), one attempt each. */
import { utf8Decoder } from "../lib/bytes.ts";
import { PICO_HEADERS as NAMES } from "../protocol/header-names.ts";
import { readFlag, requireNumber } from "./header-reading.ts";
import type { LiveSource, PageEvents } from "./live-reader.ts";
import { isObject, type PicoRecord, parseJson, readBinaryPage, readJsonPage, readWhole } from "./pico-records.ts";
import type { PicoPage, PicoPageOptions } from "./pico-stream.ts";
import { SsePages } from "./sse-pages.ts";
import { type SseEvent, SseParser } from "./sse-parser.ts";
import { isStreamError, malformed } from "./stream-error.ts";
import type { From } from "./stream-handle.ts";
import type { StreamLife } from "./stream-life.ts";
import { queryOf } from "./stream-path.ts";
import type { HttpAnswer, Transport } from "./transport.ts";

/** Times that a read from the start may find it trimmed further meanwhile. */
const START_TRIES_MAX = 5;

export class PicoLiveSource implements LiveSource<number, PicoPage> {
  readonly #transport: Transport;
  readonly #path: string;
  readonly #options: PicoPageOptions;
  readonly #life: StreamLife;
  #cursor: string | null = null;

  constructor(transport: Transport, path: string, life: StreamLife, options: PicoPageOptions) {
    this.#transport = transport;
    this.#path = path;
    this.#life = life;
    this.#options = options;
  }

  isEmpty(page: PicoPage): boolean {
    return page.records.length === 0;
  }

  async readPage(from: From<number>, signal: AbortSignal | undefined): Promise<PicoPage> {
    let seq = from === "start" ? 0 : from;
    for (let tries = 1; ; tries++) {
      try {
        return await this.#get({ seq: seq === "tail" ? "now" : seq }, seq, signal);
      } catch (error) {
        const isTrimmed = from === "start" && isStreamError(error, "offset_gone") && error.facts.start !== undefined;
        if (!isTrimmed || tries >= START_TRIES_MAX) throw error;
        seq = error.facts.start ?? 0;
      }
    }
  }

  longPoll(from: number, signal: AbortSignal | undefined): Promise<PicoPage> {
    return this.#get({ seq: from, live: "long-poll", cursor: this.#cursor ?? undefined }, from, signal);
  }

  async openEvents(from: number, signal: AbortSignal | undefined): Promise<PageEvents<PicoPage>> {
    const path = this.#path + queryOf({ seq: from, live: "sse" });
    const answer = await this.#transport.open({ method: "GET", path, headers: EVENT_STREAM, isRepeatable: true, signal });
    let position = from;
    return new SsePages(answer, new SseParser(), (data, control) => {
      const page = readEvents(position, data, control);
      position = page.next;
      return { ...page, streamTag: this.#life.tag };
    });
  }

  async #get(
    parameters: Readonly<Record<string, string | number | undefined>>,
    from: number | "tail",
    signal: AbortSignal | undefined,
  ): Promise<PicoPage> {
    const { recordsMax, bytesMax } = this.#options;
    const path = this.#path + queryOf({ ...parameters, format: "binary", count: recordsMax, bytes: bytesMax });
    const answer = await this.#transport.attempt({ method: "GET", path, isRepeatable: true, signal });
    this.#cursor = answer.headers.get(NAMES.cursor) ?? this.#cursor;
    this.#life.note(answer.headers);
    return { ...readPage(answer, from), streamTag: this.#life.tag };
  }
}

export const EVENT_STREAM = { accept: "text/event-stream" } as const;

type AnyPage = Omit<PicoPage, "streamTag">;

function readPage({ status, headers, body }: HttpAnswer, from: number | "tail"): AnyPage {
  const next = requireNumber(headers, NAMES.nextSeq);
  const records = status === 204 ? [] : readBinaryPage(body);
  checkRun(records, from === "tail" ? next : from, next);
  return { records, next, isUpToDate: readFlag(headers, NAMES.upToDate), isEnd: readFlag(headers, NAMES.closed) };
}

function readEvents(from: number, data: SseEvent | null, control: SseEvent): AnyPage {
  const told = parseJson(utf8Decoder.decode(control.data));
  if (!isObject(told)) throw malformed("a control event is no object");
  const next = readWhole(told, "next_seq");
  const records = data === null ? [] : readJsonPage(utf8Decoder.decode(data.data));
  checkRun(records, from, next);
  return { records, next, isUpToDate: told.up_to_date === true, isEnd: told.closed === true };
}

/** Records are those from `from` up to `next`, all of them: anything else would be a loss or a repeat that nobody sees. */
function checkRun(records: readonly PicoRecord[], from: number, next: number): void {
  const isRun = records.every(({ seq }, index) => seq === from + index) && next === from + records.length;
  if (!isRun) throw malformed(`the page from ${from} on does not hold the records up to ${next} in order`);
}
