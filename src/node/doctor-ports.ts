/** The addresses of the listeners: free, or taken, and by whom. */
import { createServer } from "node:net";
import { messageOf } from "../lib/errors.ts";
import { errnoOf } from "../storage/file-error.ts";
import type { Finding } from "./doctor.ts";
import { formatListenAddress, type ListenAddress, type Settings } from "./settings.ts";

/** A node answers at once; what does not is another program. */
const ANSWER_MS_MAX = 2000;

interface Listener {
  readonly what: string;
  readonly flag: string;
  readonly listen: ListenAddress;
  /** A request that changes nothing, and what a node answers to it. */
  readonly method: string;
  readonly path: string;
  readonly isOurs: (response: Response, text: string) => boolean;
}

/** `isRunning`: a node runs on the places that were named. */
export async function* examinePorts(settings: Settings, isRunning: boolean): AsyncGenerator<Finding, void, undefined> {
  for (const listener of listenersOf(settings)) yield await examinePort(listener, isRunning);
}

function listenersOf({ pico, durableStreams, admin }: Settings): readonly Listener[] {
  return [
    pico === null
      ? []
      : [{ what: "pico listener", flag: "--listen", listen: pico.listen, method: "GET", path: "/?limit=1", isOurs: isListOfStreams }],
    durableStreams === null
      ? []
      : [{ ...DURABLE_STREAMS, flag: pico === null ? "--listen" : "--ds-listen", listen: durableStreams.listen }],
    admin === null
      ? []
      : [{ what: "admin listener", flag: "--admin-listen", listen: admin.listen, method: "GET", path: "/health", isOurs: isHealth }],
  ].flat();
}

const DURABLE_STREAMS = {
  what: "ds listener",
  method: "OPTIONS",
  path: "/pico-doctor",
  isOurs: ({ headers }: Response) => /Stream-Next-Offset/i.test(headers.get("access-control-expose-headers") ?? ""),
};

function isListOfStreams(_: Response, text: string): boolean {
  return /^\{"items":\[/.test(text);
}

function isHealth({ status }: Response, text: string): boolean {
  return status === 200 && text.trim() === "ok";
}

async function examinePort(listener: Listener, isRunning: boolean): Promise<Finding> {
  const { what, flag, listen } = listener;
  const address = formatListenAddress(listen);
  if (listen.port === 0) return { level: "ok", what, detail: `${address}: any free port` };
  const refusal = await tryBind(listen);
  if (refusal === null) return { level: "ok", what, detail: `${address} is free` };
  if (errnoOf(refusal) !== "EADDRINUSE") {
    const remedy =
      errnoOf(refusal) === "EACCES" ? "take a port above 1023, or give the program the right" : "name an address of this machine";
    return {
      level: "fail",
      what,
      detail: `${address} cannot be listened on (${errnoOf(refusal) ?? messageOf(refusal)}); ${remedy} with ${flag}`,
    };
  }
  const isNode = await answersAsNode(listener);
  if (isNode && isRunning) return { level: "ok", what, detail: `${address} is taken by a pico node, and one runs on these places` };
  const who = isNode ? "a pico node that runs on other places" : "another program";
  return {
    level: "fail",
    what,
    detail: `${address} is taken by ${who}; stop it (ss -ltnp shows which), or give another port with ${flag}`,
  };
}

/** Binds for a moment; resolves with what hindered it. */
function tryBind({ host, port }: ListenAddress): Promise<unknown> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", resolve);
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve(null)));
  });
}

async function answersAsNode({ listen, method, path, isOurs }: Listener): Promise<boolean> {
  try {
    const response = await fetch(`http://${formatListenAddress(toReachable(listen))}${path}`, {
      method,
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    return isOurs(response, await response.text());
  } catch {
    return false;
  }
}

/** Every address is also this machine's own. */
function toReachable({ host, port }: ListenAddress): ListenAddress {
  if (host === "0.0.0.0") return { host: "127.0.0.1", port };
  return host === "::" ? { host: "::1", port } : { host, port };
}
