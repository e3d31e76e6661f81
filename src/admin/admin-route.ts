/** A route of the admin listener: what it answers, and what the API description says of it. */
import type { Exchange } from "../protocol/exchange.ts";
import type { MaybePromise } from "../streams/stream-service.ts";
import type { OperationAbout } from "./operation-about.ts";

export interface AdminRoute {
  /** `HEAD` is answered like `GET`, without the body. */
  readonly method: "GET" | "PUT" | "POST" | "DELETE";
  /**
   * As in OpenAPI: `/admin/nodes`, or ending in one parameter, `/admin/streams/{name}`, which takes the whole
   * rest of the path, slashes included.
   */
  readonly path: string;
  readonly about: OperationAbout;
  /** `rest`: what stands for the parameter, as sent, escapes and all; "" for a route without one. What it throws is a 500. */
  handle(exchange: Exchange, rest: string): MaybePromise<Response>;
}
