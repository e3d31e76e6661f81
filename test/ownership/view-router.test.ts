import { expect, test } from "bun:test";
import type { Command } from "../../src/metadata/command.ts";
import { ViewRouter } from "../../src/ownership/view-router.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { ManualClock } from "../support/manual-clock.ts";

const OWNER = { nodeId: 1, nodeEpoch: 1 };

async function setUp() {
  const metadata = new DirectMetadata(new ManualClock());
  const streamId = metadata.register(OWNER);
  const settings = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null };
  const propose = (command: Command) => metadata.propose(command).outcome;
  await propose({ type: "create_stream", streamId, name: "/a", settings, isClosed: false, fork: null });
  const routerOf = (nodeId: number, isOwn: boolean, isInUse = false) =>
    new ViewRouter(
      metadata.view,
      nodeId,
      () => isOwn,
      () => isInUse,
    );
  return { metadata, propose, routerOf };
}

test("a stream of ours, one that nobody owns, and an unknown name are served here", async () => {
  const { metadata, propose, routerOf } = await setUp();
  expect(routerOf(1, true).route("/a", "pico").kind).toBe("here");
  expect(routerOf(2, false).route("/unknown", "pico").kind).toBe("here");
  const streamId = metadata.view.streamByName("/a")?.streamId ?? 0;
  expect(await propose({ type: "release_stream", streamId, walNumber: 0, deadlineMs: null })).toMatchObject({ applied: true });
  expect(routerOf(2, false).route("/a", "pico").kind).toBe("here");
});

test("a stream of a node that is fenced and not recovered cannot be served by anybody", async () => {
  const { metadata, routerOf } = await setUp();
  metadata.register({ nodeId: 1, nodeEpoch: 2 });
  for (const nodeId of [1, 2]) expect(routerOf(nodeId, false).route("/a", "pico").kind).toBe("unavailable");
});

test("a stream of another life of this node is not redirected, for that would lead back here", async () => {
  const { routerOf } = await setUp();
  expect(routerOf(1, false).route("/a", "pico").kind).toBe("unavailable");
});

test("a stream in use here is served here, whatever the view says", async () => {
  const { metadata, routerOf } = await setUp();
  metadata.register({ nodeId: 1, nodeEpoch: 2 });
  expect(routerOf(1, false, true).route("/a", "pico").kind).toBe("here");
});
