/** The description of the listener by itself. */
import { Type as t } from "@sinclair/typebox";
import { adminAnswer } from "./admin-answer.ts";
import type { AdminRoute } from "./admin-route.ts";
import { openApiDocument } from "./openapi-document.ts";

const OpenApiAnswer = t.Object(
  { openapi: t.String({ description: "Version of OpenAPI" }), info: t.Object({}), paths: t.Object({}) },
  { $id: "OpenApi", description: "An OpenAPI document" },
);

/** `routes`: those of the listener, this one included; they never change. */
export function documentRoute(routes: () => readonly AdminRoute[], durableStreamsUrl: () => string | null): AdminRoute {
  // To make it takes milliseconds, in which the node does nothing else: many that ask at once must not hold up appends.
  let kept: { readonly url: string | null; readonly text: string } | null = null;
  const textFor = (url: string | null): string => {
    if (kept === null || kept.url !== url) kept = { url, text: JSON.stringify(openApiDocument(routes(), { durableStreamsUrl: url })) };
    return kept.text;
  };
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
    handle: (exchange) => adminAnswer(exchange, 200, textFor(durableStreamsUrl()), { "content-type": "application/json" }),
  };
}
