/** The verbs over Durable Streams, which has chunks of bytes for records and offsets for sequences. */
import { type DurablePage, isJsonType } from "../client/durable-page.ts";
import type { DurableStream } from "../client/durable-stream.ts";
import { DurableStreamsClient } from "../client/durable-streams-client.ts";
import { EMPTY_BYTES } from "../lib/bytes.ts";
import { type ClientSettings, toClientOptions } from "./client-flags.ts";
import { unsupported } from "./failure.ts";
import type { GivenText } from "./flag-values.ts";
import type { OutageNotice } from "./outage-notice.ts";
import { encodeRecordLines } from "./record-lines.ts";
import type { LineOptions, LineProducer, StreamClient, StreamFacts } from "./stream-client.ts";

/** Where every stream starts. */
const START = "-1";

export class DurableStreamClient implements StreamClient {
  readonly #settings: ClientSettings;
  readonly #name: string;
  readonly #notice: OutageNotice | null;
  /** Asked once. */
  readonly #stream: DurableStream;

  constructor(settings: ClientSettings, name: string, notice: OutageNotice | null) {
    this.#settings = settings;
    this.#name = name;
    this.#notice = notice;
    this.#stream = new DurableStreamsClient(toClientOptions(settings)).stream(name);
  }

  async create(contentType: string, ttlSeconds: number | null): Promise<boolean> {
    const ttl = ttlSeconds === null ? {} : { ttlSeconds };
    return (await this.#stream.create({ contentType, ...ttl })).isNew;
  }

  async head(): Promise<StreamFacts> {
    const { tail, isClosed, contentType } = await this.#stream.head();
    return { start: START, next: tail, isClosed, contentType };
  }

  async close(): Promise<string> {
    return (await this.#stream.close()).next;
  }

  delete(): Promise<boolean> {
    return this.#stream.delete();
  }

  trim(): Promise<number> {
    return Promise.reject(unsupported("Durable Streams has no trim; use --protocol pico"));
  }

  async *read(from: GivenText | null): AsyncIterable<Uint8Array> {
    const patient = this.#patient();
    const first = await patient.read({ from: from?.text ?? START });
    yield encodePage(first);
    if (first.isUpToDate || first.isEnd) return;
    const { next, streamTag } = first;
    for await (const page of patient.follow({ from: next, streamTag, live: "off" })) yield encodePage(page);
  }

  async *tail(isFollowing: boolean): AsyncIterable<Uint8Array> {
    const patient = this.#patient();
    let { next: from } = await patient.read({ from: "tail" });
    if (isFollowing) {
      for await (const page of patient.follow({ from })) yield encodePage(page);
      return;
    }
    for (;;) {
      const page = await patient.read({ from, wait: true });
      yield encodePage(page);
      if (page.isUpToDate || page.isEnd || page.next === from) return;
      from = page.next;
    }
  }

  async openLines(options: LineOptions): Promise<LineProducer> {
    const { contentType } = await this.#patient().head({ signal: options.signal });
    return this.#patient(options.contentType ?? contentType).messageProducer({
      id: options.producerId,
      epoch: options.producerEpoch,
      isShared: true,
      signal: options.signal,
      onBatch: ({ next, isDuplicate }, count) => options.onTaken({ count, start: null, next: isDuplicate ? null : next }),
    });
  }

  /** The stream, asked again and again within the bounds of the notice. */
  #patient(contentType?: string): DurableStream {
    const client = new DurableStreamsClient(toClientOptions(this.#settings, this.#notice));
    return client.stream(this.#name, contentType === undefined ? {} : { contentType });
  }
}

/** One line a page: where one append ends and the next begins, bytes do not tell. */
function encodePage(page: DurablePage): Uint8Array {
  const isEmpty = page.bytes.length === 0 || (page.bytes.length === 2 && isJsonType(page.contentType) && page.text() === "[]");
  return isEmpty ? EMPTY_BYTES : encodeRecordLines([{ position: page.next, bytes: page.bytes }]);
}
