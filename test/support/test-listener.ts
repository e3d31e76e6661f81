/**
 * A stream service behind the real listeners of both protocols, on loopback. What a request's answer
 * depends on beside the service (clock, limits of live reads) can be set.
 */
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { PAGE_BYTES_DEFAULT, REQUEST_BYTES_DEFAULT } from "../../src/lib/limits.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { createDurableStreamsListener } from "../../src/protocol/durable-streams-listener.ts";
import { createPicoListener } from "../../src/protocol/pico-listener.ts";
import type { ProtocolContext, ProtocolSettings } from "../../src/protocol/protocol-context.ts";
import { RequestBodies } from "../../src/protocol/request-body.ts";
import type { StreamService } from "../../src/streams/stream-service.ts";
import { silentLog } from "./silent-log.ts";

export interface TestListeners {
  readonly pico: string;
  readonly durableStreams: string;
  stop(): Promise<void>;
}

export interface TestListenerOptions {
  readonly clock?: Clock;
  readonly settings?: Partial<ProtocolSettings>;
  readonly idleSeconds?: number;
  readonly bodies?: RequestBodies;
  readonly observers?: NonNullable<ProtocolContext["observers"]>;
}

export function testContext(
  service: StreamService,
  stopping: AbortSignal,
  { clock = systemClock, settings = {}, bodies = new RequestBodies(REQUEST_BYTES_DEFAULT), ...limits }: TestListenerOptions = {},
): ProtocolContext {
  return {
    service,
    router: { route: () => ({ kind: "here" }) },
    clock,
    random: systemRandom,
    log: silentLog,
    settings: {
      longPollSeconds: 25,
      sseSeconds: 55,
      pageBytes: PAGE_BYTES_DEFAULT,
      corsOrigins: [],
      allowedHosts: [],
      advertisedUrls: { pico: null, durableStreams: null, admin: null },
      ...settings,
    },
    ...limits,
    bodies,
    onInvariantBroken: () => undefined,
    stopping,
  };
}

export function listenTo(service: StreamService, options: TestListenerOptions = {}): TestListeners {
  const stopping = new AbortController();
  const context = testContext(service, stopping.signal, options);
  const listeners = [createPicoListener(context), createDurableStreamsListener(context)] as const;
  const [pico, durableStreams] = listeners.map((listener) => listener.listen({ hostname: "127.0.0.1", port: 0 }).address);
  return {
    pico: pico ?? "",
    durableStreams: durableStreams ?? "",
    async stop() {
      stopping.abort();
      await Promise.all(listeners.map((listener) => listener.stop(0)));
    },
  };
}
