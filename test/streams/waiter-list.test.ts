import { expect, test } from "bun:test";
import { WaiterList } from "../../src/streams/waiter-list.ts";
import { ManualClock } from "../support/manual-clock.ts";

/** A list, and how many waits of it are over. */
function makeList() {
  let ended = 0;
  const list = new WaiterList(() => (ended += 1));
  return { list, ended: () => ended };
}

test("only those whose offset the tail has passed are woken", async () => {
  const clock = new ManualClock();
  const { list, ended } = makeList();
  const [at3, at4] = [list.wait(3, 1000, null, clock), list.wait(4, 1000, null, clock)];
  list.wakeBelow(3);
  expect(list.size).toBe(2);
  list.wakeBelow(4);
  expect(await at3).toBe("data");
  expect(list.size).toBe(1);
  list.wakeAll("deleted");
  expect(await at4).toBe("deleted");
  expect(ended()).toBe(2);
});

test("however a wait ends, its timer and its place are free again", async () => {
  const clock = new ManualClock();
  const { list, ended } = makeList();
  const abort = new AbortController();
  const aborted = list.wait(0, 1000, abort.signal, clock);
  const timedOut = list.wait(0, 500, new AbortController().signal, clock);
  const closed = list.wait(0, 1000, null, clock);
  abort.abort();
  expect(await aborted).toBe("timeout");
  await clock.advance(500);
  expect(await timedOut).toBe("timeout");
  list.wakeAll("closed");
  expect(await closed).toBe("closed");
  expect(list.size).toBe(0);
  expect(clock.timerCount).toBe(0);
  expect(ended()).toBe(3);
});

test("a wait whose client is gone already ends at once", async () => {
  const clock = new ManualClock();
  const { list, ended } = makeList();
  expect(await list.wait(0, 1000, AbortSignal.abort(), clock)).toBe("timeout");
  expect(list.size).toBe(0);
  expect(ended()).toBe(1);
  expect(clock.timerCount).toBe(0);
});

test("a waiter that is taken out is told nothing, and counts as over once", () => {
  const { list, ended } = makeList();
  const outcomes: string[] = [];
  const waiter = { offset: 1, wake: (outcome: string) => void outcomes.push(outcome) };
  list.add(waiter);
  expect([list.remove(waiter), list.remove(waiter)]).toEqual([true, false]);
  list.wakeBelow(2);
  expect(ended()).toBe(1);
  list.add(waiter);
  list.wakeBelow(2);
  list.wakeAll("closed");
  expect(outcomes).toEqual(["data"]);
  expect(ended()).toBe(2);
});
