/** The composition root: turns one settings object into a running node. */
import { PicoError } from "../lib/errors.ts";
import type { Logger } from "../lib/log.ts";
import type { Settings } from "./settings.ts";

export interface RunningNode {
  /** `host:port` as bound (IPv6 in brackets); null where there is no such listener. */
  readonly addresses: { readonly pico: string | null; readonly durableStreams: string | null; readonly admin: string | null };
  /** Stops gracefully, within `stopTimeoutSeconds`; `reason` is for the log. */
  stop(reason: string): Promise<void>;
  /** Resolves when the node has stopped by itself, with what made it stop. */
  readonly stopped: Promise<{ readonly error: unknown }>;
}

export type StartNode = (settings: Settings, log: Logger) => Promise<RunningNode>;

export const startNode: StartNode = async (settings) => {
  throw new PicoError("internal", `node ${settings.nodeId} has no parts yet`);
};
