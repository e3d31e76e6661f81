/**
 * What a request passes before a protocol looks at it: whether its page may talk to us, what stream it
 * names, and who serves that. Decided before the body is read and before the method is looked at (Pico 1.1).
 */
import type { Route } from "../ownership/router.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import { type Exchange, openExchange } from "./exchange.ts";
import type { RequestHandler } from "./http-listener.ts";
import { judgeOrigin, makeOriginPolicy, type OriginPolicy, type OriginVerdict } from "./origin-policy.ts";
import type { ProtocolSettings } from "./protocol-context.ts";

export function originPolicyOf(settings: ProtocolSettings): OriginPolicy {
  const { pico, durableStreams, admin } = settings.advertisedUrls;
  return makeOriginPolicy({
    corsOrigins: settings.corsOrigins,
    allowedHosts: settings.allowedHosts,
    advertisedUrls: [pico, durableStreams, admin].filter((url) => url !== null),
  });
}

/** Judges the page that a request comes from, and notes in the exchange which origin may read the answer. */
export function judgeExchange(policy: OriginPolicy, exchange: Exchange): OriginVerdict {
  const origin = exchange.headers.origin;
  const fetchSite = exchange.headers["sec-fetch-site"];
  const verdict = judgeOrigin(policy, { origin, fetchSite, authority: exchange.authority });
  if (verdict.isAllowed) exchange.allowOrigin = verdict.allowOrigin;
  return verdict;
}

/** Where a redirect leads: path and query as sent. */
export function redirectTarget(route: Route & { readonly kind: "redirect" }, exchange: Exchange): string {
  const query = exchange.rawQuery === "" ? "" : `?${exchange.rawQuery}`;
  return `${route.address}${exchange.rawPath}${query}`;
}

/** Answers an exchange, whatever happens. */
export type ExchangeHandler = (exchange: Exchange) => MaybePromise<Response>;

/** A handler whose errors, thrown at once or later, `refuse` words. */
export function refusing(handle: ExchangeHandler, refuse: (exchange: Exchange, error: unknown) => Response): ExchangeHandler {
  return (exchange) => {
    try {
      const answer = handle(exchange);
      if (!(answer instanceof Promise)) return answer;
      return answer.then(undefined, (error: unknown) => refuse(exchange, error));
    } catch (error) {
      return refuse(exchange, error);
    }
  };
}

/** A handler of exchanges for a listener. */
export function withExchange(handler: ExchangeHandler): RequestHandler {
  return (request, server) => handler(openExchange(request, server));
}
