/** Holding back whatever leaves the store, for as long as somebody copies it. */
import { PicoError } from "../lib/errors.ts";
import { jsonAnswer } from "./admin-answer.ts";
import type { AdminRoute } from "./admin-route.ts";
import type { AdminSource } from "./admin-source.ts";
import { GcAnswer, GcOrder } from "./gc-schemas.ts";
import { refusalsOfOrder } from "./order-answers.ts";
import { JsonBodies } from "./request-json.ts";

export function gcRoute(source: AdminSource): AdminRoute {
  return {
    method: "GET",
    path: "/admin/gc",
    about: {
      tag: "Cluster",
      summary: "Whether removal is held back",
      description: "The hold that stands, as this node has applied it. What waits to be removed is in `gc` of `/admin/cluster`.",
      answers: { 200: { description: "What holds now", schema: GcAnswer, example: { heldUntilMs: null } } },
    },
    handle: (exchange) => jsonAnswer(exchange, 200, source.removalHold()),
  };
}

export function holdRemovalRoute(source: AdminSource): AdminRoute {
  const bodies = new JsonBodies(GcOrder);
  return {
    method: "POST",
    path: "/admin/gc",
    about: {
      tag: "Cluster",
      summary: "Hold removal back, or let it go on",
      description:
        "While removal is held no node of the cluster deletes anything from the store, the write-ahead log included, so that a copy of the bucket finds all that its database names. " +
        "A hold ends by itself; `gc` of `/admin/cluster` shows it.",
      body: {
        description: "How long, or the end of it",
        isRequired: true,
        contents: { "application/json": { schema: GcOrder, example: { holdSeconds: 3600 } } },
      },
      answers: {
        200: { description: "What holds now", schema: GcAnswer, example: { heldUntilMs: 1_760_000_003_600 } },
        ...refusalsOfOrder({
          badBody: 'the body is {"holdSeconds":0}: Expected union value',
          unavailable: "This node does not serve, the database does not answer, or a node of the cluster runs an older program",
        }),
      },
    },
    handle: async (exchange) => {
      const order = await bodies.read(exchange, null);
      if (order === null) {
        throw new PicoError("bad_request", 'the request has no body; send {"holdSeconds": 3600} or {"release": true}', { what: "body" });
      }
      return jsonAnswer(exchange, 200, await source.holdRemoval(order));
    },
  };
}
