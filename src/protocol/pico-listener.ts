/** The Pico protocol on a listener of its own. */
import { createHttpListener, type HttpListener } from "./http-listener.ts";
import { openPicoContext } from "./pico-context.ts";
import { createPicoHandler } from "./pico-handler.ts";
import type { ProtocolContext } from "./protocol-context.ts";
import { originPolicyOf, watched, withExchange } from "./protocol-edge.ts";

export function createPicoListener(base: ProtocolContext): HttpListener {
  const context = openPicoContext(base);
  const { settings, log, onInvariantBroken } = base;
  const handler = createPicoHandler({ policy: originPolicyOf(settings), log, context: () => context, onInvariantBroken });
  return createHttpListener(base, withExchange(watched(handler, base.clock, base.observers?.pico)), (error) => {
    log.error("request failed before it reached the protocol", { error });
    return Response.json({ error: "internal", message: "the server failed; its log has the cause" }, { status: 500 });
  });
}
