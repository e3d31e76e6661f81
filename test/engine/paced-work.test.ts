import { expect, test } from "bun:test";
import { PacedWork } from "../../src/engine/paced-work.ts";
import { WORK_SLICE_BYTES, WORK_SLICE_STEPS } from "../../src/lib/limits.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";

/** Whether the promise is over by now. */
async function isOver(promise: Promise<unknown>): Promise<boolean> {
  let over = false;
  void promise.then(() => {
    over = true;
  });
  await quiet();
  await quiet();
  return over;
}

test("a slice of work is followed by a rest of the same length", async () => {
  const clock = new ManualClock();
  const pace = new PacedWork(clock, new AbortController().signal);
  for (let step = 1; step < WORK_SLICE_STEPS; step++) expect(pace.step(1)).toBeNull();
  clock.stall(8);
  const rest = pace.step(1);
  if (rest === null) throw new Error("no rest");
  await clock.advance(7);
  expect(await isOver(rest)).toBe(false);
  await clock.advance(1);
  expect(await isOver(rest)).toBe(true);
  expect(pace.step(1)).toBeNull();
});

test("many bytes are a slice by themselves; work of less than a millisecond gives others a turn, and is counted on", async () => {
  const clock = new ManualClock();
  const pace = new PacedWork(clock, new AbortController().signal);
  clock.stall(0.6);
  await settled(pace.step(WORK_SLICE_BYTES));
  expect(clock.timerCount).toBe(0);
  clock.stall(0.6);
  const rest = pace.step(WORK_SLICE_BYTES);
  await quiet();
  expect(clock.timerCount).toBe(1);
  await clock.advance(2);
  await settled(rest);
});

test("waiting for a store is no work", async () => {
  const clock = new ManualClock();
  const pace = new PacedWork(clock, new AbortController().signal);
  clock.stall(3);
  const waited = pace.idle(Promise.resolve("bytes"));
  clock.stall(1000);
  expect(await waited).toBe("bytes");
  const rest = pace.step(WORK_SLICE_BYTES);
  await clock.advance(3);
  await settled(rest);
});

test("a stop ends a rest", async () => {
  const clock = new ManualClock();
  const stopping = new AbortController();
  const pace = new PacedWork(clock, stopping.signal);
  clock.stall(1000);
  const rest = pace.step(WORK_SLICE_BYTES);
  stopping.abort();
  await settled(rest);
});
