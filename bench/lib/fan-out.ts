/**
 * Fan-out over SSE: many readers follow one stream from its tail, a few writers append, and what counts is
 * how many records reach readers a second. Readers are bare sockets that look for the one byte that each
 * record ends with, so that the client costs as little as it can.
 */
import { append, type StreamTarget } from "./stream-client.ts";

/** Ends each record, and occurs nowhere else in what a server sends. */
const MARK = 0x7e;
const RECORD_BYTES = 100;
const WRITERS = 4;
const CONNECT_MS_MAX = 20_000;
/** Behind the last append, for what is still on its way. */
const DRAIN_MS_MAX = 20_000;

export interface FanOutLoad {
  readonly target: StreamTarget;
  readonly path: string;
  readonly readers: number;
  readonly seconds: number;
}

export interface FanOutResult {
  readonly records: number;
  readonly deliveries: number;
  readonly seconds: number;
}

/** Rejects where readers do not come up, or do not get every record. */
export async function runFanOut({ target, path, readers, seconds }: FanOutLoad): Promise<FanOutResult> {
  const { hostname, port } = new URL(target.url);
  let headsSeen = 0;
  let deliveries = 0;
  let lastMs = 0;
  const live = target.protocol === "pico" ? "offset=now" : "offset=now&live=sse";
  const request = `GET ${path}?${live} HTTP/1.1\r\nHost: ${hostname}:${port}\r\nAccept: text/event-stream\r\n\r\n`;
  const openSocket = () =>
    Bun.connect<{ isHeadSeen: boolean }>({
      hostname,
      port: Number(port),
      data: { isHeadSeen: false },
      socket: {
        open: (socket) => void socket.write(request),
        data(socket, chunk) {
          if (!socket.data.isHeadSeen) {
            socket.data.isHeadSeen = true;
            headsSeen += 1;
          }
          for (let at = chunk.indexOf(MARK); at >= 0; at = chunk.indexOf(MARK, at + 1)) deliveries += 1;
          lastMs = performance.now();
        },
      },
    });
  const sockets = [];
  try {
    for (let i = 0; i < readers; i++) sockets.push(await openSocket());
    await until(
      () => headsSeen === readers,
      CONNECT_MS_MAX,
      () => `${headsSeen} of ${readers} readers came up`,
    );
    // The heads are out; the reads behind them begin to wait.
    await Bun.sleep(200);
    const body = new Uint8Array(RECORD_BYTES).fill(0x78);
    body[RECORD_BYTES - 1] = MARK;
    const startedMs = performance.now();
    let records = 0;
    const write = async () => {
      while (performance.now() - startedMs < seconds * 1000) {
        await append(target, path, "text/plain", body);
        records += 1;
      }
    };
    await Promise.all(Array.from({ length: WRITERS }, write));
    const isAllThere = () => deliveries >= records * readers;
    await until(isAllThere, DRAIN_MS_MAX, () => `${deliveries} of ${records * readers} deliveries came`);
    return { records, deliveries, seconds: (lastMs - startedMs) / 1000 };
  } finally {
    for (const socket of sockets) socket.terminate();
  }
}

async function until(isMet: () => boolean, limitMs: number, describe: () => string): Promise<void> {
  const startedMs = performance.now();
  while (!isMet()) {
    if (performance.now() - startedMs > limitMs) throw new Error(`${describe()} within ${limitMs / 1000} s`);
    await Bun.sleep(5);
  }
}
