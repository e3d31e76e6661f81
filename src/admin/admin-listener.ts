/**
 * The operators' listener: health, readiness, the admin API, the dashboard, and the Pico protocol for its pages.
 * Order of decisions: `/pico`, whether the page may talk to us, the route of the path, the files. None of the
 * API's answers opens a stream or asks the database, so it answers from the first moment of a start, however
 * long the replay takes (contract, admin.md 1 and 2).
 */
import type { Exchange } from "../protocol/exchange.ts";
import { createHttpListener, type HttpListener } from "../protocol/http-listener.ts";
import { judgeExchange, refusing, withExchange } from "../protocol/protocol-edge.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import { errorAnswer, otherMethod, preflightAnswer, refusalAnswer } from "./admin-answer.ts";
import type { AdminContext } from "./admin-context.ts";
import { adminRoutes } from "./admin-routes.ts";
import { isBelowPico } from "./pico-mount.ts";
import { RouteTable } from "./route-table.ts";
import { StaticFiles } from "./static-files.ts";

export function createAdminListener(context: AdminContext): HttpListener {
  const { policy, log, pico } = context;
  const routes = new RouteTable(adminRoutes(context));
  const files = new StaticFiles(context.files);

  function handle(exchange: Exchange): MaybePromise<Response> {
    if (isBelowPico(exchange.rawPath)) return pico.answer(exchange);
    const verdict = judgeExchange(policy, exchange);
    if (exchange.method === "OPTIONS") return preflightAnswer(exchange);
    if (!verdict.isAllowed) {
      const page = isOpenedByLink(exchange) ? files.answer(exchange) : null;
      return page ?? errorAnswer(exchange, 403, `refused: the ${verdict.reason}`);
    }
    const { methods, rest } = routes.find(exchange.rawPath);
    const route = methods.get(exchange.method);
    if (route !== undefined) return route.handle(exchange, rest);
    if (methods.size > 0) return otherMethod(exchange, methods.keys());
    return files.answer(exchange) ?? errorAnswer(exchange, 404, `there is nothing at ${exchange.rawPath}`);
  }

  return createHttpListener(context, withExchange(refusing(handle, (exchange, error) => refusalAnswer(exchange, error, log))), (error) => {
    log.error("an admin request failed before it was looked at", { error });
    return Response.json({ error: "the server failed; its log has the cause" }, { status: 500 });
  });
}

/**
 * A link on any page may open the dashboard in a tab of its own: the files are the same for everybody, and the page
 * that linked can neither read nor frame them.
 */
function isOpenedByLink({ method, headers }: Exchange): boolean {
  return method === "GET" && headers["sec-fetch-mode"] === "navigate" && headers["sec-fetch-dest"] === "document";
}
