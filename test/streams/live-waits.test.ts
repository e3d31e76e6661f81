import { describe, expect, test } from "bun:test";
import { SESSION_IDLE_MS, SSE_HEARTBEAT_MS } from "../../src/lib/limits.ts";
import { codeOf } from "../support/code-of.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { listenTo } from "../support/test-listener.ts";
import { TestNode } from "../support/test-node.ts";

/** A node whose stream "/a" is empty and uploaded, so that an idle session of it could go. */
async function startNode() {
  const clock = new ManualClock();
  const node = await settled(new TestNode({ clock }).start(1));
  await settled(node.create("/a"));
  await settled(node.create("/unused"));
  await settled(node.append("/a", "first"));
  await settled(node.append("/unused", "first"));
  await settled(node.engine.uploadNow());
  return { node, clock };
}

/** Turns until it holds; network input has to come in meanwhile. */
async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await quiet();
}

describe("reads that wait on a silent stream", () => {
  test("its session stays for three idle limits, while an unused one goes, and the next append is delivered", async () => {
    const { node, clock } = await startNode();
    const { streamId } = await settled(node.streams.head("/a"));
    const waits = [1, 2].map(() => node.streams.wait(streamId, 1, SESSION_IDLE_MS * 10, null));
    for (let limits = 0; limits < 3; limits++) await clock.advance(SESSION_IDLE_MS * 1.1);
    expect(node.streams.sessionCount).toBe(1);
    await settled(node.append("/a", "at last"));
    expect(await settled(Promise.all(waits))).toEqual(["data", "data"]);
  });

  test("that waits for its session when the node gives up is answered at once, and so is a read", async () => {
    const { node, clock } = await startNode();
    const { streamId } = await settled(node.streams.head("/a"));
    await clock.advance(SESSION_IDLE_MS * 1.5);
    expect(node.streams.sessionCount).toBe(0);
    const from = { name: "/a", from: "start", recordsMax: 0, bytesMax: 1000 } as const;
    const reading = codeOf(async () => node.streams.read(from));
    const waiting = node.streams.wait(streamId, 1, SESSION_IDLE_MS * 10, null);
    node.streams.abandon();
    expect(await settled(reading)).toBe("unavailable");
    expect(await settled(waiting)).toBe("moved");
  });

  test("long poll and event stream of both protocols get an append behind three idle limits", async () => {
    const { node, clock } = await startNode();
    const listeners = listenTo(node.streams, { clock, settings: { longPollSeconds: 3600, sseSeconds: 3600 } });
    const urls = [`${listeners.pico}/a?seq=now`, `${listeners.durableStreams}/a?offset=now`];
    const polls = urls.map((url) => fetch(`${url}&live=long-poll`));
    const events = await Promise.all(urls.map((url) => fetch(`${url}&live=sse`)));
    const texts = ["", ""];
    const readers = events.map(async (answer, at) => {
      for await (const chunk of answer.body ?? []) texts[at] += Buffer.from(chunk).toString();
    });
    await until(() => node.streams.waiterCount === 4);
    for (let waitedMs = 0; waitedMs < SESSION_IDLE_MS * 3.3; waitedMs += SSE_HEARTBEAT_MS) {
      await clock.advance(SSE_HEARTBEAT_MS);
      await until(() => node.streams.waiterCount === 4);
    }
    expect(node.streams.sessionCount).toBe(1);
    await node.append("/a", "at last");
    for (const poll of polls) expect(await (await poll).text()).toContain("at last");
    await until(() => texts.every((text) => text.includes("at last")));
    await listeners.stop();
    await Promise.all(readers);
  });
});
