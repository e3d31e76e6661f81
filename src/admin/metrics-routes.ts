/** The metrics, for Prometheus. */
import { Type as t } from "@sinclair/typebox";
import { adminAnswer } from "./admin-answer.ts";
import type { AdminRoute } from "./admin-route.ts";
import type { AdminSource } from "./admin-source.ts";

/** Of the text format that every version of Prometheus reads. */
const CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8";

const EXAMPLE = `# HELP pico_appended_records_total Records appended
# TYPE pico_appended_records_total counter
pico_appended_records_total 2048
`;

export function metricsRoute(source: AdminSource): AdminRoute {
  return {
    method: "GET",
    path: "/metrics",
    about: {
      tag: "Node",
      summary: "Metrics for Prometheus",
      description: "Counts, durations and states of this node, in the text format of Prometheus. As many whatever there is in streams.",
      answers: { 200: { description: "The metrics", contentType: CONTENT_TYPE, schema: t.String(), example: EXAMPLE } },
    },
    handle: async (exchange) => adminAnswer(exchange, 200, await source.metrics(), { "content-type": CONTENT_TYPE }),
  };
}
