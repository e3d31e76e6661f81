/** An admin listener on loopback. What a test does not set is not there: asking for it is a failure of the request. */
import type { AdminContext } from "../../src/admin/admin-context.ts";
import { createAdminListener } from "../../src/admin/admin-listener.ts";
import type { AdminSource } from "../../src/admin/admin-source.ts";
import { PicoMount } from "../../src/admin/pico-mount.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { Logger } from "../../src/lib/log.ts";
import type { HttpListener } from "../../src/protocol/http-listener.ts";
import { makeOriginPolicy } from "../../src/protocol/origin-policy.ts";
import type { RequestObserver } from "../../src/protocol/traffic.ts";
import type { ShippedFile } from "../../src/storage/shipped-files.ts";
import { silentLog } from "./silent-log.ts";

export interface TestAdminOptions {
  readonly source?: Partial<AdminSource>;
  readonly files?: readonly ShippedFile[];
  readonly corsOrigins?: readonly string[];
  readonly log?: Logger;
  /** Of the Pico protocol. */
  readonly observer?: RequestObserver;
}

export interface TestAdmin {
  readonly listener: HttpListener;
  readonly address: string;
  /** Not yet open. */
  readonly pico: PicoMount;
}

export function openAdmin(options: TestAdminOptions = {}): TestAdmin {
  const context = testAdminContext(options);
  const listener = createAdminListener(context);
  return { listener, address: listener.listen({ hostname: "127.0.0.1", port: 0 }).address, pico: context.pico };
}

export function testAdminContext({
  source = {},
  files = [],
  corsOrigins = [],
  log = silentLog,
  observer,
}: TestAdminOptions = {}): AdminContext {
  const policy = makeOriginPolicy({ originFlag: "--admin-cors-origin", corsOrigins, allowedHosts: [], advertisedUrls: [] });
  const missing: AdminSource = {
    ready: notThere,
    cluster: notThere,
    nodes: notThere,
    stream: notThere,
    activity: notThere,
    scrub: notThere,
    startScrub: notThere,
    holdRemoval: notThere,
    removalHold: notThere,
    metrics: notThere,
    durableStreamsUrl: () => null,
  };
  const pico = new PicoMount({ policy, log, clock: systemClock, observer });
  return { source: { ...missing, ...source }, policy, log, clock: systemClock, files, pico };
}

function notThere(): never {
  throw new Error("the test did not say what the node tells here");
}
