/** A stream over Durable Streams: bytes, or JSON values, at opaque offsets. */
import { concatBytes, utf8Encoder } from "../lib/bytes.ts";
import { DURABLE_STREAMS_HEADERS as NAMES } from "../protocol/header-names.ts";
import { formatInstant } from "../protocol/instant.ts";
import type { CallOptions } from "./client-options.ts";
import { deleteStream } from "./delete-stream.ts";
import { joinJson } from "./durable-bodies.ts";
import { DurableLiveSource } from "./durable-live-source.ts";
import { type DurablePage, isJsonType } from "./durable-page.ts";
import { readFlag, readInstant, readNumber, requireText } from "./header-reading.ts";
import { followPages, readOnePage } from "./live-reader.ts";
import { type BytesInput, toBytes } from "./pico-records.ts";
import { Producer, type ProducerOptions } from "./producer.ts";
import { StreamError } from "./stream-error.ts";
import type {
  AppendOptions,
  AppendResult,
  CreateOptions,
  CreateResult,
  FollowOptions,
  PageReadOptions,
  ProducerStamp,
  ReadOptions,
  StreamHandle,
  StreamState,
} from "./stream-handle.ts";
import { StreamLife } from "./stream-life.ts";
import { normalizeName, pathOf } from "./stream-path.ts";
import type { HttpAnswer, Transport } from "./transport.ts";

export interface DurableStreamOptions {
  /** Type of the stream, which each append must name. @default asked of the server once, when it is first needed */
  readonly contentType?: string;
}

export interface DurableForkOptions {
  /** Name of the stream whose records the new one shares; of the same server. */
  readonly from: string;
  /** Token at which the fork parts from it. @default its tail */
  readonly offset?: string;
  /** Taken past `offset`: values of a JSON stream, else bytes; less than what one append wrote. Needs `offset`. @default 0 */
  readonly subOffset?: number;
}

export interface DurableCreateOptions extends CreateOptions {
  /** Makes the stream a fork: it begins with the records of another. A lifetime that is not given is the source's. */
  readonly fork?: DurableForkOptions;
}

export interface DurableAppendOptions extends AppendOptions {
  /** `Stream-Seq`: must be greater, byte by byte, than that of every append before that had one, else `conflict`. At most 1,024 bytes. */
  readonly streamSeq?: string;
}

/** What a producer tells of what is durable. */
export interface DurableAck {
  /** Token behind the batch; of a repeat that was recognised: the present tail. */
  readonly next: string;
  /** Sequence of the request that carried it. */
  readonly producerSeq: number;
}

export type DurableProducer<Input> = Producer<Input, AppendResult<string>, DurableAck>;

/**
 * Made by `DurableStreamsClient.stream`. Every method rejects with `StreamError`: `not_found` where there is no stream,
 * `gone` where it was deleted while forks need it, `unavailable` and `transport` when the bounds of the retries are reached.
 */
export class DurableStream implements StreamHandle<string, DurablePage> {
  readonly #transport: Transport;
  readonly #path: string;
  #contentType: string | null;

  /** Not for direct use: see `DurableStreamsClient.stream`. */
  constructor(
    transport: Transport,
    /** Decoded, with its slash. */
    readonly name: string,
    options: DurableStreamOptions,
  ) {
    this.#transport = transport;
    this.#path = pathOf(name);
    this.#contentType = options.contentType ?? null;
  }

