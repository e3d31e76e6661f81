import { expect, test } from "bun:test";
import { BackgroundLoop } from "../../src/metadata/background-loop.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLog } from "../support/silent-log.ts";

test("a loop whose rounds fail says why, and one whose round hangs has an old last success", async () => {
  const clock = new ManualClock();
  let round = async () => {};
  const loop = new BackgroundLoop({
    name: "test",
    task: "a test",
    intervalMs: 1000,
    clock,
    logger: silentLog,
    round: () => round(),
    onFatal: () => {},
  });
  loop.start();
  await clock.advance(1500);
  expect(loop.record).toMatchObject({ name: "test", intervalMs: 1000, lastSuccessMs: 1000, failures: 0 });
  round = () => Promise.reject(new Error("the disk is gone"));
  await clock.advance(2000);
  expect(loop.record).toMatchObject({ lastSuccessMs: 1000, lastFailureMs: 3000, lastError: "the disk is gone", failures: 2 });
  round = async () => {};
  await clock.advance(1000);
  expect(loop.record).toMatchObject({ lastSuccessMs: 4000, failures: 2 });
  const { promise, resolve } = Promise.withResolvers<void>();
  round = () => promise;
  await clock.advance(60_000);
  expect(loop.record.lastSuccessMs).toBe(4000);
  resolve();
  await loop.stop();
});
