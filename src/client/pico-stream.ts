/** A stream over the Pico protocol: numbered records with keys and headers. */

import { PICO_HEADERS as NAMES, PICO_BINARY_BATCH_TYPE } from "../protocol/header-names.ts";
import { formatInstant } from "../protocol/instant.ts";
import { encodePicoNewRecord, joinPicoBinaryAppend } from "../protocol/pico-binary-batch.ts";
import type { CallOptions } from "./client-options.ts";
import { deleteStream } from "./delete-stream.ts";
import { readFlag, readInstant, readNumber, requireNumber } from "./header-reading.ts";
import { followPages, readOnePage } from "./live-reader.ts";
import { PicoLiveSource } from "./pico-live-source.ts";
import { type PicoRecord, type PicoRecordInput, toBytes, toNewRecord } from "./pico-records.ts";
import { Producer, type ProducerOptions } from "./producer.ts";
import { StreamError } from "./stream-error.ts";
import type {
  AppendOptions,
  AppendResult,
  CreateOptions,
  CreateResult,
  FollowOptions,
  Page,
  PageReadOptions,
  ProducerStamp,
  StreamHandle,
  StreamState,
} from "./stream-handle.ts";
import { StreamLife } from "./stream-life.ts";
import { pathOf } from "./stream-path.ts";
import type { HttpAnswer, Transport } from "./transport.ts";

export interface PicoStreamState extends StreamState<number> {
  /** First sequence that can be read: what is below was trimmed. */
  readonly start: number;
}

export interface PicoCreateResult extends CreateResult<number>, PicoStreamState {}

export interface PicoAppendOptions extends AppendOptions {
  /** Appends only if this is the tail, records under way included; else `match_failed`, with the tail in its facts. */
  readonly expectedTail?: number;
}

export interface PicoAppendResult extends AppendResult<number> {
  /** Sequence of the first record written; null where none was: a repeat, or a close alone. */
  readonly start: number | null;
  /** Server time of the records, milliseconds since 1970; null as `start`. */
  readonly timestampMs: number | null;
}

export interface PicoPage extends Page<number> {
  /** In order, without gaps. */
  readonly records: readonly PicoRecord[];
}

/** Bounds of one page. The server sends at least one record, and no more than 4 MiB beyond that. */
export interface PicoPageOptions {
  /** @default unbounded */
  readonly recordsMax?: number;
  /** Of keys, headers and bodies. @default the server's, 65536 unless set */
  readonly bytesMax?: number;
}

export interface PicoReadOptions extends PageReadOptions<number>, PicoPageOptions {}

/** Event streams have pages of the server's size: the bounds count while catching up and for long polls. */
export interface PicoFollowOptions extends FollowOptions<number>, PicoPageOptions {}

/** What a producer tells of a record that is durable. */
export interface PicoAck {
  /** Sequence of the record; null where a repeated request was recognised, whose answer no longer tells. */
  readonly seq: number | null;
  /** Server time, milliseconds since 1970; null as `seq`. */
  readonly timestampMs: number | null;
  /** Sequence of the request that carried it. */
  readonly producerSeq: number;
}

export type PicoProducer = Producer<PicoRecordInput, PicoAppendResult, PicoAck>;

/**
 * Made by `PicoClient.stream`. Every method rejects with `StreamError`: `not_found` where there is no stream, `gone`
 * where it was deleted while forks need it, `unavailable` and `transport` when the bounds of the retries are reached.
 */
export class PicoStream implements StreamHandle<number, PicoPage> {
  readonly #transport: Transport;
  readonly #path: string;

  /** Not for direct use: see `PicoClient.stream`. */
  constructor(
    transport: Transport,
    /** Decoded, with its slash. */
    readonly name: string,
  ) {
    this.#transport = transport;
    this.#path = pathOf(name);
  }

