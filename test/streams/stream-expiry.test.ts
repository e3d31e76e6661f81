import { describe, expect, spyOn, test } from "bun:test";
import { codeOf } from "../support/code-of.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { TestNode } from "../support/test-node.ts";

const TTL = { ttlSeconds: 10n };

async function startNode(): Promise<{ node: TestNode; clock: ManualClock }> {
  const clock = new ManualClock();
  const node = await settled(new TestNode({ clock }).start(1));
  return { node, clock };
}

test("the loops of a node's streams tell of their rounds, and a round that throws fails and is tried again", async () => {
  const { node, clock } = await startNode();
  const loop = (name: string) => node.streams.loops.find((one) => one.name === name);
  await settled(node.create("/a", TTL));
  await clock.advance(10_000);
  expect(loop("session_sweep")).toMatchObject({ lastSuccessMs: 10_000, failures: 0 });
  expect(loop("expiry")).toMatchObject({ lastSuccessMs: 10_000, failures: 0, lastError: null });
  const read = spyOn(node.metadata, "databaseNowMs").mockImplementation(() => {
    throw new Error("no time");
  });
  await clock.advance(250);
  expect(loop("expiry")).toMatchObject({ lastSuccessMs: 10_000, lastFailureMs: 10_250, failures: 1, lastError: "no time" });
  read.mockRestore();
  await clock.advance(250);
  expect(loop("expiry")).toMatchObject({ lastSuccessMs: 10_500, failures: 1 });
  expect(node.metadata.view.streamByName("/a")).toBeNull();
});

describe("expiry of owned streams", () => {
  test("a stream that nobody touches is removed at its deadline, one that is read a deadline later", async () => {
    const { node, clock } = await startNode();
    await settled(node.create("/quiet", TTL));
    await settled(node.create("/read", TTL));
    await clock.advance(6_000);
    await node.streams.read({ name: "/read", from: "start", recordsMax: 0, bytesMax: 1 });
    await clock.advance(5_000);
    expect(node.metadata.view.streamByName("/quiet")).toBeNull();
    expect(node.metadata.view.streamByName("/read")).not.toBeNull();
    await clock.advance(6_000);
    expect(node.metadata.view.streamByName("/read")).toBeNull();
  });

  test("a live reader keeps its stream alive, also between the deadline and the next look at the heap", async () => {
    const { node, clock } = await startNode();
    const { info } = await settled(node.create("/a", TTL));
    const waiting = node.streams.wait(info.streamId, 0, 60_000, null);
    // Touched last just behind a look of the heap, so that the deadline falls between two looks.
    await clock.advance(10_000);
    node.metadata.databaseOffsetMs = 10_100;
    expect(await settled(Promise.resolve(node.streams.head("/a")))).toMatchObject({ name: "/a" });
    await settled(node.append("/a", "x"));
    expect(await settled(waiting)).toBe("data");
  });

  test("while the removal of an unused stream is under way nothing is answered for it, even if the clock turns doubtful", async () => {
    const { node, clock } = await startNode();
    await settled(node.create("/a", TTL));
    await settled(node.engine.uploadNow());
    const lived = await settled(node.restart());
    await clock.advance(9_000);
    lived.metadata.hold();
    // The end of the first life lengthened its deadline to 10 s behind it.
    await clock.advance(2_000);
    expect(lived.metadata.heldCount).toBe(1);
    lived.metadata.isDatabaseClockSteady = false;
    const append = lived.append("/a", "acknowledged");
    let isAnswered = false;
    append.then(
      () => {
        isAnswered = true;
      },
      () => {},
    );
    for (let i = 0; i < 50; i++) await quiet();
    expect(isAnswered).toBe(false);
    lived.metadata.release();
    expect(await codeOf(() => settled(append))).toBe("not_found");
    expect(lived.metadata.view.streamByName("/a")).toBeNull();
  });

  test("after two crashes a stream lives a TTL from the end of the last life, and is served all that time", async () => {
    const { node, clock } = await startNode();
    await settled(node.create("/a", TTL));
    await clock.advance(5_000);
    const second = await settled(node.restart());
    await clock.advance(8_000);
    const third = await settled(second.restart());
    // A TTL behind the end of the first life, not yet one behind the end of the second.
    await clock.advance(4_000);
    expect(await settled(Promise.resolve(third.streams.head("/a")))).toMatchObject({ name: "/a" });
    await clock.advance(7_000);
    expect(third.metadata.view.streamByName("/a")).toBeNull();
  });

  test("a stream that is due by this node's estimate only is served: the database's time decides", async () => {
    const { node } = await startNode();
    await settled(node.create("/a", TTL));
    node.metadata.databaseOffsetMs = 20_000;
    const before = node.metadata.view.appliedIndex;
    expect(await settled(node.append("/a", "x"))).toMatchObject({ startOffset: 0 });
    expect(node.metadata.view.appliedIndex - before).toBeLessThanOrEqual(1);
  });

  test("the watch over a stream ends with it: short lives with long deadlines leave nothing behind", async () => {
    const { node } = await startNode();
    for (let i = 0; i < 3000; i++) {
      await settled(node.create("/a", { ttlSeconds: 1_000_000n }));
      await settled(node.streams.delete("/a"));
    }
    expect(node.streams.watchedCount).toBeLessThan(2000);
  });
});
