import { afterEach, describe, expect, test } from "bun:test";
import { ERROR_CODES, STATUS_CLASSES, Traffic, type TrafficObserver } from "../../src/protocol/traffic.ts";
import { listenTo, type TestListeners } from "../support/test-listener.ts";
import { FakeStream } from "./fake-streams.ts";

const open: TestListeners[] = [];
afterEach(async () => {
  for (const listeners of open.splice(0)) await listeners.stop();
});

function listen(observers: { readonly pico: TrafficObserver; readonly durableStreams: TrafficObserver }): TestListeners {
  const stream = new FakeStream("/s");
  stream.push("a");
  const listeners = listenTo(stream, { observers });
  open.push(listeners);
  return listeners;
}

/** Answers by operation and class; those without any left out. */
function answers(traffic: Traffic): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const [operation, { answers }] of traffic.operations) {
    for (const status of STATUS_CLASSES) if (answers[status] > 0) counts[`${operation} ${status}`] = answers[status];
  }
  return counts;
}

describe("the traffic of a listener", () => {
  test("each answer counts once, by what was asked, its class and its error code", async () => {
    const traffic = { pico: new Traffic(), durableStreams: new Traffic() };
    const { pico, durableStreams } = listen(traffic);
    for (const base of [pico, durableStreams]) {
      await fetch(`${base}/s`);
      await fetch(`${base}/s`, { method: "HEAD" });
      await fetch(`${base}/absent`);
      await fetch(`${base}/s`, { method: "PATCH" });
      await fetch(`${base}/s`, { method: "OPTIONS" });
      await fetch(`${base}/s?live=sse&seq=now&offset=now`).then((answer) => answer.body?.cancel());
      await fetch(`${base}/s?live=long-poll&offset=-1&seq=0`);
    }
    const both = { "read 2xx": 1, "head 2xx": 1, "read 4xx": 1, "other 4xx": 1, "options 2xx": 1, "sse 2xx": 1, "long_poll 2xx": 1 };
    for (const one of Object.values(traffic)) {
      expect(answers(one)).toEqual(both);
      expect(one.errorCount("not_found")).toBe(1);
      expect(one.errorCount("method_not_allowed")).toBe(1);
      expect(ERROR_CODES.reduce((sum, code) => sum + one.errorCount(code), 0)).toBe(2);
      expect([...one.operations.values()].reduce((sum, { durations }) => sum + durations.count, 0)).toBe(7);
    }
  });

  test("an observer that throws costs no answer, and no refusal", async () => {
    let calls = 0;
    const fail = () => {
      calls += 1;
      throw new Error("an observer");
    };
    const nothing = () => {};
    const observer = {
      answered: fail,
      refused: fail,
      longPollBegan: nothing,
      longPollEnded: nothing,
      eventStreamBegan: nothing,
      eventStreamEnded: nothing,
    };
    const { pico, durableStreams } = listen({ pico: observer, durableStreams: observer });
    for (const base of [pico, durableStreams]) {
      expect(await (await fetch(`${base}/s`)).text()).toContain("a");
      expect((await fetch(`${base}/absent`)).status).toBe(404);
    }
    expect(calls).toBe(4);
  });
});
