/**
 * An S3 store on a free port of the loopback interface, for what no real one does on demand: faults by script, habits of
 * other vendors, a clock that is wrong. It checks what a store checks (signature's form and time, hash of the body) and
 * answers 400 to all that it does not model, which fails the test that closes it.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";

export interface FakeRequest {
  readonly method: string;
  /** Empty for requests about the bucket. */
  readonly key: string;
  readonly query: URLSearchParams;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

export interface FakeAnswer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

/** What happens to a request instead of an answer to it. */
export type Fault =
  /** This answer, and nothing is done. */
  | { readonly kind: "answer"; readonly answer: FakeAnswer }
  /** What was asked is done, and the answer changed. */
  | { readonly kind: "change"; readonly change: (answer: FakeAnswer) => FakeAnswer }
  /** The connection ends; `isDone`: what was asked is done before. */
  | { readonly kind: "reset"; readonly isDone: boolean }
  /** The head and half of the body, then the connection ends. */
  | { readonly kind: "cut" }
  /** The head, then the body in so many parts, with a pause before each. */
  | { readonly kind: "slow"; readonly parts: number; readonly pauseMs: number }
  /** The head without a length, then so many bytes, or fewer where the other side closes before. */
  | { readonly kind: "flood"; readonly bytes: number }
  /** Done, and never answered. */
  | { readonly kind: "silence" };

/** How a store differs from the one that others are measured by. */
export interface Habits {
  readonly ignoresConditions?: boolean;
  readonly hasNoConditions?: boolean;
  readonly dropsMetadata?: boolean;
  /** Keys of a list page, whatever was asked, and no word of it. */
  readonly cutsListsAt?: number;
  readonly listsUnordered?: boolean;
  readonly hasNoBatchDelete?: boolean;
  readonly wantsContentMd5?: boolean;
  readonly refusesChecksums?: boolean;
  readonly ignoresRanges?: boolean;
  /** Leaves deleted keys out of the answer to a delete of many. */
  readonly namesNoDeleted?: boolean;
  /** Keys that it does not delete. */
  readonly locked?: ReadonlySet<string>;
  /** Its clock against ours. */
  readonly clockAheadMs?: number;
}

interface StoredObject {
  readonly bytes: Uint8Array;
  readonly metadata: Readonly<Record<string, string>>;
  readonly contentType: string;
  readonly modifiedMs: number;
}

interface PlannedFault {
  readonly match: (request: FakeRequest) => boolean;
  readonly fault: Fault;
  times: number;
}

export const FAKE_BUCKET = "fake-bucket";

export class FakeS3 {
  readonly objects = new Map<string, StoredObject>();
  readonly requests: FakeRequest[] = [];
  habits: Habits;
  /** That floods could send. */
  floodedBytes = 0;
  #faults: PlannedFault[] = [];
  readonly #unmodelled: string[] = [];
  readonly #server: Server;
  #port = 0;

  private constructor(habits: Habits) {
    this.habits = habits;
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  static async start(habits: Habits = {}): Promise<FakeS3> {
    const fake = new FakeS3(habits);
    await new Promise<void>((resolve) => fake.#server.listen(0, "127.0.0.1", resolve));
    const address = fake.#server.address();
    if (address === null || typeof address === "string") throw new Error("a server without a port");
    fake.#port = address.port;
    return fake;
  }

  get endpoint(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** The next `times` requests that match meet this fault; earlier plans come first. */
  plan(match: (request: FakeRequest) => boolean, fault: Fault, times = 1): void {
    this.#faults.push({ match, fault, times });
  }

  /** No plan is left. */
  forget(): void {
    this.#faults = [];
  }

  count(match: (request: FakeRequest) => boolean): number {
    return this.requests.filter(match).length;
  }

  /** Throws where something was asked that is not modelled. */
  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
    if (this.#unmodelled.length > 0) throw new Error(`not modelled: ${this.#unmodelled.join("; ")}`);
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Uint8Array[] = [];
    for await (const part of incoming) parts.push(part as Uint8Array);
    const url = new URL(incoming.url ?? "", "http://fake");
    const [, bucket, ...key] = decodeURIComponent(url.pathname).split("/");
    const request: FakeRequest = {
      method: incoming.method ?? "",
      key: key.join("/"),
      query: url.searchParams,
      headers: Object.fromEntries(Object.entries(incoming.headers).map(([name, value]) => [name, String(value)])),
      body: Buffer.concat(parts),
    };
    this.requests.push(request);
    const planned = this.#faults.find(({ match, times }) => times > 0 && match(request));
    if (planned !== undefined) planned.times -= 1;
    const fault = planned?.fault ?? null;
    if (fault?.kind === "answer") return this.#send(response, request, fault.answer);
    if (fault?.kind === "reset" && !fault.isDone) return void incoming.socket.destroy();
    const answer = bucket === FAKE_BUCKET ? this.#answer(request) : refusal(404, "NoSuchBucket");
    if (fault?.kind === "reset") return void incoming.socket.destroy();
    if (fault?.kind === "silence") return;
    if (fault?.kind === "flood") return this.#flood(response, answer, fault.bytes);
    if (fault?.kind === "slow") return this.#dribble(incoming, answer, fault.parts, fault.pauseMs);
    if (fault?.kind === "cut") return this.#cut(incoming, request, answer);
    this.#send(response, request, fault?.kind === "change" ? fault.change(answer) : answer);
  }

  #send(response: ServerResponse, { method }: FakeRequest, { status, headers = {}, body = "" }: FakeAnswer): void {
    const bytes = Buffer.from(body);
    response.writeHead(status, {
      date: new Date(this.#nowMs()).toUTCString(),
      ...(status === 204 ? {} : { "content-length": String(bytes.length) }),
      ...headers,
    });
    response.end(method === "HEAD" ? undefined : bytes);
  }

  #cut({ socket }: IncomingMessage, _: FakeRequest, { status, headers = {}, body = "" }: FakeAnswer): void {
    const bytes = Buffer.from(body);
    const lines = [`HTTP/1.1 ${status} OK`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)];
    socket.write(`${lines.join("\r\n")}\r\nContent-Length: ${bytes.length}\r\n\r\n`);
    socket.write(bytes.subarray(0, bytes.length / 2));
    setTimeout(() => socket.destroy(), 20);
  }

  async #flood(response: ServerResponse, { status, headers = {} }: FakeAnswer, bytes: number): Promise<void> {
    response.writeHead(status, headers);
    const part = new Uint8Array(64 * 1024);
    const closed = new Promise((resolve) => response.once("close", resolve));
    for (let sent = 0; sent < bytes && !response.closed; sent += part.length) {
      this.floodedBytes += part.length;
      if (!response.write(part)) await Promise.race([new Promise((resolve) => response.once("drain", resolve)), closed]);
    }
    response.end();
  }

