/**
 * Stands between a node and its object store, passes every request on as it came (so that its signature
 * holds), and misbehaves when told to, as stores, networks and proxies do:
 *
 *   refused         connections are refused
 *   slow-down       503 SlowDown, nothing reaches the store
 *   internal-error  500 InternalError, nothing reaches the store
 *   stall           the store answers at once, its answer comes `STALL_MS` later, or as much later as `start` was told
 *   cut             the store applies a write, the connection breaks before its answer
 *   delete-errors   200 to a delete, with an error for each of its keys; nothing is deleted
 *   upload-errors   503 for data objects alone: the WAL goes on, uploads do not
 */
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export const FAULTS = ["refused", "slow-down", "internal-error", "stall", "cut", "delete-errors", "upload-errors"] as const;
export type Fault = (typeof FAULTS)[number];

/** Longer than a client of a store should wait for a first answer, shorter than what ends a call for good. */
const STALL_MS = 10_000;
/** Headers that belong to one connection. */
const HOP_HEADERS = new Set(["connection", "keep-alive", "transfer-encoding"]);

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[]>>;
  readonly body: Buffer;
}

export class FaultProxy {
  readonly #storePort: number;
  readonly #server: Server;
  /** Of the requests that the fault is for, this share meets it. */
  #share = 1;
  #fault: Fault | null = null;
  #port = 0;
  #seen = 0;
  #hits = 0;
  /** Requests that reached the store. */
  passedCount = 0;

  private constructor(
    storePort: number,
    private readonly stallMs: number,
  ) {
    this.#storePort = storePort;
    this.#server = createServer((incoming, response) => void this.#serve(incoming, response));
  }

  static async start(storePort: number, stallMs = STALL_MS): Promise<FaultProxy> {
    const proxy = new FaultProxy(storePort, stallMs);
    await proxy.#listen();
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#port}`;
  }

  /** From here on; null: none. */
  async set(fault: Fault | null, share = 1): Promise<void> {
    const before = this.#fault;
    this.#fault = fault;
    this.#share = share;
    this.#seen = 0;
    if (fault === "refused") await this.#refuse();
    else if (before === "refused") await this.#listen();
  }

  /** Requests that met a fault since the last call. */
  takeHits(): number {
    const hits = this.#hits;
    this.#hits = 0;
    return hits;
  }

  async close(): Promise<void> {
    if (this.#server.listening) await this.#refuse();
  }

  #listen(): Promise<void> {
    return new Promise((resolve) => {
      this.#server.listen(this.#port, "127.0.0.1", () => {
        this.#port = (this.#server.address() as AddressInfo).port;
        resolve();
      });
    });
  }

  #refuse(): Promise<void> {
    this.#hits += 1;
    return new Promise((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  async #serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    try {
      const body = await bodyOf(incoming);
      const fault = this.#faultFor(incoming);
      const made = fault === null ? null : madeAnswer(fault, body);
      if (made !== null) {
        send(response, made);
        return;
      }
      const answer = await this.#pass(incoming, body);
      if (fault === "cut") incoming.socket.destroy();
      else {
        if (fault === "stall") await Bun.sleep(this.stallMs);
        send(response, answer);
      }
    } catch {
      // Whoever asked, or the store, has gone.
      incoming.socket.destroy();
    }
  }

  #faultFor(incoming: IncomingMessage): Fault | null {
    const fault = this.#fault;
    if (fault === null || !concerns(fault, incoming)) return null;
    this.#seen += 1;
    if (Math.floor(this.#seen * this.#share) === Math.floor((this.#seen - 1) * this.#share)) return null;
    this.#hits += 1;
    return fault;
  }

  #pass(incoming: IncomingMessage, body: Buffer): Promise<Answer> {
    this.passedCount += 1;
    return new Promise((resolve, reject) => {
      const headers: Record<string, string | string[]> = {};
      for (const [name, value] of Object.entries(incoming.headers))
        if (value !== undefined && !HOP_HEADERS.has(name)) headers[name] = value;
      const options = { host: "127.0.0.1", port: this.#storePort, method: incoming.method, path: incoming.url, headers };
      const outgoing = request(options, (answer) => {
        bodyOf(answer).then((bytes) => {
          const named = Object.entries(answer.headers).filter(([name, value]) => value !== undefined && !HOP_HEADERS.has(name));
          resolve({
            status: answer.statusCode ?? 502,
            headers: Object.fromEntries(named) as Record<string, string | string[]>,
            body: bytes,
          });
        }, reject);
      });
      outgoing.on("error", reject);
      outgoing.end(body);
    });
  }
}

function concerns(fault: Fault, { method = "", url = "" }: IncomingMessage): boolean {
  switch (fault) {
    case "cut":
      return method === "PUT" || method === "POST" || method === "DELETE";
    case "delete-errors":
      return method === "DELETE" || (method === "POST" && /[?&]delete\b/.test(url));
    case "upload-errors":
      return method === "PUT" && url.includes("/data/");
    default:
      return true;
  }
}

/** What the proxy answers by itself; null where the store is asked. */
function madeAnswer(fault: Fault, body: Buffer): Answer | null {
  switch (fault) {
    case "slow-down":
    case "upload-errors":
      return xml(503, errorXml("SlowDown", "Please reduce your request rate."));
    case "internal-error":
      return xml(500, errorXml("InternalError", "We encountered an internal error. Please try again."));
    case "delete-errors": {
      const keys = [...body.toString("utf8").matchAll(/<Key>([^<]*)<\/Key>/g)].map(([, key]) => key);
      if (keys.length === 0) return xml(403, errorXml("AccessDenied", "Access Denied."));
      const errors = keys.map((key) => `<Error><Key>${key}</Key><Code>AccessDenied</Code><Message>Access Denied.</Message></Error>`);
      return xml(200, `<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${errors.join("")}</DeleteResult>`);
    }
    default:
      return null;
  }
}

function errorXml(code: string, message: string): string {
  return `<Error><Code>${code}</Code><Message>${message}</Message><RequestId>fault-proxy</RequestId></Error>`;
}

function xml(status: number, text: string): Answer {
  return { status, headers: { "content-type": "application/xml" }, body: Buffer.from(`<?xml version="1.0" encoding="UTF-8"?>\n${text}`) };
}

function send(response: ServerResponse, { status, headers, body }: Answer): void {
  if (response.req.method === "HEAD") {
    response.writeHead(status, headers);
    response.end();
    return;
  }
  response.writeHead(status, { ...headers, "content-length": String(body.length) });
  response.end(body);
}

async function bodyOf(message: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of message) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}
