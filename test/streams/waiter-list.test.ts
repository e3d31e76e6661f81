import { expect, test } from "bun:test";
import { WaiterList } from "../../src/streams/waiter-list.ts";
import { ManualClock } from "../support/manual-clock.ts";

test("only those whose offset the tail has passed are woken", async () => {
  const clock = new ManualClock();
  const list = new WaiterList();
  const [at3, at4] = [list.wait(3, 1000, null, clock), list.wait(4, 1000, null, clock)];
  list.wakeBelow(3);
  expect(list.size).toBe(2);
  list.wakeBelow(4);
  expect(await at3).toBe("data");
  expect(list.size).toBe(1);
  list.wakeAll("deleted");
  expect(await at4).toBe("deleted");
});

test("however a wait ends, its timer and its place are free again", async () => {
  const clock = new ManualClock();
  const list = new WaiterList();
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
});

test("a wait whose client is gone already ends at once", async () => {
  const clock = new ManualClock();
  const list = new WaiterList();
  expect(await list.wait(0, 1000, AbortSignal.abort(), clock)).toBe("timeout");
  expect(list.size).toBe(0);
});
