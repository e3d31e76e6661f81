/** The scrubs of a node, as operators are told of them. */
import type { Static } from "@sinclair/typebox";
import type { ClusterAnswer } from "../admin/admin-schemas.ts";
import type { ScrubAnswer, ScrubOrder, ScrubRunTold } from "../admin/scrub-schemas.ts";
import type { Findings, ScrubRequest, ScrubRun } from "../engine/scrub-report.ts";
import { SCRUB_AGE_SECONDS_DEFAULT } from "../lib/limits.ts";

export function toScrubRequest({ verify, deleteOrphans, minAgeSeconds }: Static<typeof ScrubOrder>): ScrubRequest {
  return {
    verifies: verify ?? false,
    deletesOrphans: deleteOrphans ?? false,
    minAgeMs: (minAgeSeconds ?? SCRUB_AGE_SECONDS_DEFAULT) * 1000,
    by: "operator",
  };
}

export function describeScrub(run: ScrubRun | null, intervalSeconds: number): Static<typeof ScrubAnswer> {
  return { running: run !== null && run.endedAtMs === null, intervalSeconds, run: run === null ? null : describeRun(run) };
}

/** For who looks at the cluster as a whole. */
export function summarizeScrub(run: ScrubRun | null): (typeof ClusterAnswer.static)["scrub"] {
  if (run === null) return null;
  const { report } = run;
  return {
    endedAtMs: run.endedAtMs,
    outcome: outcomeOf(run),
    missing: report.missing.count,
    damaged: report.wrongSize.count + report.damaged.count,
    orphans: report.orphans.count,
    unexplained: report.unexplained.count,
  };
}

function describeRun(run: ScrubRun): ScrubRunTold {
  const { request, report, progress } = run;
  return {
    by: request.by,
    verify: request.verifies,
    deleteOrphans: request.deletesOrphans,
    minAgeSeconds: Math.round(request.minAgeMs / 1000),
    startedAtMs: run.startedAtMs,
    endedAtMs: run.endedAtMs,
    outcome: outcomeOf(run),
    error: run.error,
    progress: { ...progress },
    keys: report.keyCount,
    bytes: report.keyBytes,
    liveObjects: report.liveCount,
    verified: { count: report.verifiedCount, bytes: report.verifiedBytes },
    missing: firstOf(report.missing, ({ key, sizeBytes }) => ({ key, bytes: sizeBytes })),
    wrongSize: firstOf(report.wrongSize, (item) => item),
    damaged: firstOf(report.damaged, (item) => item),
    orphans: firstOf(report.orphans, ({ reason, ...stored }) => ({ ...describeKey(stored), reason })),
    orphanBytes: report.orphanBytes,
    unexplained: firstOf(report.unexplained, ({ reason, ...stored }) => ({ ...describeKey(stored), reason })),
    deleted: { count: report.deletedCount, bytes: report.deletedBytes },
    tooYoung: report.youngCount,
    refused: firstOf(report.refused, (item) => item),
    nothingDeletedBecause: report.deletionRefusal,
  };
}

function describeKey({ key, sizeBytes, modifiedMs }: { key: string; sizeBytes: number; modifiedMs: number }) {
  return { key, bytes: sizeBytes, modifiedAtMs: Math.max(0, Math.floor(modifiedMs)) };
}

function outcomeOf({ endedAtMs, error, report }: ScrubRun): ScrubRunTold["outcome"] {
  if (endedAtMs === null) return "running";
  if (report.hasDamage) return "damage";
  return error === null ? "sound" : "failed";
}

function firstOf<Item, Told>({ count, items }: Findings<Item>, tell: (item: Item) => Told): { count: number; items: Told[] } {
  return { count, items: items.map(tell) };
}
