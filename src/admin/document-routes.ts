/** The description of the listener by itself. */
import { Type as t } from "@sinclair/typebox";
import { jsonAnswer } from "./admin-answer.ts";
import type { AdminRoute } from "./admin-route.ts";
import { openApiDocument } from "./openapi-document.ts";

const OpenApiAnswer = t.Object(
  { openapi: t.String({ description: "Version of OpenAPI" }), info: t.Object({}), paths: t.Object({}) },
  { $id: "OpenApi", description: "An OpenAPI document" },
);

/** `routes`: those of the listener, this one included. */
export function documentRoute(routes: () => readonly AdminRoute[], durableStreamsUrl: () => string | null): AdminRoute {
  return {
    method: "GET",
    path: "/openapi.json",
    about: {
      tag: "Description",
      summary: "This description",
      description: "Every route of this listener, and the streams of both protocols, as OpenAPI 3.1. Shown by the explorer at `/docs`.",
      answers: {
        200: {
          description: "An OpenAPI document",
          schema: OpenApiAnswer,
          example: { openapi: "3.1.0", info: { title: "PicoMQ", version: "0.1.0" }, paths: {} },
        },
      },
    },
    handle: (exchange) => jsonAnswer(exchange, 200, openApiDocument(routes(), { durableStreamsUrl: durableStreamsUrl() })),
  };
}
