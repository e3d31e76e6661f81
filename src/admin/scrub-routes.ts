/** Comparisons of store and metadata: to begin one, and to see how far it is and what it found. */
import type { Static } from "@sinclair/typebox";
import { SCRUB_AGE_SECONDS_DEFAULT } from "../lib/limits.ts";
import type { Exchange } from "../protocol/exchange.ts";
import { errorAnswer, jsonAnswer } from "./admin-answer.ts";
import type { AdminRoute } from "./admin-route.ts";
import type { AdminSource } from "./admin-source.ts";
import { refusal, refusalsOfOrder } from "./order-answers.ts";
import { JsonBodies } from "./request-json.ts";
import { ScrubAnswer, ScrubOrder, type ScrubRunTold } from "./scrub-schemas.ts";

const UNDER_WAY = "a scrub is under way on this node; GET /admin/scrub tells how far it is";
const NONE = { count: 0, items: [] };
const RUN_EXAMPLE: ScrubRunTold = {
  by: "operator",
  verify: true,
  deleteOrphans: false,
  minAgeSeconds: SCRUB_AGE_SECONDS_DEFAULT,
  startedAtMs: 1_760_000_000_000,
  endedAtMs: 1_760_000_004_000,
  outcome: "sound",
  error: null,
  progress: { phase: "done", done: 0, total: null },
  keys: 5,
  bytes: 4_194_560,
  liveObjects: 3,
  verified: { count: 3, bytes: 4_194_304 },
  missing: NONE,
  wrongSize: NONE,
  damaged: NONE,
  orphans: {
    count: 1,
    items: [{ key: "picomq/data/9f1c0a7d52e4b386/7", bytes: 200, modifiedAtMs: 1_759_900_000_000, reason: "removed_object" }],
  },
  orphanBytes: 200,
  unexplained: NONE,
  deleted: { count: 0, bytes: 0 },
  tooYoung: 0,
  refused: NONE,
  nothingDeletedBecause: null,
};
const DONE_EXAMPLE: Static<typeof ScrubAnswer> = { running: false, intervalSeconds: 86_400, run: RUN_EXAMPLE };
const BEGUN_EXAMPLE: Static<typeof ScrubAnswer> = {
  running: true,
  intervalSeconds: 86_400,
  run: {
    ...RUN_EXAMPLE,
    endedAtMs: null,
    outcome: "running",
    progress: { phase: "list", done: 0, total: null },
    keys: 0,
    bytes: 0,
    liveObjects: 0,
    verified: { count: 0, bytes: 0 },
    orphans: NONE,
    orphanBytes: 0,
  },
};

export function scrubRoute(source: AdminSource): AdminRoute {
  return {
    method: "GET",
    path: "/admin/scrub",
    about: {
      tag: "Cluster",
      summary: "The last scrub of this node",
      description:
        "How far the comparison of store and metadata is that runs on this node, or what the last one found. Lists have the first hundred, and how many there are.",
      answers: { 200: { description: "The scrub; `run` is null where there was none", schema: ScrubAnswer, example: DONE_EXAMPLE } },
    },
    handle: (exchange) => jsonAnswer(exchange, 200, source.scrub()),
  };
}

export function startScrubRoute(source: AdminSource): AdminRoute {
  const bodies = new JsonBodies(ScrubOrder);
  return {
    method: "POST",
    path: "/admin/scrub",
    about: {
      tag: "Cluster",
      summary: "Begin a scrub",
      description:
        "Compares all keys below the cluster's prefix with the metadata, on this node and in the background. With `verify` it reads every live data object, at most 64 MiB a second. " +
        "Changes nothing, except that with `deleteOrphans` it deletes what is certainly nobody's.",
      body: {
        description: "What to do beyond the comparison. None is as good as an empty object.",
        contents: { "application/json": { schema: ScrubOrder, example: { verify: true } } },
      },
      answers: {
        202: { description: "It has begun", schema: ScrubAnswer, example: BEGUN_EXAMPLE },
        409: refusal("One is under way on this node", UNDER_WAY),
        ...refusalsOfOrder({
          badBody: "minAgeSeconds of the body is 5: Expected integer to be greater or equal to 1800",
          unavailable: "This node does not serve yet, or not any more",
        }),
      },
    },
    handle: (exchange) => startScrub(source, exchange, bodies),
  };
}

async function startScrub(source: AdminSource, exchange: Exchange, bodies: JsonBodies<typeof ScrubOrder>): Promise<Response> {
  const order = await bodies.read(exchange, {});
  const answer = source.startScrub(order);
  if (answer === null) return errorAnswer(exchange, 409, UNDER_WAY);
  return jsonAnswer(exchange, 202, answer);
}
