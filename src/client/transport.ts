/**
 * HTTP as both protocols use it: one attempt with its redirects, and attempts in a row.
 *
 * - A redirect of a cluster leads to the owner of the stream. `307` and `308` are followed here and not by `fetch`,
 *   which drops the credential on the way to another origin; at most `CLIENT_HOPS_MAX` hops.
 * - Only requests that can be repeated without harm are repeated. To any other the answer that did not come is an
 *   `unknown_outcome`.
 */
import { CLIENT_ANSWER_BYTES_MAX, CLIENT_ERROR_BYTES_MAX, CLIENT_HOPS_MAX, CLIENT_SILENCE_MS, CLIENT_TIMEOUT_MS } from "../lib/limits.ts";
import { discard, readBeginning, readWhole } from "./answer-body.ts";
import type { ClientOptions } from "./client-options.ts";
import { type ClientSeams, type Fetch, globalSeams } from "./client-seams.ts";
import { Deadline } from "./deadline.ts";
import { RetryBudget, type RetryOptions } from "./retry.ts";
import { StreamError } from "./stream-error.ts";

export interface HttpRequest {
  readonly method: "GET" | "HEAD" | "PUT" | "POST" | "DELETE";
  /** Below the client's address, with its query. */
  readonly path: string;
  readonly headers?: Readonly<Record<string, string | undefined>>;
  readonly body?: Uint8Array<ArrayBuffer> | undefined;
  /** Repeating it does no harm, whatever became of it before. */
  readonly isRepeatable: boolean;
  readonly signal?: AbortSignal | undefined;
}

/** A success, read whole. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Uint8Array;
}

/** A success whose body is still to come. */
export interface OpenAnswer {
  readonly headers: Headers;
  /** The next bytes; null at the end. Rejects if the connection breaks or is silent for too long. */
  read(): Promise<Uint8Array | null>;
  /** Ends the connection. */
  close(): void;
}

/** An answer that is no success, for the protocol to make an error of. */
export interface Refusal {
  readonly request: HttpRequest;
  readonly status: number;
  readonly headers: Headers;
  /** The beginning of its body. */
  readonly text: string;
  /** What `Retry-After` asks for. */
  readonly retryAfterMs: number | undefined;
}

const REDIRECTS: readonly number[] = [307, 308];
/** Behind a redirect from one foreign origin to another, a browser says that a page comes from the origin `null` (Fetch standard). */
const REDIRECT_ADVICE = "behind a redirect, which a web page may follow only to a server with --cors-origin '*'";

export class Transport {
  /** Without a slash at its end. */
  readonly #base: string;
  /** Path of the base: what stands before every name. */
  readonly prefix: string;
  readonly seams: ClientSeams;
  readonly retry: RetryOptions;
  readonly #fetch: Fetch;
  readonly #token: string | null;
  readonly #timeoutMs: number;
  readonly #silenceMs: number;
  readonly #toError: (refusal: Refusal) => StreamError;

  constructor(options: ClientOptions, toError: (refusal: Refusal) => StreamError) {
    const url = parseAddress(options.url);
    this.prefix = url.pathname.replace(/\/+$/, "");
    this.#base = url.origin + this.prefix;
    this.seams = { ...globalSeams, ...options.seams };
    this.retry = options.retry ?? {};
    this.#fetch = this.seams.fetch;
    this.#token = options.token ?? null;
    this.#timeoutMs = options.timeoutMs ?? CLIENT_TIMEOUT_MS;
    this.#silenceMs = options.silenceMs ?? CLIENT_SILENCE_MS;
    this.#toError = toError;
  }

  /** Attempts until one succeeds, if the request is repeatable. */
  request(request: HttpRequest): Promise<HttpAnswer> {
    return request.isRepeatable ? this.repeat(() => this.attempt(request), request.signal) : this.attempt(request);
  }

  /** Attempts until one succeeds. */
  async repeat<T>(attempt: () => Promise<T>, signal: AbortSignal | undefined): Promise<T> {
    const budget = this.budget();
    for (;;) {
      try {
        return await attempt();
      } catch (error) {
        await budget.again(error, signal);
      }
    }
  }

  budget(options: RetryOptions = {}): RetryBudget {
    return new RetryBudget({ ...this.retry, ...options }, this.seams);
  }

