/** What a client is told once. */
import type { ClientSeams } from "./client-seams.ts";
import type { RetryOptions } from "./retry.ts";

export interface ClientOptions {
  /** Address of a stream listener, `http` or `https`, with a path prefix if a proxy puts one before the names. */
  readonly url: string;
  /**
   * Sent as `Authorization: Bearer` with every request, and again to each address that a `307` or `308` of the
   * server leads to. Give it only to clients of servers whose redirects you trust. Never sent from https on to http.
   */
  readonly token?: string;
  /** One attempt of a request, until its whole answer; also of a long poll, which a server ends after 25 s. In milliseconds. @default 65000 */
  readonly timeoutMs?: number;
  /** An event stream without a byte for this long is taken for broken. In milliseconds. @default 45000 */
  readonly silenceMs?: number;
  /** Of requests that can be repeated without harm: all but appends without a producer. */
  readonly retry?: RetryOptions;
  /** Network, clock and chance, where the globals are not what is wanted. */
  readonly seams?: Partial<ClientSeams>;
}

/** Of a single call. */
export interface CallOptions {
  /** Ends the call, which then rejects with the signal's reason. What was sent may have taken effect. */
  readonly signal?: AbortSignal;
}