  /**
   * Creates the stream, or finds it as it would be created; with `fork`, as one that shares the records of another.
   *
   * Errors: `conflict` where it exists with other settings, where a fork names another type than its source, or where
   * the source is deleted; `not_found` where the source is missing; `bad_request` for an offset beyond its tail.
   *
   * @example
   * ```ts
   * import { DurableStreamsClient } from "picomq/client";
   *
   * const client = new DurableStreamsClient({ url: "http://127.0.0.1:4438" });
   * const draft = client.stream("/docs/1", { contentType: "application/json" });
   * await draft.create({ body: '[{"op":"a"},{"op":"b"}]' });
   * // The first of the two values, and a life of its own from there.
   * const offset = (await draft.read()).next;
   * await client.stream("/docs/1-copy").create({ fork: { from: "/docs/1", offset } });
   * ```
   */
  async create(options: DurableCreateOptions = {}): Promise<CreateResult<string>> {
    const { fork } = options;
    const contentType = options.contentType ?? this.#contentType ?? (fork === undefined ? "application/octet-stream" : undefined);
    const answer = await this.#transport.request({
      method: "PUT",
      path: this.#path,
      headers: {
        "content-type": contentType,
        [NAMES.ttl]: options.ttlSeconds?.toString(),
        [NAMES.expiresAt]: options.expiresAt === undefined ? undefined : formatInstant(options.expiresAt.getTime()),
        [NAMES.closed]: options.close === true ? "true" : undefined,
        [NAMES.forkedFrom]: fork === undefined ? undefined : this.#transport.prefix + pathOf(normalizeName(fork.from)),
        [NAMES.forkOffset]: fork?.offset,
        [NAMES.forkSubOffset]: fork?.subOffset?.toString(),
      },
      body: options.body === undefined ? undefined : toBytes(options.body),
      isRepeatable: true,
      signal: options.signal,
    });
    const state = readState(answer);
    this.#contentType = state.contentType;
    return { isNew: answer.status === 201, ...state };
  }

  /** Settings and tail of the stream. Does not renew a sliding lifetime. */
  async head(options: CallOptions = {}): Promise<StreamState<string>> {
    const { signal } = options;
    const state = readState(await this.#transport.request({ method: "HEAD", path: this.#path, isRepeatable: true, signal }));
    this.#contentType = state.contentType;
    return state;
  }

  /**
   * Appends bytes as they are, and resolves when they are durable. To a JSON stream `data` is a JSON text; the elements
   * of an array are values of their own (see `appendJson`). Repeated after a lost answer only with a `producer` stamp;
   * else that is `unknown_outcome`.
   *
   * Errors: `closed`, `conflict` (another content type, or `streamSeq` does not rise), `payload_too_large`,
   * `bad_request` for data that is empty or no JSON, `unknown_outcome`; with a stamp `fenced` and `sequence_gap`.
   */
  async append(data: BytesInput, options: DurableAppendOptions = {}): Promise<AppendResult<string>> {
    const body = toBytes(data);
    const contentType = await this.#typeOf(options.signal);
    const request = { ...this.#appendRequest(body, contentType, options), isRepeatable: options.producer !== undefined };
    return readAppend(await this.#transport.request(request), body.length, options.producer);
  }

  /**
   * Appends values to a JSON stream: one record each, all or none, arrays too. Errors: as `append`; `unsupported` for
   * a stream of another type, `bad_request` for an empty list or a value that JSON does not know, like `undefined`.
   */
  async appendJson(values: readonly unknown[], options: DurableAppendOptions = {}): Promise<AppendResult<string>> {
    if (values.length === 0) throw new StreamError("bad_request", "an append needs a value; to close a stream use close()");
    const encoded = values.map(encodeJson);
    checkJson(await this.#typeOf(options.signal), true);
    return this.append(joinJson(encoded), options);
  }

  /** Closes the stream for ever; its records stay. Closing a closed stream succeeds, except that a producer's new request is `closed`. */
  async close(options: CallOptions & { readonly producer?: ProducerStamp } = {}): Promise<AppendResult<string>> {
    const request = { ...this.#appendRequest(undefined, undefined, { ...options, close: true }), isRepeatable: true };
    return readAppend(await this.#transport.request(request), 0, options.producer);
  }

  /**
   * A writer of bytes that are in the stream once and in order, whatever the network does; see `Producer`. Batches are
   * the bytes end to end: where one ends is not kept. For JSON streams use `jsonProducer`; this one fails with
   * `unsupported` there. Ends as `fenced` when another takes over its id, and as `sequence_gap` when the stream
   * misses a request of its epoch.
   */
  producer(options: ProducerOptions<AppendResult<string>>): DurableProducer<BytesInput> {
    return this.#producer(toBytes, "bytes", options);
  }

  /**
   * The same for a JSON stream: one value a record.
   *
   * @example
   * ```ts
   * import { DurableStreamsClient } from "picomq/client";
   *
   * const client = new DurableStreamsClient({ url: "http://127.0.0.1:4438" });
   * const log = client.stream("/answers/1", { contentType: "application/json" });
   * await log.create();
   * const producer = log.jsonProducer({ id: "model-1", claim: true });
   * for (const token of ["Hel", "lo"]) await producer.write({ token });
   * await producer.close({ closeStream: true }); // readers see the end
   * ```
   */
  jsonProducer(options: ProducerOptions<AppendResult<string>>): DurableProducer<unknown> {
    return this.#producer(encodeJson, "values", options);
  }

  /**
   * The same for streams of any type: each record is the body of a request of its own, of a JSON stream a JSON text
   * whose elements are records of their own if it is an array.
   */
  messageProducer(options: ProducerOptions<AppendResult<string>>): DurableProducer<BytesInput> {
    return this.#producer(toBytes, "message", { ...options, batchRecordsMax: 1 });
  }

  /**
   * One page: at most 64 KiB unless the server is set otherwise, at least one record. Renews a sliding lifetime.
   *
   * Errors: `offset_gone` where `from` was trimmed; `bad_request` for a token that is none of this stream.
   */
  read(options: PageReadOptions<string> = {}): Promise<DurablePage> {
    return readOnePage(this.#transport, this.#source(options), options);
  }

  /**
   * Pages up to the tail, then what comes, until the stream is closed and read to its end, `signal` aborts (rejects
   * with its reason), or the loop is left. Everything comes once and in order, also over broken connections and restarts
   * of the server. Empty pages come only to say that the tail, or the end, is reached.
   *
   * Errors: as `read`; `not_found` when the stream is deleted, `gone` when it is found to be made anew: while it catches
   * up, and behind each broken connection. Pages that were waited for do not tell.
   *
   * @example
   * ```ts
   * import { DurableStreamsClient } from "picomq/client";
   *
   * const client = new DurableStreamsClient({ url: "http://127.0.0.1:4438" });
   * const notes = client.stream("/notes/1", { contentType: "text/plain" });
   * await notes.create({ body: "first" });
   * for await (const page of notes.follow()) {
   *   console.log(page.text(), "resume at", page.next);
   *   if (page.isUpToDate) break; // without this line it waits for more
   * }
   * ```
   */
  follow(options: FollowOptions<string> = {}): AsyncGenerator<DurablePage, void, undefined> {
    return followPages(this.#transport, this.#source(options), options);
  }

  /** Deletes the stream. False: there was none. After an attempt whose answer was lost, true: it is gone either way. */
  delete(options: CallOptions = {}): Promise<boolean> {
    return deleteStream(this.#transport, this.#path, options.signal);
  }

  #source({ streamTag = null }: ReadOptions<string>): DurableLiveSource {
    return new DurableLiveSource(this.#transport, this.#path, new StreamLife(this.name, streamTag));
  }

  #producer<Input>(
    encode: (input: Input) => Uint8Array,
    kind: BodyKind,
    options: ProducerOptions<AppendResult<string>>,
  ): DurableProducer<Input> {
    return new Producer(
      this.#transport,
      {
        encode: (input: Input) => {
          const bytes = encode(input);
          if (bytes.length === 0) throw new StreamError("bad_request", "an empty record cannot be appended over Durable Streams");
          return bytes;
        },
        send: async (bodies, producer, close, signal) => {
          const contentType = bodies.length === 0 ? undefined : await this.#typeOf(signal);
          if (contentType !== undefined && kind !== "message") checkJson(contentType, kind === "values");
          const body = bodies.length === 0 ? undefined : kind === "values" ? joinJson(bodies) : concatBytes(bodies);
          const request = this.#appendRequest(body, contentType, { producer, close, ...(signal === undefined ? {} : { signal }) });
          return readAppend(await this.#transport.attempt({ ...request, isRepeatable: true }), bodies.length, producer);
        },
        ack: ({ next }: AppendResult<string>, { seq }) => ({ next, producerSeq: seq }),
      },
      options,
    );
  }

  /** The type that appends must name. */
  async #typeOf(signal: AbortSignal | undefined): Promise<string> {
    return this.#contentType ?? (await this.head(signal === undefined ? {} : { signal })).contentType;
  }

  #appendRequest(body: Uint8Array<ArrayBuffer> | undefined, contentType: string | undefined, options: DurableAppendOptions) {
    const { producer, close, streamSeq, signal } = options;
    return {
      method: "POST",
      path: this.#path,
      headers: {
        "content-type": contentType,
        [NAMES.closed]: close === true ? "true" : undefined,
        [NAMES.seq]: streamSeq,
        [NAMES.producerId]: producer?.id,
        [NAMES.producerEpoch]: producer?.epoch.toString(),
        [NAMES.producerSeq]: producer?.seq.toString(),
      },
      body,
      signal,
    } as const;
  }
}

/** What the records of a producer are to a request: bytes end to end, JSON values, or one a request. */
type BodyKind = "bytes" | "values" | "message";

function encodeJson(value: unknown): Uint8Array {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch (error) {
    throw new StreamError("bad_request", "the value cannot be written as JSON", { cause: error });
  }
  if (text === undefined) throw new StreamError("bad_request", `JSON has no word for a value of type ${typeof value}`);
  return utf8Encoder.encode(text);
}

function checkJson(contentType: string, isJson: boolean): void {
  if (isJsonType(contentType) === isJson) return;
  const advice = isJson ? "use append() and producer()" : "use jsonProducer()";
  throw new StreamError("unsupported", `the stream is of type ${contentType}: ${advice}`);
}

function readState({ headers }: HttpAnswer): StreamState<string> {
  return {
    contentType: headers.get("content-type") ?? "application/octet-stream",
    tail: requireText(headers, NAMES.nextOffset),
    isClosed: readFlag(headers, NAMES.closed),
    ttlSeconds: readNumber(headers, NAMES.ttl),
    expiresAtMs: readInstant(headers, NAMES.expiresAt),
  };
}

function readAppend({ status, headers }: HttpAnswer, size: number, producer: ProducerStamp | undefined): AppendResult<string> {
  return {
    next: requireText(headers, NAMES.nextOffset),
    isClosed: readFlag(headers, NAMES.closed),
    // A producer's data that was taken anew is told from a repeat by its status (5.2.1).
    isDuplicate: producer !== undefined && size > 0 && status === 204,
    producerSeq: producer === undefined ? null : readNumber(headers, NAMES.producerSeq),
  };
}
