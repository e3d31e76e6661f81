/**
 * The Pico protocol over one request: order of decisions (Pico 1.1) and dispatch by method. What a verb does
 * is in `pico-create.ts`, `pico-append.ts`, `pico-read.ts`, `pico-live.ts` and `pico-streams.ts`. Served by
 * the protocol's own listener, and below a path of the admin listener.
 */
import { PicoError } from "../lib/errors.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import type { Exchange } from "./exchange.ts";
import type { OriginPolicy } from "./origin-policy.ts";
import { bodylessNotFound, picoError, picoOptions, picoRedirect } from "./pico-answer.ts";
import { appendToPico } from "./pico-append.ts";
import type { PicoContext } from "./pico-context.ts";
import { createInPico } from "./pico-create.ts";
import { readFromPico } from "./pico-read.ts";
import { deleteFromPico, headOfPico, listPico } from "./pico-streams.ts";
import { refuseUnbuilt } from "./pico-unbuilt.ts";
import type { ProtocolContext } from "./protocol-context.ts";
import { type ExchangeHandler, judgeExchange, methodNotAllowed, redirectTarget, refusing, unavailableHere } from "./protocol-edge.ts";
import { parseStreamName, reservedSegmentOf } from "./stream-name.ts";

export interface PicoHandlerParts {
  /** Which pages may ask. */
  readonly policy: OriginPolicy;
  readonly log: ProtocolContext["log"];
  /** Null while there is nothing to serve: `unavailable`. */
  readonly context: () => PicoContext | null;
  readonly onInvariantBroken: ProtocolContext["onInvariantBroken"];
}

/** Answers everything; throws nothing. */
export function createPicoHandler({ policy, log, context, onInvariantBroken }: PicoHandlerParts): ExchangeHandler {
  function handle(exchange: Exchange): MaybePromise<Response> {
    const verdict = judgeExchange(policy, exchange);
    if (exchange.method === "OPTIONS") return picoOptions(exchange);
    if (!verdict.isAllowed) throw new PicoError("forbidden_origin", verdict.reason);
    const ready = context();
    if (ready === null) throw new PicoError("unavailable", "this node is starting or stopping; try again", { retryAfterSeconds: 1 });
    if (exchange.rawPath === "/") return handleRoot(ready, exchange);
    const name = parseStreamName(exchange.rawPath);
    const route = ready.router.route(name, "pico");
    if (route.kind === "redirect") return picoRedirect(exchange, redirectTarget(route, exchange));
    if (route.kind === "unavailable") throw unavailableHere(route);
    return dispatch(ready, exchange, name);
  }

  return refusing(handle, (exchange, error) => picoError(exchange, error, log), onInvariantBroken);
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
