/** When a scrub begins by itself. */
import { expect, test } from "bun:test";
import { ScrubReport, type ScrubRequest, type ScrubRun } from "../../src/engine/scrub-report.ts";
import { isScrubDue, ScrubSchedule } from "../../src/engine/scrub-schedule.ts";
import { SCRUB_FIRST_MS, SCRUB_RETRY_AFTER_MS } from "../../src/lib/limits.ts";
import { ManualClock } from "../support/manual-clock.ts";

const DAY_MS = 24 * 3600_000;
const BASE = { intervalMs: DAY_MS, isLeaseHeld: true, startedMs: 0, lastMs: null, hasFailed: false, nowMs: 0 };

test.each([
  ["right behind the start", {}, false],
  ["some time behind it", { nowMs: SCRUB_FIRST_MS }, true],
  ["behind a whole interval, where that is shorter", { intervalMs: 1000, nowMs: 1000 }, true],
  ["turned off", { intervalMs: 0, nowMs: DAY_MS * 9 }, false],
  ["without the lease", { isLeaseHeld: false, nowMs: DAY_MS * 9 }, false],
  ["before the interval is over", { lastMs: 5, nowMs: DAY_MS + 4 }, false],
  ["when the interval is over", { lastMs: 5, nowMs: DAY_MS + 5 }, true],
  ["sooner where the last one failed", { lastMs: 5, hasFailed: true, nowMs: SCRUB_RETRY_AFTER_MS + 5 }, true],
  ["not at once where the last one failed", { lastMs: 5, hasFailed: true, nowMs: 60_000 }, false],
])("%s", (_, changes, isDue) => {
  expect(isScrubDue({ ...BASE, ...changes })).toBe(isDue);
});

test("once an interval by who holds the lease, without a delete, and later where an operator's is under way", async () => {
  const clock = new ManualClock();
  const begun: [number, ScrubRequest][] = [];
  let isBusy = false;
  let isHeld = true;
  const start = (request: ScrubRequest): Promise<ScrubRun> | null => {
    if (isBusy) return null;
    begun.push([clock.monotonicMs(), request]);
    const progress = { phase: "done", done: 0, total: null } as const;
    return Promise.resolve({ request, startedAtMs: 0, endedAtMs: 1, progress: { ...progress }, report: new ScrubReport(), error: null });
  };
  const schedule = new ScrubSchedule({ scrubber: { start }, intervalMs: 600_000, isLeaseHeld: () => isHeld, clock });
  /** As its loop does. */
  const look = async (minutes: number) => {
    for (let i = 0; i < minutes; i++) {
      await clock.advance(60_000);
      schedule.look();
    }
  };
  schedule.look();
  await look(10);
  expect(begun).toEqual([[600_000, { verifies: false, deletesOrphans: false, minAgeMs: DAY_MS, by: "schedule" }]]);
  isBusy = true;
  await look(11);
  isBusy = false;
  await look(1);
  expect(begun.map(([atMs]) => atMs)).toEqual([600_000, 1_320_000]);
  isHeld = false;
  await look(100);
  expect(begun.length).toBe(2);
});
