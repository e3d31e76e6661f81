/**
 * A large number of requests as fast as the server takes them, over bare sockets that each wait for an answer
 * before the next request. For preparing, not for measuring latency.
 */

const CONNECTIONS = 128;
const STATUS_LINE = /^HTTP\/1\.1 (\d{3})/;
const HEAD_END = "\r\n\r\n";
/** No answer on any connection for this long, and the server hangs. */
const SILENCE_MS_MAX = 30_000;

interface Progress {
  sent: number;
  answered: number;
  lastMs: number;
  failure: Error | null;
}

/**
 * Sends `requestOf(0)` to `requestOf(count - 1)`, whole HTTP requests that are answered without a body.
 * Rejects where one is answered by another status than 2xx.
 */
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
  let unread = "";
  const sendNext = (socket: Bun.Socket) => {
    if (progress.sent === count) return;
    const request = Buffer.from(requestOf(progress.sent++), "latin1");
    // A small request always fits the empty buffer of an idle connection.
    if (socket.write(request) < request.length) progress.failure ??= new Error("a request did not fit the socket's buffer");
  };
  return Bun.connect({
    hostname: "127.0.0.1",
    port,
    socket: {
      open: sendNext,
      data(socket, chunk) {
        unread += chunk.toString("latin1");
        if (!unread.includes(HEAD_END)) return;
        if (STATUS_LINE.exec(unread)?.[1]?.startsWith("2") !== true)
          progress.failure ??= new Error(`a request was answered: ${unread.slice(0, 300)}`);
        unread = "";
        progress.answered += 1;
        progress.lastMs = performance.now();
        sendNext(socket);
      },
      close() {
        if (progress.answered < count) progress.failure ??= new Error("the server closed a connection");
      },
    },
  });
}