  /** One attempt. Throws `StreamError`, or the reason of the request's signal. */
  async attempt(request: HttpRequest): Promise<HttpAnswer> {
    const deadline = new Deadline(this.seams.clock, request.signal);
    deadline.set(this.#timeoutMs);
    try {
      const response = await this.#send(request, deadline.signal);
      const body = await readWhole(response, CLIENT_ANSWER_BYTES_MAX);
      return { status: response.status, headers: response.headers, body };
    } catch (error) {
      throw this.#failure(error, request, deadline);
    } finally {
      deadline.end();
    }
  }

  /** One attempt whose answer is read as it comes. */
  async open(request: HttpRequest): Promise<OpenAnswer> {
    const deadline = new Deadline(this.seams.clock, request.signal);
    deadline.set(this.#timeoutMs);
    try {
      const response = await this.#send(request, deadline.signal);
      const reader = response.body?.getReader();
      return {
        headers: response.headers,
        read: async () => {
          deadline.set(this.#silenceMs);
          try {
            const result = await reader?.read();
            return result?.value ?? null;
          } catch (error) {
            throw this.#failure(error, request, deadline);
          }
        },
        close: () => deadline.end(true),
      };
    } catch (error) {
      deadline.end(true);
      throw this.#failure(error, request, deadline);
    }
  }

  /** The answer behind all redirects; throws if it is no success. */
  async #send(request: HttpRequest, signal: AbortSignal): Promise<Response> {
    const hops: string[] = [];
    let url = this.#base + request.path;
    for (;;) {
      const response = await this.#sendTo(url, request, signal);
      const next = this.#nextHop(response, url, hops);
      if (next === null) return this.#checked(response, request);
      discard(response);
      hops.push(url);
      if (hops.length > CLIENT_HOPS_MAX) throw redirectError(`more than ${CLIENT_HOPS_MAX} redirects`, [...hops, next]);
      url = next;
    }
  }

  async #sendTo(url: string, request: HttpRequest, signal: AbortSignal): Promise<Response> {
    const headers = this.#headers(request);
    const { method, body } = request;
    const init = { method, headers, signal, ...(body === undefined ? {} : { body }) };
    const response = await this.#fetch(url, { ...init, redirect: "manual" });
    if (response.type !== "opaqueredirect") return response;
    // A browser shows nothing of a redirect that it does not follow; nothing was done by it, so it may be sent again.
    return this.#fetch(url, { ...init, redirect: "follow" }).catch((error: unknown) => {
      throw new Error(`${error instanceof Error ? error.message : String(error)}, ${REDIRECT_ADVICE}`, { cause: error });
    });
  }

  #headers(request: HttpRequest): Headers {
    const headers = new Headers();
    try {
      for (const [name, value] of Object.entries(request.headers ?? {})) if (value !== undefined) headers.set(name, value);
      if (this.#token !== null) headers.set("authorization", `Bearer ${this.#token}`);
    } catch (error) {
      throw new StreamError("bad_request", `a header of ${request.method} ${request.path} cannot be sent`, { cause: error });
    }
    return headers;
  }

  /** Where to send the request next; null: the answer is final. */
  #nextHop(response: Response, url: string, hops: readonly string[]): string | null {
    // Followed by the browser, which kept the credential from another origin: it is sent there by us.
    if (response.redirected && response.status === 401 && this.#token !== null && response.url !== url) {
      return this.#checkHop(response.url, url, hops);
    }
    if (!REDIRECTS.includes(response.status)) return null;
    const location = response.headers.get("location");
    if (location === null) throw redirectError(`a ${response.status} of ${url} without Location`, hops);
    return this.#checkHop(location, url, hops);
  }

  #checkHop(location: string, url: string, hops: readonly string[]): string {
    const next = URL.canParse(location, url) ? new URL(location, url) : null;
    const isHttp = next !== null && (next.protocol === "http:" || next.protocol === "https:");
    if (next === null || !isHttp || next.username !== "" || next.password !== "") {
      throw redirectError(`a redirect of ${url} to ${location}, which is no address of a server`, hops);
    }
    if (this.#token !== null && url.startsWith("https:") && next.protocol === "http:") {
      throw redirectError(`a redirect of ${url} to ${next.href} would send the token in clear text`, hops);
    }
    return next.href;
  }

  async #checked(response: Response, request: HttpRequest): Promise<Response> {
    if (response.ok) return response;
    const text = await readBeginning(response, CLIENT_ERROR_BYTES_MAX);
    const retryAfterMs = parseRetryAfter(response.headers.get("retry-after"), this.seams.clock.nowMs());
    throw this.#toError({ request, status: response.status, headers: response.headers, text, retryAfterMs });
  }

  /** What `fetch` or a body threw, as our error; the caller's own abort stays what it is. */
  #failure(error: unknown, request: HttpRequest, deadline: Deadline): unknown {
    if (request.signal?.aborted) return request.signal.reason;
    if (error instanceof StreamError) return error;
    const what = `${request.method} ${this.#base}${request.path}`;
    const how = deadline.isExpired ? "no answer in time" : error instanceof Error ? error.message : String(error);
    if (request.isRepeatable || isNeverSent(error)) {
      const isOutcomeUnknown = !isRead(request) && !isNeverSent(error);
      return new StreamError("transport", `${what}: ${how}`, { isRetryable: true, isOutcomeUnknown, cause: error });
    }
    const advice = "whether it took effect is not known; use a producer where a repeat must do no harm";
    return new StreamError("unknown_outcome", `${what}: ${how}; ${advice}`, { isOutcomeUnknown: true, cause: error });
  }
}

export function isRead(request: HttpRequest): boolean {
  return request.method === "GET" || request.method === "HEAD";
}

function parseAddress(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && (url.protocol === "http:" || url.protocol === "https:") && url.username === "" && url.search === "") return url;
  throw new StreamError("bad_request", `${JSON.stringify(text)} is no address of a server, as http://127.0.0.1:4437 is one`);
}

function redirectError(message: string, hops: readonly string[]): StreamError {
  return new StreamError("redirect", hops.length === 0 ? message : `${message} (by way of ${hops.join(", ")})`, { facts: { hops } });
}

/** The connection was refused, so that nothing was sent: Node and Bun tell, browsers do not. */
function isNeverSent(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const cause: unknown = error.cause;
  return codeOf(error) === "ECONNREFUSED" || codeOf(cause) === "ECONNREFUSED";
}

function codeOf(error: unknown): unknown {
  return typeof error === "object" && error !== null && "code" in error ? error.code : null;
}

/** Seconds, or a date (RFC 9110, 10.2.3); undefined where it is absent or neither. */
function parseRetryAfter(text: string | null, nowMs: number): number | undefined {
  if (text === null) return undefined;
  if (/^\d{1,9}$/.test(text.trim())) return Number(text) * 1000;
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}
