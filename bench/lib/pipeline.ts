/**
 * A large number of requests as fast as the server takes them: a few connections, on each of which the next
 * requests are sent before the earlier ones are answered. For preparing, not for measuring latency.
 */

const CONNECTIONS = 128;
/** Requests that a connection waits for at a time. */
const DEPTH = 1;
const STATUS_LINE = /HTTP\/1\.1 (\d{3})/g;
/** A status line that a chunk cuts is found with the rest of it. */
const STATUS_LINE_BYTES = "HTTP/1.1 200".length;
/** No answer on any connection for this long, and the server hangs. */
const SILENCE_MS_MAX = 30_000;

interface Progress {
  sent: number;
  answered: number;
  lastMs: number;
  failure: Error | null;
}

/** Sends `requestOf(0)` to `requestOf(count - 1)`, whole HTTP requests. Rejects where one is answered by another status than 2xx. */
export async function sendAll(port: number, count: number, requestOf: (index: number) => string): Promise<void> {
  const progress: Progress = { sent: 0, answered: 0, lastMs: performance.now(), failure: null };
  const sockets = await Promise.all(Array.from({ length: CONNECTIONS }, () => openConnection(port, count, requestOf, progress)));
  try {
    while (progress.answered < count) {
      if (progress.failure !== null) throw progress.failure;
      if (performance.now() - progress.lastMs > SILENCE_MS_MAX) throw new Error(`no answer for ${SILENCE_MS_MAX / 1000} s`);
      await Bun.sleep(5);
    }
  } finally {
    for (const socket of sockets) socket.terminate();
  }
}

function openConnection(port: number, count: number, requestOf: (index: number) => string, progress: Progress): Promise<Bun.Socket> {
  let waiting = 0;
  let unread = "";
  let unsent = Buffer.alloc(0);
  const flush = (socket: Bun.Socket) => {
    if (unsent.length > 0) unsent = unsent.subarray(socket.write(unsent));
  };
  const fill = (socket: Bun.Socket) => {
    let batch = "";
    for (; waiting < DEPTH && progress.sent < count; waiting++) batch += requestOf(progress.sent++);
    if (batch !== "") unsent = Buffer.concat([unsent, Buffer.from(batch, "latin1")]);
    flush(socket);
  };
  return Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: fill,
      drain: flush,
      data(socket, chunk) {
        unread += chunk.toString("latin1");
        let end = 0;
        for (const match of unread.matchAll(STATUS_LINE)) {
          if (match[1]?.startsWith("2") !== true)
            progress.failure ??= new Error(`a request was answered: ${unread.slice(match.index, match.index + 300)}`);
          waiting -= 1;
          progress.answered += 1;
          end = match.index + match[0].length;
        }
        unread = unread.slice(Math.max(end, unread.length - STATUS_LINE_BYTES + 1));
        progress.lastMs = performance.now();
        if (waiting < DEPTH / 2) fill(socket);
      },
      close() {
        if (progress.answered < count) progress.failure ??= new Error("the server closed a connection");
      },
    },
  });
}
