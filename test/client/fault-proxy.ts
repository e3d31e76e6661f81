/**
 * A proxy on loopback that does to each exchange what a test wants: a byte-exact HTTP/1.1 relay of one request a
 * connection, so that a fault hits one exchange and no other.
 */
import { connect as connectTo, createServer, type Server, type Socket } from "node:net";
import type { Fault, ProxiedRequest, TestProxy } from "./case-stage.ts";

/** As a case gives it; the rule of a web page's case is asked over a wire. */
export type ProxyRule = (request: ProxiedRequest, index: number) => Fault | Promise<Fault>;

/**
 * Web pages ask for leave before a request to another origin, and are shown an answer only with leave: the proxy
 * gives it in the answers that it makes up, and lets the server's pass.
 */
const CORS_HEADERS = {
  "access-control-allow-origin": "*",
  "access-control-allow-headers": "*, authorization",
  "access-control-allow-methods": "GET, HEAD, PUT, POST, DELETE",
  "access-control-expose-headers": "*",
};

export class FaultProxy implements TestProxy {
  readonly requests: ProxiedRequest[] = [];
  readonly #sockets = new Set<Socket>();
  readonly #server: Server;
  readonly #target: URL;
  readonly #rule: ProxyRule;

  private constructor(target: string, rule: ProxyRule) {
    this.#target = new URL(target);
    this.#rule = rule;
    this.#server = createServer((socket) => this.#serve(socket));
  }

  static async start(target: string, rule: ProxyRule): Promise<FaultProxy> {
    const proxy = new FaultProxy(target, rule);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get url(): string {
    const address = this.#server.address();
    if (address === null || typeof address === "string") throw new Error("the proxy has no port");
    return `http://127.0.0.1:${address.port}`;
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.on("close", () => this.#sockets.delete(socket));
    // Ends of either side are what this proxy is for.
    socket.on("error", () => undefined);
  }

  #serve(client: Socket): void {
    this.#keep(client);
    let received = Buffer.alloc(0);
    const take = (chunk: Buffer): void => {
      received = Buffer.concat([received, chunk]);
      const request = parseRequest(received);
      if (request === null) return;
      client.off("data", take);
      void this.#judge(client, request);
    };
    client.on("data", take);
  }

  async #judge(client: Socket, request: ProxiedRequest): Promise<void> {
    if (request.method === "OPTIONS") {
      this.#act(client, request, { kind: "answer", status: 204 });
      return;
    }
    this.requests.push(request);
    this.#act(client, request, await this.#rule(request, this.requests.length - 1));
  }

  #act(client: Socket, request: ProxiedRequest, fault: Fault): void {
    switch (fault.kind) {
      case "drop":
        client.destroy();
        return;
      case "hang":
        return;
      case "answer": {
        const { status, headers = {}, body = "" } = fault;
        const lines = Object.entries({
          ...CORS_HEADERS,
          ...headers,
          "content-length": String(Buffer.byteLength(body)),
          connection: "close",
        });
        client.end(`HTTP/1.1 ${status} Told\r\n${lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")}\r\n${body}`);
        return;
      }
      default:
        this.#relay(client, request, fault);
    }
  }

  #relay(client: Socket, request: ProxiedRequest, fault: Fault): void {
    const server = connectTo(Number(this.#target.port), this.#target.hostname);
    this.#keep(server);
    const headers = { ...request.headers, host: this.#target.host, connection: "close" };
    const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    server.write(`${request.method} ${request.target} HTTP/1.1\r\n${lines.join("")}\r\n`);
    server.write(request.body);
    let head: Buffer | null = null;
    let answered = Buffer.alloc(0);
    let bodyLeft = fault.kind === "cut" ? fault.bodyBytes : Number.POSITIVE_INFINITY;
    server.on("data", (chunk: Buffer) => {
      if (fault.kind === "lose-answer" || (fault.kind === "stall" && head !== null)) return;
      let body = chunk;
      if (head === null) {
        answered = Buffer.concat([answered, chunk]);
        const headEnd = answered.indexOf("\r\n\r\n");
        if (headEnd < 0) return;
        head = closingHead(answered.subarray(0, headEnd));
        client.write(head);
        body = answered.subarray(headEnd + 4);
      }
      client.write(body.subarray(0, bodyLeft));
      bodyLeft -= body.length;
      if (bodyLeft > 0) return;
      server.destroy();
      client.destroySoon();
    });
    server.on("close", () => {
      if (fault.kind !== "stall") client.destroySoon();
    });
    client.on("close", () => server.destroy());
  }
}

/** The head of an answer, which tells the client that its connection ends with it. */
function closingHead(head: Buffer): Buffer {
  const [status = "", ...lines] = head.toString("latin1").split("\r\n");
  const kept = lines.filter((line) => !/^(connection|keep-alive):/i.test(line));
  return Buffer.from(`${[status, ...kept, "connection: close"].join("\r\n")}\r\n\r\n`, "latin1");
}

/** A whole request; null: more of it is to come. */
function parseRequest(bytes: Buffer): ProxiedRequest | null {
  const headEnd = bytes.indexOf("\r\n\r\n");
  if (headEnd < 0) return null;
  const [first = "", ...lines] = bytes.subarray(0, headEnd).toString("latin1").split("\r\n");
  const [method = "", target = ""] = first.split(" ");
  const pairs = lines.map((line) => [line.slice(0, line.indexOf(":")).toLowerCase(), line.slice(line.indexOf(":") + 1).trim()]);
  const headers: Record<string, string> = Object.fromEntries(pairs);
  const bodyBytes = Number(headers["content-length"] ?? 0);
  const body = bytes.subarray(headEnd + 4, headEnd + 4 + bodyBytes);
  return body.length < bodyBytes ? null : { method, target, headers, body: Buffer.from(body) };
}
