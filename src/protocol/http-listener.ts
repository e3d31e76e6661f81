/**
 * The HTTP side that both stream protocols share: one Elysia app without routes, whose first hook answers
 * everything, HTTP/1.1 and cleartext HTTP/2 on one port. Method, name and body are the handler's; nothing runs before it.
 */

import type { Server } from "bun";
import { Elysia } from "elysia";
import { type Clock, sleep } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import type { Exchange } from "./exchange.ts";
import type { ProtocolContext } from "./protocol-context.ts";

/**
 * Seconds that a connection may be idle, a stalled upload included. Live reads are exempt for as long
 * as they run (`keepAlive`), and have their own comments and end.
 */
export const IDLE_SECONDS = 60;

/** Between two looks at whether a listener is idle. */
const IDLE_LOOK_MS = 10;

/**
 * Bun answers a larger declared body by itself, without our error. Ours is refused from its
 * `Content-Length` or while counting, so Bun's own limit only has to stay out of the way.
 */
const BUN_BODY_BYTES_MAX = Number.MAX_SAFE_INTEGER;

export type RequestHandler = (request: Request, server: Server<unknown> | null) => MaybePromise<Response>;

export interface ListenOptions {
  readonly hostname: string;
  /** 0: any. */
  readonly port: number;
}

export interface HttpListener {
  /** Where it listens, as a URL without a trailing slash. Throws `settings` where it cannot. */
  listen(options: ListenOptions): { readonly address: string };
  /** Requests being answered. */
  readonly pendingRequests: number;
  /** Resolves when none is, or after `deadlineMs`; goes on accepting. */
  whenIdle(deadlineMs: number): Promise<void>;
  /**
   * Stops accepting, waits for running requests up to `deadlineMs`, then cuts what is left. Live reads
   * must have been told to end.
   */
  stop(deadlineMs: number): Promise<void>;
}

/** As much of an Elysia app as listening takes. */
export interface ListeningApp {
  listen(options: ListenOptions & { readonly reusePort: boolean }): unknown;
  readonly server: Server<unknown> | null;
}

/** `onFailure` answers what the handler threw: it should throw nothing. */
export function createHttpListener(
  { clock, idleSeconds = IDLE_SECONDS }: Pick<ProtocolContext, "clock" | "idleSeconds">,
  handle: RequestHandler,
  onFailure: (error: unknown) => Response,
): HttpListener {
  const app = new Elysia({
    serve: { idleTimeout: idleSeconds, maxRequestBodySize: BUN_BODY_BYTES_MAX, development: false, http2: true },
  })
    .onError(({ error }) => onFailure(error))
    // A route for all paths would cost two searches of the router and two more promises a request.
    .onRequest(({ request, server }) => handle(request, server));

  return listenerOf(app, clock);
}

/** The life of an app's socket. */
export function listenerOf(app: ListeningApp, clock: Clock): HttpListener {
  return {
    listen({ hostname, port }) {
      try {
        // Otherwise a second server would take half of the connections instead of being refused.
        app.listen({ hostname, port, reusePort: false });
      } catch (error) {
        throw new PicoError(
          "settings",
          `cannot listen on ${hostname}:${port}: ${describeBindError(error)}`,
          { hostname, port, isStartup: true },
          error,
        );
      }
      const bound = app.server;
      if (bound === null) throw new PicoError("settings", `cannot listen on ${hostname}:${port}`, { hostname, port, isStartup: true });
      const host = hostname.includes(":") ? `[${hostname}]` : hostname;
      return { address: `http://${host}:${bound.port}` };
    },
    get pendingRequests() {
      return app.server?.pendingRequests ?? 0;
    },
    async whenIdle(deadlineMs) {
      // Bun tells the number, and not when it changes.
      const endMs = clock.monotonicMs() + deadlineMs;
      while ((app.server?.pendingRequests ?? 0) > 0 && clock.monotonicMs() < endMs) await sleep(clock, IDLE_LOOK_MS);
    },
    async stop(deadlineMs) {
      const { server } = app;
      if (server === null) return;
      const drained = server.stop();
      const timeUp = new AbortController();
      await Promise.race([drained, sleep(clock, deadlineMs, timeUp.signal)]);
      timeUp.abort();
      await server.stop(true);
    },
  };
}

/** Exempts a live read from the listener's idle timer; what is returned puts it back, so that a dead peer is noticed afterwards. */
export function suspendIdleTimer(
  { idleSeconds = IDLE_SECONDS }: Pick<ProtocolContext, "idleSeconds">,
  { request, server }: Pick<Exchange, "request" | "server">,
): () => void {
  server?.timeout(request, 0);
  return () => server?.timeout(request, idleSeconds);
}

function describeBindError(error: unknown): string {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (code === "EADDRINUSE") return "the address is in use; stop what listens there, or give another port (pico doctor tells which flag)";
  if (code === "EACCES") return "no permission for this port";
  return error instanceof Error ? error.message : String(error);
}
