import { afterEach, beforeEach, expect, test } from "bun:test";
import { PREPARED_OBJECT_GRACE_MS } from "../../src/lib/limits.ts";
import type { StreamSettings } from "../../src/metadata/command.ts";
import { A, B, LogFixture, type TestNode } from "./log-fixture.ts";

let f: LogFixture;
beforeEach(() => {
  f = new LogFixture();
});
afterEach(async () => {
  await f.close();
});

const TTL_60: StreamSettings = { contentType: "text/plain", ttlSeconds: 60n, expiresAtMs: null };

async function create(node: TestNode, streamId: number, settings: StreamSettings): Promise<void> {
  await node.log.propose({ type: "create_stream", streamId, name: `s/${streamId}`, settings, isClosed: false, fork: null }).outcome;
}

/** Two nodes; stream 1 is nobody's, stream 2 is owned by the first, which holds the lease. */
async function pair(settings: StreamSettings): Promise<TestNode> {
  const a = await f.node(A);
  await f.node(B);
  await create(a, 1, settings);
  await create(a, 2, settings);
  await a.log.propose({ type: "release_stream", streamId: 1, deadlineMs: null, walNumber: 0 }).outcome;
  return a;
}

test("the lease holder expires streams that nobody owns, at their deadline and not sooner, and no owned one", async () => {
  const a = await pair(TTL_60);
  await f.clock.advance(59_000);
  expect(a.log.view.streamById(1)).not.toBeNull();
  await f.clock.advance(5000);
  expect(a.log.view.streamById(1)).toBeNull();
  await f.clock.advance(600_000);
  expect(a.log.view.streamById(2)).not.toBeNull();
});

test("expiry pauses while the database's clock jumps, and an hour ahead kills nothing meanwhile", async () => {
  const a = await pair(TTL_60);
  await f.clock.advance(5000);
  f.database.clockOffsetMs = 3_600_000;
  await f.clock.advance(30_000);
  f.database.clockOffsetMs = 0;
  await f.clock.advance(20_000);
  expect(a.log.view.streamById(1)).not.toBeNull();
});

test("no maintenance is proposed while the lease is lost", async () => {
  const a = await pair(TTL_60);
  f.database.statements.releaseLease(A);
  f.database.statements.acquireLease({ nodeId: 9, nodeEpoch: 1 }, 1e9);
  await f.clock.advance(120_000);
  expect(a.log.isLeaseHeld).toBe(false);
  expect(a.log.view.streamById(1)).not.toBeNull();
});

test("a prepared object that was never committed is given up after its expiry and a grace", async () => {
  const a = await f.node(A);
  const expiresAtMs = f.clock.nowMs() + 10_000;
  await a.log.propose({ type: "prepare_objects", randoms: ["0123456789abcdef"], expiresAtMs }).outcome;
  await f.clock.advance(10_000 + PREPARED_OBJECT_GRACE_MS - 5000);
  expect(a.log.view.object(1)?.state).toBe("prepared");
  await f.clock.advance(10_000);
  expect(a.log.view.object(1)?.state).toBe("destroyed");
});