  async #dribble(
    { socket }: IncomingMessage,
    { status, headers = {}, body = "" }: FakeAnswer,
    parts: number,
    pauseMs: number,
  ): Promise<void> {
    const bytes = Buffer.from(body);
    const lines = [`HTTP/1.1 ${status} OK`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`)];
    socket.write(`${lines.join("\r\n")}\r\nContent-Length: ${bytes.length}\r\n\r\n`);
    const size = Math.ceil(bytes.length / parts);
    for (let at = 0; at < bytes.length && !socket.destroyed; at += size) {
      await new Promise((resolve) => setTimeout(resolve, pauseMs));
      socket.write(bytes.subarray(at, at + size));
    }
    socket.end();
  }

  #nowMs(): number {
    return Date.now() + (this.habits.clockAheadMs ?? 0);
  }

  #answer(request: FakeRequest): FakeAnswer {
    const unsigned = this.#checkSignature(request);
    if (unsigned !== null) return unsigned;
    const { method, key, query } = request;
    if (key !== "" && query.size === 0) {
      if (method === "PUT") return this.#put(request);
      if (method === "GET" || method === "HEAD") return this.#get(request);
      if (method === "DELETE") return this.#delete(key);
    }
    if (key !== "" && method === "DELETE" && query.get("x-id") === "DeleteObject") return this.#delete(key);
    if (key === "" && method === "GET" && query.get("list-type") === "2") return this.#list(query);
    if (key === "" && method === "POST" && query.has("delete")) return this.#deleteMany(request);
    if (key === "" && method === "HEAD") return { status: 200 };
    return this.#refuse(`${method} /${key}?${query}`);
  }

  #refuse(what: string): FakeAnswer {
    this.#unmodelled.push(what);
    return refusal(400, "NotModelled", what);
  }

  /** Null where it is as it should be. */
  #checkSignature({ method, key, headers, body }: FakeRequest): FakeAnswer | null {
    if (method === "HEAD" && key === "" && headers.authorization === undefined) return refusal(403, "AccessDenied");
    if (!/^AWS4-HMAC-SHA256 Credential=\S+, SignedHeaders=\S*x-amz-date\S*, Signature=[0-9a-f]{64}$/.test(headers.authorization ?? "")) {
      return refusal(403, "SignatureDoesNotMatch");
    }
    const [, year, month, day, hour, minute, second] = /^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/.exec(headers["x-amz-date"] ?? "") ?? [];
    const signedMs = Date.parse(`${year}-${month}-${day}T${hour}:${minute}:${second}Z`);
    if (!(Math.abs(signedMs - this.#nowMs()) < 15 * 60_000)) return refusal(403, "RequestTimeTooSkewed");
    const sha256 = createHash("sha256").update(body).digest("hex");
    if (headers["x-amz-content-sha256"] !== sha256) return refusal(400, "XAmzContentSHA256Mismatch");
    const hasChecksum = Object.keys(headers).some((name) => /^x-amz-(checksum-|sdk-checksum|trailer)/.test(name));
    if (this.habits.refusesChecksums && hasChecksum) return refusal(400, "InvalidRequest", "a header that is not supported");
    return null;
  }

  #put({ key, headers, body }: FakeRequest): FakeAnswer {
    if (headers["if-none-match"] !== "*") return this.#refuse(`a PUT of ${key} without a condition`);
    if (this.habits.hasNoConditions) return refusal(501, "NotImplemented");
    if (this.objects.has(key) && !this.habits.ignoresConditions) return refusal(412, "PreconditionFailed");
    const metadata = Object.entries(headers).filter(([name]) => name.startsWith("x-amz-meta-"));
    this.objects.set(key, {
      bytes: body,
      metadata: Object.fromEntries(this.habits.dropsMetadata ? [] : metadata),
      contentType: headers["content-type"] ?? "binary/octet-stream",
      modifiedMs: this.#nowMs(),
    });
    return { status: 200, headers: { etag: etagOf(body) } };
  }

  #get({ key, headers }: FakeRequest): FakeAnswer {
    const stored = this.objects.get(key);
    if (stored === undefined) return refusal(404, "NoSuchKey");
    const { bytes, metadata, contentType } = stored;
    const common = { etag: etagOf(bytes), "content-type": contentType, ...metadata };
    const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(headers.range ?? "") ?? [];
    if (first === undefined || last === undefined || this.habits.ignoresRanges) return { status: 200, headers: common, body: bytes };
    if (Number(first) >= bytes.length) {
      return { ...refusal(416, "InvalidRange"), headers: { "content-range": `bytes */${bytes.length}` } };
    }
    const part = bytes.subarray(Number(first), Number(last) + 1);
    const range = `bytes ${first}-${Number(first) + part.length - 1}/${bytes.length}`;
    return { status: 206, headers: { ...common, "content-range": range }, body: part };
  }

  #list(query: URLSearchParams): FakeAnswer {
    const prefix = query.get("prefix") ?? "";
    const asked = Number(query.get("max-keys") ?? 1000);
    const { cutsListsAt = 1000, listsUnordered = false } = this.habits;
    const sorted = [...this.objects.keys()].filter((key) => key.startsWith(prefix)).sort();
    // In no order, and yet the same one for every page.
    const keys = listsUnordered ? sorted.sort((left, right) => (hashOf(left) < hashOf(right) ? -1 : 1)) : sorted;
    const token = query.get("continuation-token");
    const after = token ?? query.get("start-after");
    const at = after === null ? 0 : listsUnordered ? keys.indexOf(after) + 1 : keys.filter((key) => key <= after).length;
    const page = keys.slice(at, at + Math.min(asked, cutsListsAt));
    const isTruncated = at + page.length < keys.length && !(page.length === cutsListsAt && cutsListsAt < asked);
    const contents = page.map((key) => {
      const { bytes, modifiedMs } = this.objects.get(key) ?? { bytes: new Uint8Array(0), modifiedMs: 0 };
      return `<Contents><Key>${key}</Key><LastModified>${new Date(modifiedMs).toISOString()}</LastModified><Size>${bytes.length}</Size></Contents>`;
    });
    const next = isTruncated ? `<NextContinuationToken>${page.at(-1)}</NextContinuationToken>` : "";
    return xml(
      200,
      `<ListBucketResult><Name>${FAKE_BUCKET}</Name><Prefix>${prefix}</Prefix><KeyCount>${page.length}</KeyCount><MaxKeys>${asked}</MaxKeys><IsTruncated>${isTruncated}</IsTruncated>${next}${contents.join("")}</ListBucketResult>`,
    );
  }

  #delete(key: string): FakeAnswer {
    if (this.habits.locked?.has(key)) return refusal(403, "AccessDenied", "locked");
    this.objects.delete(key);
    return { status: 204 };
  }

  #deleteMany({ headers, body }: FakeRequest): FakeAnswer {
    if (this.habits.hasNoBatchDelete) return refusal(501, "NotImplemented");
    if (this.habits.wantsContentMd5 && headers["content-md5"] === undefined) return refusal(400, "MissingContentMD5");
    const keys = [...new TextDecoder().decode(body).matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key = ""]) => key);
    if (keys.length === 0 || keys.length > 1000) return refusal(400, "MalformedXML");
    const lines = keys.map((key) => {
      const { status } = this.#delete(key);
      if (status !== 204) return `<Error><Key>${key}</Key><Code>AccessDenied</Code><Message>locked</Message></Error>`;
      return this.habits.namesNoDeleted ? "" : `<Deleted><Key>${key}</Key></Deleted>`;
    });
    return xml(200, `<DeleteResult>${lines.join("")}</DeleteResult>`);
  }
}

export function refusal(status: number, code: string, message = "the fake refuses", more = ""): FakeAnswer {
  return xml(status, `<Error><Code>${code}</Code><Message>${message}</Message>${more}</Error>`);
}

function xml(status: number, text: string): FakeAnswer {
  return { status, headers: { "content-type": "application/xml" }, body: `<?xml version="1.0" encoding="UTF-8"?>\n${text}` };
}

function etagOf(bytes: Uint8Array): string {
  return `"${createHash("md5").update(bytes).digest("hex")}"`;
}

function hashOf(text: string): string {
  return createHash("md5").update(text).digest("hex");
}
