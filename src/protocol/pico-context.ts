/** What the handlers of the Pico protocol share. */
import { WAITERS_MAX } from "../lib/limits.ts";
import { LiveReads } from "./live-reads.ts";
import type { ProtocolContext } from "./protocol-context.ts";

export interface PicoContext extends ProtocolContext {
  readonly liveReads: LiveReads;
}

/** A context with live reads of its own, which end when the node begins to stop. */
export function openPicoContext(base: ProtocolContext): PicoContext {
  return { ...base, liveReads: new LiveReads(WAITERS_MAX, base.stopping, base.observers?.pico) };
}
