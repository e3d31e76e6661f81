import { expect, test } from "bun:test";
import { PROBLEM_CHARACTERS_MAX } from "../../src/lib/limits.ts";
import { LoopRecord } from "../../src/lib/loop-record.ts";
import { ManualClock } from "../support/manual-clock.ts";

test("a loop's record tells when it last succeeded and failed, and what the failure said, bounded", async () => {
  const clock = new ManualClock();
  const record = new LoopRecord("upload", 1000, clock);
  expect({ ...figures(record) }).toEqual({ lastSuccessMs: null, lastFailureMs: null, lastError: null, failures: 0 });
  await clock.advance(5);
  record.failed(new Error("x".repeat(10_000)));
  await clock.advance(5);
  record.succeeded();
  clock.stepWall(-3_600_000);
  expect(figures(record)).toEqual({ lastSuccessMs: 10, lastFailureMs: 5, lastError: "x".repeat(PROBLEM_CHARACTERS_MAX), failures: 1 });
});

function figures({ lastSuccessMs, lastFailureMs, lastError, failures }: LoopRecord) {
  return { lastSuccessMs, lastFailureMs, lastError, failures };
}
