/**
 * Which node serves a request: asked before the body is read and before the method is looked at.
 */

/** The listener a request came in by; a redirect leads to the owner's listener of the same protocol. */
export type ListenerKind = "pico" | "durableStreams";

export type Route =
  /** Owned here, by nobody, or unknown: this node serves it. */
  | { readonly kind: "here" }
  /** Owned by a node at this address (no trailing slash). */
  | { readonly kind: "redirect"; readonly address: string }
  /** Nobody can serve it now: in recovery, or its owner is not heard of. */
  | { readonly kind: "unavailable"; readonly retryAfterSeconds: number; readonly reason: string };

export interface Router {
  route(name: string, listener: ListenerKind): Route;
}
