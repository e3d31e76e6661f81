/**
 * What a request passes before a protocol looks at it: whether its page may talk to us, what stream it
 * names, and who serves that. Decided before the body is read and before the method is looked at (Pico 1.1).
 */
import { InvariantError } from "../lib/assert.ts";
import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import type { Route } from "../ownership/router.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import { toRefusal } from "./error-table.ts";
import { type Exchange, type HeaderRecord, openExchange } from "./exchange.ts";
import type { RequestHandler } from "./http-listener.ts";
import { judgeOrigin, makeOriginPolicy, type OriginPolicy, type OriginVerdict } from "./origin-policy.ts";
import type { ProtocolSettings } from "./protocol-context.ts";
import type { RequestObserver } from "./traffic.ts";

export function originPolicyOf(settings: ProtocolSettings): OriginPolicy {
  const { pico, durableStreams, admin } = settings.advertisedUrls;
  return makeOriginPolicy({
    originFlag: "--cors-origin",
    corsOrigins: settings.corsOrigins,
    allowedHosts: settings.allowedHosts,
    advertisedUrls: [pico, durableStreams, admin].filter((url) => url !== null),
  });
}

/** Judges the page that a request comes from, and notes in the exchange which origin may read the answer. */
export function judgeExchange(policy: OriginPolicy, exchange: Exchange): OriginVerdict {
  const origin = exchange.headers.origin;
  const fetchSite = exchange.headers["sec-fetch-site"];
  const isUnmarkedBrowser = isFromUnmarkedBrowser(exchange.headers);
  const verdict = judgeOrigin(policy, { origin, fetchSite, isUnmarkedBrowser, authority: exchange.authority });
  if (verdict.isAllowed) exchange.allowOrigin = verdict.allowOrigin;
  return verdict;
}

/**
 * Browsers send `Accept-Language` with every request: a page may change it, and cannot leave it out. Node's `fetch`
 * sends one too, with a `Sec-Fetch-Mode` that no page can add and that no browser sends to a plain HTTP name.
 */
function isFromUnmarkedBrowser(headers: HeaderRecord): boolean {
  return headers["accept-language"] !== undefined && headers["sec-fetch-mode"] === undefined;
}

/** Where a redirect leads: path and query as sent. */
export function redirectTarget(route: Route & { readonly kind: "redirect" }, exchange: Exchange): string {
  const query = exchange.rawQuery === "" ? "" : `?${exchange.rawQuery}`;
  return `${route.address}${exchange.rawPath}${query}`;
}

/** Nobody can serve the stream now. */
export function unavailableHere({ reason, retryAfterSeconds }: Route & { readonly kind: "unavailable" }): PicoError {
  return new PicoError("unavailable", reason, { retryAfterSeconds });
}

export function methodNotAllowed({ method }: Exchange): PicoError {
  return new PicoError("method_not_allowed", `method ${method} has no meaning here`);
}

/** Answers an exchange. */
export type ExchangeHandler = (exchange: Exchange) => MaybePromise<Response>;

/** A handler whose errors, thrown at once or later, `refuse` words. Broken invariants are told to whoever ends the node. */
export function refusing(
  handle: ExchangeHandler,
  refuse: (exchange: Exchange, error: unknown) => Response,
  onInvariantBroken?: (error: InvariantError) => void,
): ExchangeHandler {
  return (exchange) => {
    const refused = (error: unknown) => {
      exchange.error = error;
      if (error instanceof InvariantError) onInvariantBroken?.(error);
      return refuse(exchange, error);
    };
    try {
      const answer = handle(exchange);
      if (!(answer instanceof Promise)) return answer;
      return answer.then(undefined, refused);
    } catch (error) {
      return refused(error);
    }
  };
}

/** Tells `observer` of each answer of a handler that throws nothing. */
export function watched(
  handler: ExchangeHandler,
  clock: Pick<Clock, "monotonicMs">,
  observer: RequestObserver | undefined,
): ExchangeHandler {
  if (observer === undefined) return handler;
  return (exchange) => {
    const startedMs = clock.monotonicMs();
    const note = (answer: Response) => {
      tell(observer, exchange, answer, clock.monotonicMs() - startedMs);
      return answer;
    };
    const answer = handler(exchange);
    return answer instanceof Promise ? answer.then(note) : note(answer);
  };
}

/** The answer stands before anybody is told of it, and goes out whatever the observer does (FAULTS A5). */
function tell(observer: RequestObserver, exchange: Exchange, { status }: Response, durationMs: number): void {
  try {
    observer.answered(exchange.operation, status, durationMs);
    if (exchange.error !== undefined) observer.refused(toRefusal(exchange.error).errorCode);
  } catch {
    // A count is lost, which is all that an observer may cost.
  }
}

/** A handler of exchanges for a listener. */
export function withExchange(handler: ExchangeHandler): RequestHandler {
  return (request, server) => handler(openExchange(request, server));
}
