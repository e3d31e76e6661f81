/** The verbs over the Pico protocol. */
import { PicoClient } from "../client/pico-client.ts";
import type { PicoPage, PicoStream } from "../client/pico-stream.ts";
import { CLI_BATCH_BYTES, CLI_PAGE_BYTES, CLI_QUEUE_BYTES, OFFSET_MAX } from "../lib/limits.ts";
import { type ClientSettings, toClientOptions } from "./client-flags.ts";
import { type GivenText, refuseValue } from "./flag-values.ts";
import type { OutageNotice } from "./outage-notice.ts";
import { encodeRecordLines } from "./record-lines.ts";
import type { LineOptions, LineProducer, StreamClient, StreamFacts } from "./stream-client.ts";

export class PicoStreamClient implements StreamClient {
  /** Asked once. */
  readonly #stream: PicoStream;
  /** Asked again and again, within the bounds of the notice: reads, and what an append or a tail asks first. */
  readonly #patient: PicoStream;

  constructor(settings: ClientSettings, name: string, notice: OutageNotice | null) {
    this.#stream = new PicoClient(toClientOptions(settings)).stream(name);
    this.#patient = notice === null ? this.#stream : new PicoClient(toClientOptions(settings, notice)).stream(name);
  }

  async create(contentType: string, ttlSeconds: number | null): Promise<boolean> {
    const ttl = ttlSeconds === null ? {} : { ttlSeconds };
    return (await this.#stream.create({ contentType, ...ttl })).isNew;
  }

  async head(): Promise<StreamFacts> {
    const { start, tail, isClosed, contentType } = await this.#stream.head();
    return { start: String(start), next: String(tail), isClosed, contentType };
  }

  async close(): Promise<string> {
    return String((await this.#stream.close()).next);
  }

  delete(): Promise<boolean> {
    return this.#stream.delete();
  }

  async trim(seq: number): Promise<number> {
    return (await this.#stream.trim(seq)).start;
  }

  async *read(from: GivenText | null): AsyncIterable<Uint8Array> {
    const bytesMax = CLI_PAGE_BYTES;
    const first = await this.#patient.read({ from: from === null ? "start" : parseSeq(from), bytesMax });
    yield encodePage(first);
    if (first.isUpToDate || first.isEnd) return;
    const { next, streamTag } = first;
    for await (const page of this.#patient.follow({ from: next, streamTag, live: "off", bytesMax })) yield encodePage(page);
  }

  async *tail(isFollowing: boolean): AsyncIterable<Uint8Array> {
    const bytesMax = CLI_PAGE_BYTES;
    let { tail: from } = await this.#patient.head();
    if (isFollowing) {
      for await (const page of this.#patient.follow({ from, bytesMax })) yield encodePage(page);
      return;
    }
    for (;;) {
      const page = await this.#patient.read({ from, wait: true, bytesMax });
      yield encodePage(page);
      if (page.isUpToDate || page.isEnd || page.records.length === 0) return;
      from = page.next;
    }
  }

  async openLines(options: LineOptions): Promise<LineProducer> {
    await this.#patient.head({ signal: options.signal });
    return this.#patient.producer({
      id: options.producerId,
      epoch: options.producerEpoch,
      isShared: true,
      batchRecordsMax: options.batchRecordsMax,
      batchBytesMax: CLI_BATCH_BYTES,
      queueBytesMax: CLI_QUEUE_BYTES,
      signal: options.signal,
      onBatch: ({ start, next }, count) => options.onTaken({ count, start, next: start === null ? null : String(next) }),
    });
  }
}

function encodePage({ records }: PicoPage): Uint8Array {
  return encodeRecordLines(records.map(({ seq, body }) => ({ position: seq, bytes: body })));
}

function parseSeq(given: GivenText): number {
  const seq = /^\d+$/.test(given.text) ? Number(given.text) : Number.NaN;
  if (!(seq <= OFFSET_MAX)) throw refuseValue(given, `is no sequence: a whole number from 0 to ${OFFSET_MAX}`);
  return seq;
}
