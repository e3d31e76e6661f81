/**
 * One HTTP/1.1 connection of a test client, one request in flight. It never sends a request twice by
 * itself, as the HTTP clients of run times may after a reset: whether a request was sent once or twice is
 * what these tests are about.
 */
import type { Socket } from "bun";

export interface HttpAnswer {
  readonly status: number;
  /** Names in lower case; of a repeated one the last. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Buffer;
}

export interface HttpRequest {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  readonly path: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  /** Without a whole answer by then the connection is given up. @default 60000 */
  readonly timeoutMs?: number;
}

const HEAD_END = Buffer.from("\r\n\r\n");
const LINE_END = Buffer.from("\r\n");

interface Head {
  readonly status: number;
  readonly headers: ReadonlyMap<string, string>;
  readonly bodyAt: number;
}

export class HttpConnection {
  readonly #port: number;
  #socket: Socket | null = null;
  #chunks: Buffer[] = [];
  #size = 0;
  #head: Head | null = null;
  #method = "";
  #unsent: Uint8Array = new Uint8Array(0);
  #settle: ((answer: HttpAnswer | null) => void) | null = null;

  /** To a port of this machine; it connects when first used, and again after an end. */
  constructor(port: number) {
    this.#port = port;
  }

  /** Null where no whole answer came: refused, reset, or too late. Whether the request took effect is then unknown. */
  async request(request: HttpRequest): Promise<HttpAnswer | null> {
    if (this.#settle !== null) throw new Error("one request at a time");
    const { promise, resolve } = Promise.withResolvers<HttpAnswer | null>();
    this.#settle = resolve;
    this.#method = request.method;
    const timer = setTimeout(() => this.close(), request.timeoutMs ?? 60_000);
    try {
      this.#socket ??= await this.#connect();
      this.#send(encodeRequest(request));
    } catch {
      // Nothing listens there; its caller hears "no answer".
      this.close();
    }
    const answer = await promise;
    clearTimeout(timer);
    return answer;
  }

  close(): void {
    const socket = this.#socket;
    this.#socket = null;
    this.#finish(null);
    socket?.terminate();
  }

  #connect(): Promise<Socket> {
    return Bun.connect({
      hostname: "127.0.0.1",
      port: this.#port,
      socket: {
        data: (socket, chunk) => this.#receive(socket, Buffer.from(chunk)),
        drain: () => this.#send(new Uint8Array(0)),
        close: (socket) => this.#ended(socket),
        error: (socket) => this.#ended(socket),
      },
    });
  }

  #send(bytes: Uint8Array): void {
    const all = this.#unsent.length === 0 ? bytes : Buffer.concat([this.#unsent, bytes]);
    const written = this.#socket?.write(all) ?? 0;
    this.#unsent = all.subarray(Math.max(written, 0));
  }

  #ended(socket: Socket): void {
    if (socket !== this.#socket) return;
    this.#socket = null;
    this.#finish(null);
  }

  #receive(socket: Socket, chunk: Buffer): void {
    if (socket !== this.#socket) return;
    this.#chunks.push(chunk);
    this.#size += chunk.length;
    this.#head ??= this.#readHead();
    if (this.#head === null) return;
    const { status, headers, bodyAt } = this.#head;
    const body = this.#readBody(headers, bodyAt);
    if (body === null) return;
    if (headers.get("connection") === "close") {
      this.#socket = null;
      socket.end();
    }
    this.#finish({ status, headers, body });
  }

  #finish(answer: HttpAnswer | null): void {
    this.#chunks = [];
    this.#size = 0;
    this.#head = null;
    this.#unsent = new Uint8Array(0);
    const settle = this.#settle;
    this.#settle = null;
    settle?.(answer);
  }

  #joined(): Buffer {
    const joined = this.#chunks.length === 1 ? this.#chunks[0] : Buffer.concat(this.#chunks);
    if (joined === undefined) return Buffer.alloc(0);
    this.#chunks = [joined];
    return joined;
  }

  #readHead(): Head | null {
    const bytes = this.#joined();
    const end = bytes.indexOf(HEAD_END);
    if (end < 0) return null;
    const [first = "", ...lines] = bytes.toString("latin1", 0, end).split("\r\n");
    const headers = new Map<string, string>();
    for (const line of lines) {
      const at = line.indexOf(":");
      headers.set(line.slice(0, at).toLowerCase(), line.slice(at + 1).trim());
    }
    return { status: Number(first.split(" ")[1]), headers, bodyAt: end + HEAD_END.length };
  }

  /** Null while it is not whole. */
  #readBody(headers: ReadonlyMap<string, string>, bodyAt: number): Buffer | null {
    if (headers.get("transfer-encoding") === "chunked") return decodeChunked(this.#joined(), bodyAt);
    const isBodiless = this.#method === "HEAD" || this.#head?.status === 204 || this.#head?.status === 304;
    const length = isBodiless ? 0 : Number(headers.get("content-length") ?? 0);
    if (this.#size < bodyAt + length) return null;
    return this.#joined().subarray(bodyAt, bodyAt + length);
  }
}

function encodeRequest({ method, path, headers = {}, body = "" }: HttpRequest): Buffer {
  const bytes = typeof body === "string" ? Buffer.from(body) : body;
  const length = method === "PUT" || method === "POST" ? { "content-length": String(bytes.length) } : {};
  const lines = Object.entries({ host: "127.0.0.1", ...headers, ...length }).map(([name, value]) => `${name}: ${value}\r\n`);
  return Buffer.concat([Buffer.from(`${method} ${path} HTTP/1.1\r\n${lines.join("")}\r\n`), bytes]);
}

function decodeChunked(bytes: Buffer, from: number): Buffer | null {
  const parts: Buffer[] = [];
  for (let at = from; ; ) {
    const lineEnd = bytes.indexOf(LINE_END, at);
    if (lineEnd < 0) return null;
    const size = Number.parseInt(bytes.toString("latin1", at, lineEnd), 16);
    const next = lineEnd + 2 + size + 2;
    if (bytes.length < next) return null;
    if (size === 0) return Buffer.concat(parts);
    parts.push(bytes.subarray(lineEnd + 2, lineEnd + 2 + size));
    at = next;
  }
}
