/** Words the figures of a node as the answer of `GET /admin/activity`. */
import { ACTIVITY_SAMPLE_MS } from "../lib/limits.ts";
import type { LoopFigures } from "../lib/loop-record.ts";
import type { Activity } from "./activity-schemas.ts";
import type { CacheFigures, NodeFigures } from "./node-figures.ts";

/** Before there is a cache. */
const NO_CACHE: CacheFigures = { bytes: 0, bytesMax: 0, entries: 0, hits: 0, misses: 0, evictions: 0 };

export interface RecentActivity {
  readonly nowMs: number;
  readonly samples: Activity["samples"];
  readonly errors: Activity["errors"];
}

export function describeActivity(figures: NodeFigures, { nowMs, samples, errors }: RecentActivity): Activity {
  const { core, traffic } = figures;
  const toWallMs = (monotonicMs: number | null) => (monotonicMs === null ? null : figures.toWallMs(monotonicMs));
  return {
    nowMs,
    startedAtMs: figures.startedAtMs,
    intervalMs: ACTIVITY_SAMPLE_MS,
    samples,
    backlog: describeBacklog(core?.engine),
    uploads: describeUploads(core?.engine),
    log: {
      appliedIndex: core?.metadata.appliedIndex ?? 0,
      lastAppliedAtMs: toWallMs(core?.metadata.lastAppliedMs ?? null),
      unapplied: core?.metadata.unappliedCount ?? 0,
      waitingCommands: core?.metadata.waitingCount ?? 0,
      isLeaseHeld: core?.metadata.isLeaseHeld ?? false,
    },
    loops: (core?.loops ?? []).map((loop) => describeLoop(loop, toWallMs)),
    errors,
    readers: {
      longPoll: traffic.pico.longPollCount + traffic.durable_streams.longPollCount,
      sse: traffic.pico.eventStreamCount + traffic.durable_streams.eventStreamCount,
      parked: core?.waiterCount ?? 0,
    },
    streams: { count: core?.streamCount ?? 0, open: core?.openCount ?? 0 },
    caches: core?.caches ?? { log: NO_CACHE, block: NO_CACHE },
    memory: { residentBytes: figures.residentBytes },
  };
}

type EngineFigures = NonNullable<NodeFigures["core"]>["engine"];

function describeBacklog(engine: EngineFigures | undefined): Activity["backlog"] {
  return {
    walBytes: engine?.backlogCostBytes ?? 0,
    walBytesMax: engine?.backlogBytesMax ?? 0,
    unuploadedBytes: engine?.backlogBytes ?? 0,
    undurableBytes: engine?.wal.undurableBytes ?? 0,
    segmentsInFlight: engine?.wal.inFlightCount ?? 0,
    isStalled: engine?.isStalled ?? false,
    oldestAgeMs: engine?.oldestPendingAgeMs ?? null,
  };
}

function describeUploads(engine: EngineFigures | undefined): Activity["uploads"] {
  const uploads = engine?.uploads;
  return {
    count: uploads?.uploadCount ?? 0,
    failures: uploads?.failureCount ?? 0,
    objects: uploads?.objectCount ?? 0,
    bytes: uploads?.objectBytes ?? 0,
  };
}

function describeLoop(loop: LoopFigures, toWallMs: (monotonicMs: number | null) => number | null): Activity["loops"][number] {
  const { name, intervalMs, lastSuccessMs, lastFailureMs, lastError, failures } = loop;
  return { name, intervalMs, lastSuccessAtMs: toWallMs(lastSuccessMs), lastFailureAtMs: toWallMs(lastFailureMs), lastError, failures };
}
