/** Ports for servers that tests and benches start, and start again where they were. */
import { randomInt } from "node:crypto";
import { createServer } from "node:net";

/**
 * Below what Linux and macOS give to outgoing connections (32768 and 49152): a connection of another test would take
 * the port of a server while that is down between a kill and its next start.
 */
const PORT_MIN = 18_000;
const PORT_MAX = 32_000;
const TRIES_MAX = 100;

/** Handed out by this process: whoever got one may not listen on it yet. */
const handedOut = new Set<number>();

/** A port of loopback that nobody listens on, another one each time. */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < TRIES_MAX; tries++) {
    const port = randomInt(PORT_MIN, PORT_MAX);
    if (handedOut.has(port)) continue;
    handedOut.add(port);
    if (await isFree(port)) return port;
  }
  throw new Error(`no free port between ${PORT_MIN} and ${PORT_MAX}`);
}

function isFree(port: number): Promise<boolean> {
  const server = createServer();
  return new Promise((resolve) => {
    server.once("error", () => resolve(false));
    server.listen(port, "127.0.0.1", () => server.close(() => resolve(true)));
  });
}
