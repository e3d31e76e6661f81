/**
 * Finds the route of a path. Searched by us, as in the stream listeners: the framework's own search needs a
 * long host name for a wildcard, and hands it over half decoded.
 */
import type { AdminRoute } from "./admin-route.ts";

export interface FoundRoute {
  /** By method; empty where the path is nobody's. */
  readonly methods: ReadonlyMap<string, AdminRoute>;
  /** What stands for the parameter of the path, as sent. */
  readonly rest: string;
}

type Methods = Map<string, AdminRoute>;

const NOTHING: FoundRoute = { methods: new Map(), rest: "" };

export class RouteTable {
  readonly #exact = new Map<string, Methods>();
  /** Routes with a parameter, by what stands before it. */
  readonly #prefixes = new Map<string, Methods>();

  constructor(routes: readonly AdminRoute[]) {
    for (const route of routes) {
      const parameter = route.path.indexOf("{");
      const [table, key] = parameter < 0 ? [this.#exact, route.path] : [this.#prefixes, route.path.slice(0, parameter)];
      const methods: Methods = table.get(key) ?? new Map();
      table.set(key, methods);
      methods.set(route.method, route);
      if (route.method === "GET") methods.set("HEAD", route);
    }
  }

  find(path: string): FoundRoute {
    const exact = this.#exact.get(path);
    if (exact !== undefined) return { methods: exact, rest: "" };
    for (const [prefix, methods] of this.#prefixes) {
      if (path.startsWith(prefix) && path.length > prefix.length) return { methods, rest: path.slice(prefix.length) };
    }
    return NOTHING;
  }
}
