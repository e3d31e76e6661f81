/** Whether the process lives, and whether requests may be sent to it. */
import { Type as t } from "@sinclair/typebox";
import { adminAnswer, jsonAnswer } from "./admin-answer.ts";
import type { AdminRoute } from "./admin-route.ts";
import { ReadyAnswer } from "./admin-schemas.ts";
import type { AdminSource } from "./admin-source.ts";

const READY_EXAMPLE: typeof ReadyAnswer.static = {
  ready: true,
  serving: true,
  registered: true,
  appliedIndex: 12,
  nodeId: 1,
  phase: "serving",
  stalled: false,
  recovery: null,
};

/** Answers from the first moment of a start, however long the replay takes; a hung main loop answers nothing. */
export function healthRoute(): AdminRoute {
  return {
    method: "GET",
    path: "/health",
    about: {
      tag: "Health",
      summary: "Whether the process lives",
      description: "For a liveness probe. Answers during a start, a recovery and a graceful stop too: none of them is mended by a kill.",
      answers: { 200: { description: "It lives", contentType: "text/plain; charset=utf-8", schema: t.Literal("ok"), example: "ok" } },
    },
    handle: (exchange) => adminAnswer(exchange, 200, "ok", { "content-type": "text/plain; charset=utf-8" }),
  };
}

export function readyRoute(source: AdminSource): AdminRoute {
  return {
    method: "GET",
    path: "/ready",
    about: {
      tag: "Health",
      summary: "Whether requests may be sent to this node",
      description:
        "For a readiness probe and a load balancer. Not ready during a start, a recovery and from the begin of a graceful stop. " +
        "A WAL or a store that is away changes `stalled` and not the status: another node would have the same one, and this one still answers reads.",
      answers: {
        200: { description: "Ready", schema: ReadyAnswer, example: READY_EXAMPLE },
        503: {
          description: "Not ready; `phase` and `recovery` say how far it is",
          schema: ReadyAnswer,
          example: {
            ...READY_EXAMPLE,
            ready: false,
            registered: false,
            phase: "recovering",
            recovery: { step: "replay", segments: 812, bytes: 104_857_600 },
          },
        },
      },
    },
    handle: (exchange) => {
      const answer = source.ready();
      return jsonAnswer(exchange, answer.ready ? 200 : 503, answer);
    },
  };
}