  /**
   * Creates the stream, or finds it as it would be created.
   *
   * Errors: `conflict` where it exists with another content type, lifetime or closed flag; `bad_request`.
   *
   * @example
   * ```ts
   * import { PicoClient } from "picomq/client";
   *
   * const job = new PicoClient({ url: "http://127.0.0.1:4437" }).stream("/jobs/7");
   * const { isNew } = await job.create({ contentType: "text/plain", ttlSeconds: 86_400, body: "started" });
   * console.log(isNew ? "created" : "was there");
   * ```
   */
  async create(options: CreateOptions = {}): Promise<PicoCreateResult> {
    const answer = await this.#transport.request({
      method: "PUT",
      path: this.#path,
      headers: {
        "content-type": options.contentType ?? "application/octet-stream",
        [NAMES.ttl]: options.ttlSeconds?.toString(),
        [NAMES.expiresAt]: options.expiresAt === undefined ? undefined : formatInstant(options.expiresAt.getTime()),
        [NAMES.closed]: options.close === true ? "true" : undefined,
      },
      body: options.body === undefined ? undefined : toBytes(options.body),
      isRepeatable: true,
      signal: options.signal,
    });
    return { isNew: answer.status === 201, ...readState(answer) };
  }

  /** Settings and ends of the stream. Does not renew a sliding lifetime. */
  async head(options: CallOptions = {}): Promise<PicoStreamState> {
    return readState(await this.#transport.request({ method: "HEAD", path: this.#path, isRepeatable: true, signal: options.signal }));
  }

  /**
   * Appends one record, or a list of up to 10,000 as a whole: all or none, with consecutive sequences. Resolves when
   * they are durable. Repeated after a lost answer only with a `producer` stamp; else that is `unknown_outcome`.
   *
   * Errors: `closed`, `match_failed`, `payload_too_large`, `capacity_exceeded`, `unknown_outcome`; with a stamp
   * `fenced`, `sequence_gap`, `bad_request` for a first sequence that is not 0.
   *
   * @example
   * ```ts
   * import { PicoClient } from "picomq/client";
   *
   * const stream = new PicoClient({ url: "http://127.0.0.1:4437" }).stream("/receipts");
   * await stream.create();
   * const { next } = await stream.append([{ key: "o1", headers: [{ name: "kind", value: "paid" }], body: "12.50" }]);
   * await stream.append("last word", { expectedTail: next, close: true });
   * ```
   */
  append(records: PicoRecordInput | readonly PicoRecordInput[], options: PicoAppendOptions = {}): Promise<PicoAppendResult> {
    const list = isList(records) ? records : [records];
    if (list.length === 0) return Promise.reject(new StreamError("bad_request", "an append needs a record; to close a stream use close()"));
    const bodies = list.map((record) => encodePicoNewRecord(toNewRecord(record)));
    return this.#post(bodies, options, options.producer !== undefined);
  }

  /** Closes the stream for ever; its records stay. Closing a closed stream succeeds, except that a producer's new request is `closed`. */
  close(options: CallOptions & { readonly producer?: ProducerStamp; readonly expectedTail?: number } = {}): Promise<PicoAppendResult> {
    return this.#post([], { ...options, close: true }, true);
  }

  /**
   * A writer whose records are in the stream once and in order, whatever the network does; see `Producer`. Ends as
   * `fenced` when another takes over its id, and as `sequence_gap` when the stream misses a request of its epoch.
   */
  producer(options: ProducerOptions<PicoAppendResult>): PicoProducer {
    return new Producer(
      this.#transport,
      {
        encode: (input: PicoRecordInput) => encodePicoNewRecord(toNewRecord(input)),
        send: (bodies, producer, close, signal) => {
          const appendOptions = { producer, close, ...(signal === undefined ? {} : { signal }) };
          return this.#attemptPost(bodies, appendOptions);
        },
        ack: ({ start, timestampMs }: PicoAppendResult, { seq }, index) => ({
          seq: start === null ? null : start + index,
          timestampMs,
          producerSeq: seq,
        }),
      },
      options,
    );
  }

  /**
   * One page. Renews a sliding lifetime.
   *
   * Errors: `offset_gone` where `from` was trimmed, with `start` in its facts; `bad_request` above the tail.
   */
  read(options: PicoReadOptions = {}): Promise<PicoPage> {
    return readOnePage(this.#transport, this.#source(options), options);
  }

  /**
   * Pages up to the tail, then what comes, until the stream is closed and read to its end, `signal` aborts (rejects
   * with its reason), or the loop is left. Each record comes once and in order, also over broken connections and
   * restarts of the server. Empty pages come only to say that the tail, or the end, is reached.
   *
   * Errors: as `read`; `not_found` when the stream is deleted, `gone` when it is found to be made anew: while it catches
   * up, and behind each broken connection. Pages that were waited for do not tell.
   *
   * @example
   * ```ts
   * import { PicoClient } from "picomq/client";
   *
   * const stream = new PicoClient({ url: "http://127.0.0.1:4437" }).stream("/orders");
   * await stream.create();
   * let position = 0;
   * for await (const page of stream.follow({ from: position })) {
   *   for (const record of page.records) console.log(record.seq, record.text());
   *   position = page.next; // keep it, to resume there after a restart
   *   if (page.isUpToDate) break; // without this line it waits for more
   * }
   * ```
   */
  follow(options: PicoFollowOptions = {}): AsyncGenerator<PicoPage, void, undefined> {
    return followPages(this.#transport, this.#source(options), options);
  }

  /** `follow`, record by record. To resume later, go on at `record.seq + 1`. */
  async *records(options: PicoFollowOptions = {}): AsyncGenerator<PicoRecord, void, undefined> {
    for await (const page of this.follow(options)) yield* page.records;
  }

  /**
   * Drops the records below a sequence, for ever. Resolves with the first one that can be read: `seq` is clamped to
   * what there is, and a trim never goes back.
   */
  async trim(seq: number, options: CallOptions = {}): Promise<{ readonly start: number }> {
    const headers = { [NAMES.trimSeq]: String(seq) };
    const { signal } = options;
    const answer = await this.#transport.request({ method: "POST", path: this.#path, headers, isRepeatable: true, signal });
    return { start: requireNumber(answer.headers, NAMES.startSeq) };
  }

  /** Deletes the stream. False: there was none. After an attempt whose answer was lost, true: it is gone either way. */
  delete(options: CallOptions = {}): Promise<boolean> {
    return deleteStream(this.#transport, this.#path, options.signal);
  }

  #source(options: PicoReadOptions | PicoFollowOptions): PicoLiveSource {
    const life = new StreamLife(this.name, options.streamTag ?? null);
    return new PicoLiveSource(this.#transport, this.#path, life, options);
  }

  async #post(bodies: readonly Uint8Array[], options: PicoAppendOptions, isRepeatable: boolean): Promise<PicoAppendResult> {
    const answer = await this.#transport.request({ ...this.#appendRequest(bodies, options), isRepeatable });
    return readAppend(answer, bodies.length, options.producer);
  }

  async #attemptPost(bodies: readonly Uint8Array[], options: PicoAppendOptions): Promise<PicoAppendResult> {
    const answer = await this.#transport.attempt({ ...this.#appendRequest(bodies, options), isRepeatable: true });
    return readAppend(answer, bodies.length, options.producer);
  }

  #appendRequest(bodies: readonly Uint8Array[], { producer, close, expectedTail, signal }: PicoAppendOptions) {
    return {
      method: "POST",
      path: this.#path,
      headers: {
        "content-type": bodies.length === 0 ? undefined : PICO_BINARY_BATCH_TYPE,
        [NAMES.closed]: close === true ? "true" : undefined,
        [NAMES.matchSeq]: expectedTail?.toString(),
        [NAMES.producerId]: producer?.id,
        [NAMES.producerEpoch]: producer?.epoch.toString(),
        [NAMES.producerSeq]: producer?.seq.toString(),
      },
      body: bodies.length === 0 ? undefined : joinPicoBinaryAppend(bodies),
      signal,
    } as const;
  }
}

function isList(records: PicoRecordInput | readonly PicoRecordInput[]): records is readonly PicoRecordInput[] {
  return Array.isArray(records);
}

function readState({ headers }: HttpAnswer): PicoStreamState {
  return {
    contentType: headers.get("content-type") ?? "application/octet-stream",
    start: readNumber(headers, NAMES.startSeq) ?? 0,
    tail: requireNumber(headers, NAMES.nextSeq),
    isClosed: readFlag(headers, NAMES.closed),
    ttlSeconds: readNumber(headers, NAMES.ttl),
    expiresAtMs: readInstant(headers, NAMES.expiresAt),
  };
}

function readAppend({ headers }: HttpAnswer, count: number, producer: ProducerStamp | undefined): PicoAppendResult {
  const start = readNumber(headers, NAMES.startSeq);
  return {
    start,
    next: requireNumber(headers, NAMES.nextSeq),
    timestampMs: readNumber(headers, NAMES.timestamp),
    isClosed: readFlag(headers, NAMES.closed),
    isDuplicate: count > 0 && start === null,
    producerSeq: producer === undefined ? null : requireNumber(headers, NAMES.producerSeq),
  };
}
