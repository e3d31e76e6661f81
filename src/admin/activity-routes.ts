/** What the node did lately, for the dashboard's charts. */
import { Type as t } from "@sinclair/typebox";
import { OFFSET_MAX } from "../lib/limits.ts";
import { queryOf } from "../protocol/exchange.ts";
import { STRICT_U64_PATTERN } from "../protocol/integers.ts";
import { type Activity, ActivityAnswer } from "./activity-schemas.ts";
import { errorAnswer, jsonAnswer } from "./admin-answer.ts";
import type { AdminRoute } from "./admin-route.ts";
import { ErrorAnswer } from "./admin-schemas.ts";
import type { AdminSource } from "./admin-source.ts";

const SINCE_PATTERN = new RegExp(STRICT_U64_PATTERN);

const CACHE_EXAMPLE: Activity["caches"]["log"] = {
  bytes: 1_048_576,
  bytesMax: 209_715_200,
  entries: 2048,
  hits: 900,
  misses: 12,
  evictions: 0,
};

const ACTIVITY_EXAMPLE: Activity = {
  nowMs: 1_760_000_010_500,
  startedAtMs: 1_760_000_000_000,
  intervalMs: 2000,
  samples: [
    {
      atMs: 1_760_000_010_000,
      spanMs: 2000.4,
      appends: 512,
      appendRecords: 2048,
      appendBytes: 524_288,
      reads: 128,
      readRecords: 4096,
      readBytes: 1_048_576,
      refused: 0,
      failed: 0,
      appendP50Ms: 1.25,
      appendP99Ms: 4.5,
      appendMaxMs: 9,
      readP50Ms: 0.0625,
      readP99Ms: 1.5,
      readMaxMs: 3,
      eventLoopDelayMs: 2.5,
    },
  ],
  backlog: {
    walBytes: 1_867_776,
    walBytesMax: 268_435_456,
    unuploadedBytes: 1_048_576,
    undurableBytes: 0,
    segmentsInFlight: 0,
    isStalled: false,
    oldestAgeMs: 8000,
  },
  uploads: { count: 3, failures: 0, objects: 3, bytes: 3_145_728 },
  log: { appliedIndex: 12, lastAppliedAtMs: 1_760_000_009_000, unapplied: 0, waitingCommands: 0, isLeaseHeld: true },
  loops: [
    {
      name: "heartbeat",
      intervalMs: 1000,
      lastSuccessAtMs: 1_760_000_010_000,
      lastFailureAtMs: null,
      lastError: null,
      failures: 0,
    },
  ],
  errors: [{ atMs: 1_760_000_004_000, level: "warn", message: "an upload failed and is tried again: no space is left", count: 2 }],
  readers: { longPoll: 2, sse: 8, parked: 10 },
  streams: { count: 40, open: 12 },
  caches: { log: CACHE_EXAMPLE, block: { ...CACHE_EXAMPLE, bytesMax: 104_857_600 } },
  memory: { residentBytes: 134_217_728 },
};

export function activityRoute(source: AdminSource): AdminRoute {
  return {
    method: "GET",
    path: "/admin/activity",
    about: {
      tag: "Node",
      summary: "What this node did in the last ten minutes",
      description:
        "Rates and latencies in samples of two seconds, and the present state of backlog, command log, background loops, live reads and caches. " +
        "Taken from memory, whatever there is in streams: made to be asked every two seconds with the `atMs` of the last sample as `since`.",
      parameters: [
        {
          name: "since",
          in: "query",
          description: "Only samples that ended behind this, in ms since 1970; all of them without it, or where it lies in the future.",
          schema: t.String({ pattern: STRICT_U64_PATTERN }),
          example: "1760000008000",
        },
      ],
      answers: {
        200: { description: "The samples, and how things stand", schema: ActivityAnswer, example: ACTIVITY_EXAMPLE },
        400: {
          description: "`since` is no whole number",
          schema: ErrorAnswer,
          example: { error: 'since is "yesterday"; send a whole number of ms since 1970' },
        },
      },
    },
    handle: (exchange) => {
      const since = queryOf(exchange).get("since");
      if (since === undefined) return jsonAnswer(exchange, 200, source.activity(null));
      if (!SINCE_PATTERN.test(since)) {
        return errorAnswer(exchange, 400, `since is ${JSON.stringify(since.slice(0, 40))}; send a whole number of ms since 1970`);
      }
      // However far in the future it lies.
      return jsonAnswer(exchange, 200, source.activity(Math.min(Number(since), OFFSET_MAX)));
    },
  };
}
