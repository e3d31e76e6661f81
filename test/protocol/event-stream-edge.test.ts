import { afterEach, describe, expect, test } from "bun:test";
import { SSE_HEARTBEAT_MS } from "../../src/lib/limits.ts";
import { ManualClock, quiet } from "../support/manual-clock.ts";
import { listenTo, type TestListeners } from "../support/test-listener.ts";
import { FakeStream } from "./fake-streams.ts";

let listeners: TestListeners | null = null;

afterEach(async () => {
  await listeners?.stop();
  listeners = null;
});

async function follow(kind: "pico" | "durableStreams") {
  const clock = new ManualClock();
  const stream = new FakeStream("/s");
  listeners = listenTo(stream, { clock });
  const answer = await fetch(`${listeners[kind]}/s?${kind === "pico" ? "seq" : "offset"}=now&live=sse`);
  const chunks: string[] = [];
  const ended = (async () => {
    for await (const chunk of answer.body ?? []) chunks.push(Buffer.from(chunk).toString());
  })();
  return { clock, stream, answer, chunks, ended };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await quiet();
}

describe.each(["pico", "durableStreams"] as const)("an event stream of %s", (kind) => {
  test("begins at once with its head and an event, on a silent stream and with time standing still", async () => {
    const { answer, chunks } = await follow(kind);
    expect(answer.status).toBe(200);
    await until(() => chunks.length > 0);
    expect(chunks.join("")).toContain("event: control");
  });

  test("tells proxies neither to hold it back, nor to change or keep it", async () => {
    const { answer } = await follow(kind);
    expect(answer.headers.get("x-accel-buffering")).toBe("no");
    expect(answer.headers.get("content-encoding")).toBeNull();
    expect(answer.headers.get("content-length")).toBeNull();
    const control = (answer.headers.get("cache-control") ?? "").split(/, */).toSorted();
    expect(control).toEqual(["no-cache", "no-transform"]);
  });

  test("has a comment for every 15 s of silence, not sooner, and its end at its time", async () => {
    const { clock, stream, chunks, ended } = await follow(kind);
    await until(() => chunks.length === 1 && stream.parks === 1);
    for (let comments = 1; comments <= 3; comments++) {
      await clock.advance(SSE_HEARTBEAT_MS - 1);
      expect(chunks.length).toBe(comments);
      await clock.advance(1);
      await until(() => chunks.length === comments + 1 && stream.parks === comments + 1);
      expect(chunks.at(-1)).toBe(":\n\n");
    }
    await clock.advance(10_000);
    await ended;
    expect(chunks.length).toBe(4);
  });
});

test("comments come well within the time after which proxies cut a silent answer", () => {
  expect(SSE_HEARTBEAT_MS).toBe(15_000);
});
