/**
 * The Durable Streams listener: dispatch by method. What a verb does is in `durable-streams-create.ts`,
 * `durable-streams-append.ts`, `durable-streams-read.ts` and `durable-streams-live.ts`.
 */
import { isPicoError, PicoError } from "../lib/errors.ts";
import { WAITERS_MAX } from "../lib/limits.ts";
import type { Route } from "../ownership/router.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import {
  durableStreamsAnswer,
  durableStreamsError,
  durableStreamsOptions,
  durableStreamsRedirect,
  streamHeaders,
} from "./durable-streams-answer.ts";
import { appendToDurableStream } from "./durable-streams-append.ts";
import { createDurableStream } from "./durable-streams-create.ts";
import { readDurableStream } from "./durable-streams-read.ts";
import type { Exchange } from "./exchange.ts";
import { DURABLE_STREAMS_HEADERS } from "./header-names.ts";
import { createHttpListener, type HttpListener } from "./http-listener.ts";
import { LiveReads } from "./live-reads.ts";
import { NO_STORE } from "./pico-answer.ts";
import type { ProtocolContext } from "./protocol-context.ts";
import {
  judgeExchange,
  methodNotAllowed,
  originPolicyOf,
  redirectTarget,
  refusing,
  unavailableHere,
  watched,
  withExchange,
} from "./protocol-edge.ts";
import { parseStreamName, reservedSegmentOf } from "./stream-name.ts";

/** What the handlers of the protocol share. */
export interface DurableStreamsContext extends ProtocolContext {
  readonly liveReads: LiveReads;
}

/** Where subscriptions would be (Durable Streams 6); not offered. */
const SUBSCRIPTIONS = /^\/__ds(\/|$)/;

export function createDurableStreamsListener(base: ProtocolContext): HttpListener {
  const context: DurableStreamsContext = { ...base, liveReads: new LiveReads(WAITERS_MAX, base.stopping, base.observers?.durableStreams) };
  const policy = originPolicyOf(base.settings);

  function handle(exchange: Exchange): MaybePromise<Response> {
    const verdict = judgeExchange(policy, exchange);
    if (exchange.method === "OPTIONS") return durableStreamsOptions(exchange);
    if (!verdict.isAllowed) throw new PicoError("forbidden_origin", verdict.reason);
    if (exchange.rawPath === "/") return refuseRoot(exchange);
    const name = parseStreamName(exchange.rawPath);
    const isFork = exchange.method === "PUT" && exchange.headers[DURABLE_STREAMS_HEADERS.forkedFrom] !== undefined;
    return follow(base.router.route(name, "durableStreams"), exchange, () =>
      isFork ? dispatchFork(context, exchange, name) : dispatch(context, exchange, name),
    );
  }

  const handler = refusing(handle, (exchange, error) => durableStreamsError(exchange, error, base.log), base.onInvariantBroken);
  return createHttpListener(base, withExchange(watched(handler, base.clock, base.observers?.durableStreams)), (error) => {
    base.log.error("request failed before it reached the protocol", { error });
    return new Response("the server failed; its log has the cause", { status: 500, headers: { "content-type": "text/plain" } });
  });
}

function follow(route: Route, exchange: Exchange, serve: () => MaybePromise<Response>): MaybePromise<Response> {
  if (route.kind === "redirect") return durableStreamsRedirect(exchange, redirectTarget(route, exchange));
  if (route.kind === "unavailable") throw unavailableHere(route);
  return serve();
}

function dispatch(context: DurableStreamsContext, exchange: Exchange, name: string): MaybePromise<Response> {
  checkReserved(exchange, name);
  switch (exchange.method) {
    case "POST":
      return appendToDurableStream(context, exchange, name);
    case "GET":
      return readDurableStream(context, exchange, name);
    case "HEAD":
      return headOfDurableStream(context, exchange, name);
    case "PUT":
      return createDurableStream(context, exchange, name);
    case "DELETE":
      return context.service.delete(name).then(() => durableStreamsAnswer(exchange, 204, null, { "cache-control": NO_STORE }));
    default:
      throw methodNotAllowed(exchange);
  }
}

/** A fork is created where its source is owned, unless its own name is taken here: then it is answered here. */
async function dispatchFork(context: DurableStreamsContext, exchange: Exchange, name: string): Promise<Response> {
  const sourceName = parseStreamName(exchange.headers[DURABLE_STREAMS_HEADERS.forkedFrom] ?? "");
  const route = context.router.route(sourceName, "durableStreams");
  if (route.kind === "here" || (await isTaken(context, name))) return dispatch(context, exchange, name);
  return follow(route, exchange, () => dispatch(context, exchange, name));
}

async function isTaken(context: DurableStreamsContext, name: string): Promise<boolean> {
  try {
    await context.service.head(name);
    return true;
  } catch (error) {
    if (isPicoError(error, "not_found")) return false;
    if (isPicoError(error, "gone")) return true;
    throw error;
  }
}

async function headOfDurableStream(context: DurableStreamsContext, exchange: Exchange, name: string): Promise<Response> {
  return durableStreamsAnswer(exchange, 200, null, streamHeaders(await context.service.head(name)));
}

/** Reads below `/_sys` are allowed; the other reserved paths stand for what is not there. */
function checkReserved(exchange: Exchange, name: string): void {
  if (SUBSCRIPTIONS.test(name)) {
    throw new PicoError("not_found", "/__ds is reserved for subscriptions, which this server does not have", { what: "path" });
  }
  const reserved = reservedSegmentOf(name);
  if (reserved === null) return;
  const isWrite = exchange.method === "PUT" || exchange.method === "POST" || exchange.method === "DELETE";
  if (isWrite) throw new PicoError("bad_request", `names below /${reserved} belong to the server`, { what: "path" });
  if (reserved !== "_sys") throw new PicoError("not_found", "no such stream");
}

function refuseRoot(exchange: Exchange): Response {
  switch (exchange.method) {
    case "GET":
    case "HEAD":
    case "DELETE":
      throw new PicoError("not_found", "/ is not a stream; this protocol has no list of streams");
    case "PUT":
    case "POST":
      throw new PicoError("bad_request", "/ is not a stream; name one in the path", { what: "path" });
    default:
      throw methodNotAllowed(exchange);
  }
}
