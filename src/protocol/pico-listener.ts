/**
 * The Pico protocol's listener: order of decisions (Pico 1.1) and dispatch by method. What a verb does is
 * in `pico-create.ts`, `pico-append.ts`, `pico-read.ts`, `pico-live.ts` and `pico-streams.ts`.
 */
import { PicoError } from "../lib/errors.ts";
import { WAITERS_MAX } from "../lib/limits.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import type { Exchange } from "./exchange.ts";
import { createHttpListener, type HttpListener } from "./http-listener.ts";
import { LiveReads } from "./live-reads.ts";
import { bodylessNotFound, picoError, picoOptions, picoRedirect } from "./pico-answer.ts";
import { appendToPico } from "./pico-append.ts";
import { createInPico } from "./pico-create.ts";
import { readFromPico } from "./pico-read.ts";
import { deleteFromPico, headOfPico, listPico } from "./pico-streams.ts";
import { refuseUnbuilt } from "./pico-unbuilt.ts";
import type { ProtocolContext } from "./protocol-context.ts";
import { exchangeHandler, judgeExchange, originPolicyOf, redirectTarget } from "./protocol-edge.ts";
import { parseStreamName, reservedSegmentOf } from "./stream-name.ts";

/** What the handlers of the protocol share. */
export interface PicoContext extends ProtocolContext {
  readonly liveReads: LiveReads;
}

export function createPicoListener(base: ProtocolContext): HttpListener {
  const context: PicoContext = { ...base, liveReads: new LiveReads(WAITERS_MAX, base.stopping) };
  const policy = originPolicyOf(base.settings);

  function handle(exchange: Exchange): MaybePromise<Response> {
    const verdict = judgeExchange(policy, exchange);
    if (exchange.method === "OPTIONS") return picoOptions(exchange);
    if (!verdict.isAllowed) throw new PicoError("forbidden_origin", verdict.reason);
    if (exchange.rawPath === "/") return handleRoot(context, exchange);
    const name = parseStreamName(exchange.rawPath);
    const route = base.router.route(name, "pico");
    if (route.kind === "redirect") return picoRedirect(exchange, redirectTarget(route, exchange));
    if (route.kind === "unavailable") {
      throw new PicoError("unavailable", route.reason, { retryAfterSeconds: route.retryAfterSeconds });
    }
    return dispatch(context, exchange, name);
  }

  return createHttpListener(
    base,
    exchangeHandler(handle, (exchange, error) => picoError(exchange, error, base.log)),
    (error) => {
      base.log.error("request failed before it reached the protocol", { error });
      return Response.json({ error: "internal", message: "the server failed; its log has the cause" }, { status: 500 });
    },
  );
}

function dispatch(context: PicoContext, exchange: Exchange, name: string): MaybePromise<Response> {
  const reserved = reservedSegmentOf(name);
  if (reserved !== null) refuseReserved(exchange, reserved);
  switch (exchange.method) {
    case "POST":
      return appendToPico(context, exchange, name);
    case "GET":
      return readFromPico(context, exchange, name);
    case "HEAD":
      return headOfPico(context, exchange, name);
    case "PUT":
      return createInPico(context, exchange, name);
    case "DELETE":
      return deleteFromPico(context, exchange, name);
    default:
      throw methodNotAllowed(exchange);
  }
}

/** `/` is no stream: it lists them (Pico 1.1). */
function handleRoot(context: PicoContext, exchange: Exchange): MaybePromise<Response> {
  switch (exchange.method) {
    case "GET":
      return listPico(context, exchange);
    case "PUT":
    case "POST":
      throw new PicoError("bad_request", "/ is not a stream; name one in the path", { what: "path" });
    case "HEAD":
    case "DELETE":
      throw bodylessNotFound();
    default:
      throw methodNotAllowed(exchange);
  }
}

/** Reads below `/_sys` are allowed; what the other reserved paths stand for is not there. */
function refuseReserved(exchange: Exchange, reserved: string): void {
  const isWrite = exchange.method === "PUT" || exchange.method === "POST" || exchange.method === "DELETE";
  if (reserved === "_sys") {
    if (isWrite) throw new PicoError("bad_request", "names below /_sys belong to the server", { what: "path" });
    return;
  }
  if (reserved === "_streams" && exchange.method === "PUT") {
    throw new PicoError("bad_request", "names below /_streams belong to the server", { what: "path" });
  }
  refuseUnbuilt(`/${reserved}`);
}

function methodNotAllowed(exchange: Exchange): PicoError {
  return new PicoError("method_not_allowed", `method ${exchange.method} has no meaning here`);
}
