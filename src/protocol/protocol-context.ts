/** What a protocol listener is made of. */
import type { InvariantError } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import type { Router } from "../ownership/router.ts";
import type { StreamService } from "../streams/stream-service.ts";
import type { RequestBodies } from "./request-body.ts";
import type { TrafficObserver } from "./traffic.ts";

export interface ProtocolSettings {
  /** Long polls without data are answered after this. @default 25 */
  readonly longPollSeconds: number;
  /** SSE answers end after this, so that caches and proxies can share them. @default 55 */
  readonly sseSeconds: number;
  /** Default page, and chunk of live reads: larger ones cost fewer requests, and more memory each. @default 64 KiB */
  readonly pageBytes: number;
  /** Origins of pages that may use the listener beside loopback ones; `*`: all. */
  readonly corsOrigins: readonly string[];
  /** Hosts that such pages may name beside loopback ones and those advertised; `*`: all. */
  readonly allowedHosts: readonly string[];
  /** Where clients reach the node's listeners; null where there is none. */
  readonly advertisedUrls: {
    readonly pico: string | null;
    readonly durableStreams: string | null;
    readonly admin: string | null;
  };
}

export interface ProtocolContext {
  readonly service: StreamService;
  readonly router: Router;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Pick<Logger, "error">;
  readonly settings: ProtocolSettings;
  /** Of all listeners of the node. */
  readonly bodies: RequestBodies;
  /** Seconds that a connection may be idle, live reads apart. @default 60 */
  readonly idleSeconds?: number;
  /** Is told of each answer. @default nobody is told */
  readonly observers?: Readonly<Record<"pico" | "durableStreams", TrafficObserver>>;
  /** A request found state that cannot be trusted: the node ends. */
  readonly onInvariantBroken: (error: InvariantError) => void;
  /** Aborts when the node begins to stop: live reads end cleanly. */
  readonly stopping: AbortSignal;
}
