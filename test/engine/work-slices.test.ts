import { expect, test } from "bun:test";
import { WorkSlices } from "../../src/engine/work-slices.ts";
import type { Clock } from "../../src/lib/clock.ts";
import { WORK_SLICE_BYTES, WORK_SLICE_STEPS } from "../../src/lib/limits.ts";

/** Runs what is due soon only when told. */
function manualClock(): { readonly clock: Clock; readonly due: (() => void)[] } {
  const due: (() => void)[] = [];
  const clock: Clock = {
    nowMs: () => 0,
    monotonicMs: () => 0,
    schedule: () => ({ cancel: () => {} }),
    soon: (run) => void due.push(run),
  };
  return { clock, due };
}

test("a slice ends after so many steps, however small they are, and the next one begins anew", async () => {
  const { clock, due } = manualClock();
  const slices = new WorkSlices(clock);
  for (let step = 1; step < WORK_SLICE_STEPS; step++) expect(slices.step(1)).toBeNull();
  const pause = slices.step(1);
  expect(pause).not.toBeNull();
  due.shift()?.();
  await pause;
  expect(slices.step(1)).toBeNull();
});

test("a slice ends after so many bytes, however few the steps", () => {
  const slices = new WorkSlices(manualClock().clock);
  expect(slices.step(WORK_SLICE_BYTES - 1)).toBeNull();
  expect(slices.step(1)).not.toBeNull();
});
