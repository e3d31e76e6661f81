/** What the admin listener is made of. */
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { OriginPolicy } from "../protocol/origin-policy.ts";
import type { ShippedFile } from "../storage/shipped-files.ts";
import type { AdminSource } from "./admin-source.ts";
import type { PicoMount } from "./pico-mount.ts";

export interface AdminContext {
  readonly source: AdminSource;
  readonly policy: OriginPolicy;
  readonly log: Logger;
  readonly clock: Clock;
  readonly pico: PicoMount;
  /** The dashboard. */
  readonly files: readonly ShippedFile[];
}
