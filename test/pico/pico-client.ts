/** HTTP as the suite speaks it: by `fetch` where that changes nothing, by bytes on a socket where it would. */

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly bytes: Uint8Array;
  json(): unknown;
}

export interface JsonRecord {
  readonly seq: number;
  readonly timestamp: number;
  readonly key?: string | null;
  readonly headers?: unknown;
  readonly body?: string | null;
  readonly body_b64?: string;
}

type HeaderList = Readonly<Record<string, string>>;
type RequestBody = string | Uint8Array<ArrayBuffer>;

export class PicoClient {
  constructor(readonly url: string) {}

  async request(method: string, target: string, headers: HeaderList = {}, body?: RequestBody): Promise<Answer> {
    const response = await fetch(this.url + target, { method, headers, redirect: "manual", ...(body === undefined ? {} : { body }) });
    const bytes = await response.bytes();
    const text = new TextDecoder().decode(bytes);
    return { status: response.status, headers: response.headers, text, bytes, json: () => JSON.parse(text) as unknown };
  }

  get(target: string, headers?: HeaderList): Promise<Answer> {
    return this.request("GET", target, headers);
  }

  head(target: string): Promise<Answer> {
    return this.request("HEAD", target);
  }

  put(target: string, headers?: HeaderList, body?: RequestBody): Promise<Answer> {
    return this.request("PUT", target, headers, body);
  }

  /** Without a content type unless one is given. */
  post(target: string, body: RequestBody, headers: HeaderList = {}): Promise<Answer> {
    return this.request("POST", target, { "content-type": "", ...headers }, body);
  }

  delete(target: string): Promise<Answer> {
    return this.request("DELETE", target);
  }

  /** Creates a stream and appends one record a text. */
  async fill(name: string, bodies: readonly string[], headers: HeaderList = { "content-type": "text/plain" }): Promise<void> {
    await this.put(name, headers);
    for (const body of bodies) await this.post(name, body);
  }

  async records(target: string): Promise<readonly JsonRecord[]> {
    return (await this.get(target)).json() as readonly JsonRecord[];
  }

  /** Sends bytes as they are and returns the answer's bytes as text, once the connection ends or `until` is in it. */
  raw(text: string, until: RegExp | null = null, timeoutMs = 5000): Promise<string> {
    const { hostname, port } = new URL(this.url);
    return new Promise((resolve, reject) => {
      let received = "";
      const finish = () => {
        clearTimeout(timer);
        resolve(received);
      };
      const timer = setTimeout(finish, timeoutMs);
      Bun.connect({
        hostname,
        port: Number(port),
        socket: {
          open(socket) {
            socket.write(text);
          },
          data(socket, data) {
            received += data.toString("latin1");
            if (until?.test(received)) socket.end();
          },
          close: finish,
          error: finish,
        },
      }).catch(reject);
    });
  }

  /** A request line with its target as written, answered in full. */
  async rawRequest(
    method: string,
    target: string,
    headers: HeaderList = {},
    body = "",
  ): Promise<{ status: number; head: string; body: string }> {
    const lines = Object.entries({ host: "localhost", connection: "close", "content-length": String(body.length), ...headers });
    const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("");
    const text = await this.raw(`${method} ${target} HTTP/1.1\r\n${head}\r\n${body}`);
    const end = text.indexOf("\r\n\r\n");
    return { status: Number(text.slice(9, 12)), head: text.slice(0, end), body: text.slice(end + 4) };
  }

  /** The events of an SSE answer, until it ends or `isEnough`. */
  async events(target: string, isEnough: (events: readonly SseEvent[]) => boolean, headers: HeaderList = {}): Promise<SseAnswer> {
    const abort = new AbortController();
    const response = await fetch(this.url + target, { headers, signal: abort.signal });
    const reader = response.body?.getReader();
    let text = "";
    let isEnded = false;
    while (reader !== undefined && !isEnough(parseEvents(text))) {
      const { done, value } = await reader.read();
      if (done) {
        isEnded = true;
        break;
      }
      text += Buffer.from(value).toString("utf8");
    }
    abort.abort();
    return { status: response.status, headers: response.headers, text, events: parseEvents(text), isEnded };
  }
}

export interface SseEvent {
  readonly event: string;
  readonly id: string | null;
  readonly data: string;
}

export interface SseAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly events: readonly SseEvent[];
  /** The server ended it. */
  readonly isEnded: boolean;
}

function parseEvents(text: string): SseEvent[] {
  const blocks = text.split("\n\n").slice(0, -1);
  return blocks.flatMap((block) => {
    const lines = block.split("\n").filter((line) => !line.startsWith(":"));
    const field = (name: string) => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1));
    const event = field("event")[0];
    if (event === undefined) return [];
    return [{ event: event.trim(), id: field("id")[0]?.trim() ?? null, data: field("data").join("\n") }];
  });
}
