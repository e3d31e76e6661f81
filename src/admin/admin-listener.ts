/**
 * The operators' listener: health, readiness, and the state of the cluster as this node has applied it.
 * Answers come from memory; none opens a stream or asks the database, so it answers from the first
 * moment of a start, however long the replay takes (contract, admin.md 1 and 2).
 */
import { Elysia, t } from "elysia";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import { type HttpListener, IDLE_SECONDS, listenerOf } from "../protocol/http-listener.ts";
import { judgeOrigin, type OriginPolicy } from "../protocol/origin-policy.ts";

export const ReadyAnswer = t.Object({
  ready: t.Boolean({ description: "Serving and registered: requests may be sent here" }),
  serving: t.Boolean({ description: "False from the begin of a graceful stop" }),
  registered: t.Boolean({ description: "The registration stands and what its predecessor left is recovered" }),
  appliedIndex: t.Integer({ minimum: 0, description: "Last applied row of the command log" }),
  nodeId: t.Integer(),
  phase: t.String({ description: "starting, recovering, serving or stopping" }),
  recovery: t.Nullable(
    t.Object({
      step: t.String({ description: "replay, upload, end or done" }),
      segments: t.Integer({ minimum: 0, description: "WAL segments replayed so far" }),
      bytes: t.Integer({ minimum: 0, description: "Bytes replayed so far" }),
    }),
  ),
});

export const ClusterAnswer = t.Object({
  clusterId: t.String(),
  nodeId: t.Integer(),
  nodeEpoch: t.Integer({ minimum: 0, description: "0 before the node is registered" }),
  advertisedAddress: t.String(),
  registered: t.Boolean(),
  appliedIndex: t.Integer({ minimum: 0 }),
  streamCount: t.Integer({ minimum: 0 }),
  objectCount: t.Integer({ minimum: 0, description: "Live data objects" }),
  streamSetObjectCount: t.Integer({ minimum: 0, description: "Live data objects of level 0" }),
  streamObjectCount: t.Integer({ minimum: 0, description: "Live compacted data objects" }),
  preparedObjectCount: t.Integer({ minimum: 0 }),
  kvEntryCount: t.Integer({ minimum: 0 }),
  kvBytes: t.Integer({ minimum: 0 }),
  levels: t.Array(t.Object({ level: t.Integer(), objects: t.Integer(), bytes: t.Integer() })),
  gc: t.Object({ backlog: t.Integer(), oldestSeq: t.Nullable(t.Integer()), nextSeq: t.Integer() }),
  destroyedObjectBacklog: t.Integer({ minimum: 0 }),
  snapshot: t.Object({
    lastAppliedIndex: t.Integer(),
    lastBytes: t.Integer(),
    lastDurationMs: t.Number(),
    lastAtMs: t.Number(),
    taken: t.Integer(),
    failed: t.Integer(),
  }),
  leaseHolder: t.Nullable(t.Boolean()),
  pendingTransfers: t.Array(t.Object({ streamId: t.Integer(), fromNode: t.Integer(), toNode: t.Integer() })),
});

/** What the listener asks the node. */
export interface AdminSource {
  ready(): typeof ReadyAnswer.static;
  cluster(): typeof ClusterAnswer.static;
}

const METHODS_BY_PATH: ReadonlyMap<string, string> = new Map([
  ["/health", "GET, HEAD, OPTIONS"],
  ["/ready", "GET, HEAD, OPTIONS"],
  ["/admin/cluster", "GET, HEAD, OPTIONS"],
]);

const BASE_HEADERS = { "cache-control": "no-store", "x-content-type-options": "nosniff" } as const;
const PREFLIGHT_HEADERS = {
  "access-control-allow-methods": "GET, PUT, POST, DELETE, OPTIONS",
  "access-control-allow-headers": "authorization, content-type",
} as const;

export interface AdminContext {
  readonly source: AdminSource;
  readonly policy: OriginPolicy;
  readonly log: Logger;
  readonly clock: Clock;
}

export function createAdminListener({ source, policy, log, clock }: AdminContext): HttpListener {
  const app = new Elysia({ serve: { idleTimeout: IDLE_SECONDS, development: false } })
    .onRequest(({ request, set }) => judgePage(request, policy, set.headers))
    .onError(({ error, code, request }) => {
      if (code === "NOT_FOUND") return notServed(request);
      log.error("an admin request failed", { path: pathOf(request), error });
      return json(500, { error: "internal error; the log of the node says more" });
    })
    .get("/health", () => new Response("ok", { headers: { ...BASE_HEADERS, "content-type": "text/plain; charset=utf-8" } }))
    .get("/ready", () => {
      const answer = source.ready();
      return json(answer.ready ? 200 : 503, answer);
    })
    .get("/admin/cluster", () => json(200, source.cluster()));
  return listenerOf(app, clock);
}

/** Refuses foreign pages; lets the others read the answer, whichever it will be, and answers their preflights. */
function judgePage(request: Request, policy: OriginPolicy, head: Record<string, string | number>): Response | undefined {
  const { headers } = request;
  const origin = headers.get("origin") ?? undefined;
  const verdict = judgeOrigin(policy, { origin, fetchSite: headers.get("sec-fetch-site") ?? undefined, authority: headers.get("host") });
  if (verdict.isAllowed && verdict.allowOrigin !== null) {
    head["access-control-allow-origin"] = verdict.allowOrigin;
    head.vary = "Origin";
  }
  if (request.method === "OPTIONS") return new Response(null, { status: 204, headers: { ...BASE_HEADERS, ...PREFLIGHT_HEADERS } });
  if (!verdict.isAllowed) return json(403, { error: `refused: the ${verdict.reason}` });
  return undefined;
}

function notServed(request: Request): Response {
  const path = pathOf(request);
  const allow = METHODS_BY_PATH.get(path);
  if (allow === undefined) return json(404, { error: `there is nothing at ${path}` });
  return new Response(null, { status: 405, headers: { ...BASE_HEADERS, allow } });
}

function json(status: number, body: unknown): Response {
  return new Response(JSON.stringify(body), { status, headers: { ...BASE_HEADERS, "content-type": "application/json" } });
}

function pathOf(request: Request): string {
  const start = request.url.indexOf("/", request.url.indexOf("://") + 3);
  const query = request.url.indexOf("?");
  return request.url.slice(start, query < 0 ? undefined : query);
}
