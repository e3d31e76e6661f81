/** Sockets of clients that do not behave: they stall while they send, or stop reading what they asked for. */
import { connect, type Socket } from "node:net";

/** Connects and sends these bytes; resolves once connected. */
export async function openSocket(port: number, bytes: string): Promise<Socket> {
  const socket = connect(port, "127.0.0.1");
  socket.on("error", () => {}); // The server may cut it at any time.
  await new Promise<void>((resolve, reject) => {
    socket.once("connect", resolve);
    socket.once("error", reject);
  });
  socket.write(bytes);
  return socket;
}

/** An SSE reader that can stop reading from its socket. */
export class SseSocket {
  /** Bodies of the records received, in order. */
  readonly bodies: string[] = [];
  isUpToDate = false;
  isEnded = false;
  readonly #socket: Socket;
  #bytes: Buffer = Buffer.alloc(0);
  #text = "";
  #hasHead = false;

  private constructor(socket: Socket) {
    this.#socket = socket;
    socket.on("data", (chunk) => this.#receive(Buffer.from(chunk)));
    socket.on("close", () => {
      this.isEnded = true;
    });
  }

  static async open(port: number, path: string): Promise<SseSocket> {
    return new SseSocket(await openSocket(port, `GET ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n`));
  }

  stopReading(): void {
    this.#socket.pause();
  }

  resume(): void {
    this.#socket.resume();
  }

  close(): void {
    this.#socket.destroy();
  }

  #receive(chunk: Buffer): void {
    this.#bytes = Buffer.concat([this.#bytes, chunk]);
    if (!this.#hasHead) {
      const end = this.#bytes.indexOf("\r\n\r\n");
      if (end < 0) return;
      this.#hasHead = true;
      this.#bytes = this.#bytes.subarray(end + 4);
    }
    for (;;) {
      const lineEnd = this.#bytes.indexOf("\r\n");
      if (lineEnd < 0) return;
      const size = Number.parseInt(this.#bytes.toString("latin1", 0, lineEnd), 16);
      if (this.#bytes.length < lineEnd + 2 + size + 2) return;
      this.#takeText(this.#bytes.toString("utf8", lineEnd + 2, lineEnd + 2 + size));
      this.#bytes = this.#bytes.subarray(lineEnd + 2 + size + 2);
    }
  }

  #takeText(text: string): void {
    const events = (this.#text + text).split("\n\n");
    this.#text = events.pop() ?? "";
    for (const event of events) {
      const data = /^data:(.*)$/m.exec(event)?.[1];
      if (data === undefined) continue;
      if (event.startsWith("event: data")) for (const { body } of JSON.parse(data) as { body: string }[]) this.bodies.push(body);
      else this.isUpToDate = (JSON.parse(data) as { up_to_date: boolean }).up_to_date;
    }
  }
}
