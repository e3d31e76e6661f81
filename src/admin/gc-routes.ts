/** Holding back whatever leaves the store, for as long as somebody copies it. */
import { PicoError } from "../lib/errors.ts";
import { jsonAnswer } from "./admin-answer.ts";
import type { AdminRoute } from "./admin-route.ts";
import { ErrorAnswer } from "./admin-schemas.ts";
import type { AdminSource } from "./admin-source.ts";
import { GcAnswer, GcOrder } from "./gc-schemas.ts";
import { JsonBodies } from "./request-json.ts";
import { RETRY_AFTER } from "./stream-operation.ts";

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
        400: {
          description: "The body is not JSON of the schema",
          schema: ErrorAnswer,
          example: { error: 'the body is {"holdSeconds":0}: Expected union value' },
        },
        413: {
          description: "The body is too large",
          schema: ErrorAnswer,
          example: { error: "the request body has 70000 bytes, the limit is 65536" },
        },
        503: {
          description: "This node does not serve, the database does not answer, or a node of the cluster runs an older program",
          schema: ErrorAnswer,
          example: { error: "this node is starting; try again" },
          headers: RETRY_AFTER,
        },
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
