import { afterEach, describe, expect, test } from "bun:test";
import { Value } from "@sinclair/typebox/value";
import { NodesAnswer, StreamAnswer } from "../../src/admin/admin-schemas.ts";
import { ADMIN_ITEMS_MAX } from "../../src/lib/limits.ts";
import { objectKey } from "../../src/metadata/entries.ts";
import { describeNodes } from "../../src/node/admin-nodes.ts";
import { describeStream } from "../../src/node/admin-stream.ts";
import { TestNode } from "../support/test-node.ts";

const LOCAL = { nodeId: 1, address: "http://127.0.0.1:4437" };
const nodes: TestNode[] = [];

afterEach(() => {
  for (const node of nodes.splice(0)) node.kill();
});

async function open(): Promise<TestNode> {
  const node = await new TestNode().start(1);
  nodes.push(node);
  return node;
}

/** As answered; it fits the schema. */
async function tell(node: TestNode, name: string) {
  const entry = node.metadata.view.streamByName(name);
  if (entry === null) throw new Error(`no stream ${name}`);
  const answer = await describeStream(entry, node, LOCAL);
  if (answer === null) throw new Error(`stream ${name} is gone`);
  // JSON has no bigint: the listener writes its digits.
  const sent = { ...answer, ttlSeconds: answer.ttlSeconds === null ? null : Number(answer.ttlSeconds) };
  expect([...Value.Errors(StreamAnswer, sent)]).toEqual([]);
  return answer;
}

describe("a stream, as an operator is told", () => {
  test("records that are not uploaded are in the durable tail, and in no object", async () => {
    const node = await open();
    await node.create("/s", { contentType: "text/x", ttlSeconds: 60n });
    await node.append("/s", "one");
    const told = await tell(node, "/s");
    expect(told).toMatchObject({
      name: "/s",
      ownerNodeId: 1,
      ownerAdvertisedAddress: LOCAL.address,
      ownerLocal: true,
      contentType: "text/x",
      kafkaTopic: null,
      ttlSeconds: 60n,
      expiresAtMs: null,
      closed: false,
      state: "opened",
      epoch: 1,
      nodeId: 1,
      startOffset: 0,
      endOffset: 0,
      pendingTransfer: null,
      deleted: false,
      fork: null,
      forks: { count: 0, items: [] },
      objects: { coveringCount: 0, isComplete: true, items: [] },
      serving: { nextOffset: 1, closed: false, liveReads: 0, producers: { count: 0, items: [] } },
    });
    expect(told.deadlineMs).toBeGreaterThanOrEqual(told.createdAtMs + 60_000);
  });

  test("each upload is an object with its offsets, newest first, and moves the end", async () => {
    const node = await open();
    await node.create("/s");
    await node.create("/other");
    for (const body of ["one", "two"]) {
      await node.append("/s", body);
      await node.append("/other", body);
      await node.engine.uploadNow();
    }
    await node.append("/other", "three");
    await node.engine.uploadNow();
    await node.streams.trim("/s", 1n);
    const { startOffset, endOffset, objects } = await tell(node, "/s");
    expect({ startOffset, endOffset }).toEqual({ startOffset: 1, endOffset: 2 });
    expect(objects.items.map((item) => [item.level, item.startOffset, item.endOffset])).toEqual([
      [0, 1, 2],
      [0, 0, 1],
    ]);
    expect(objects.isComplete).toBe(true);
    for (const { objectId, bytes } of objects.items) expect(node.metadata.view.object(objectId)?.summary?.sizeBytes).toBe(bytes);
  });

  test("of many objects the newest are told, and the search ends there", async () => {
    const node = await open();
    await node.create("/s");
    const count = ADMIN_ITEMS_MAX + 40;
    for (let i = 0; i < count; i++) {
      await node.append("/s", "x");
      await node.engine.uploadNow();
    }
    const { objects, endOffset } = await tell(node, "/s");
    expect(endOffset).toBe(count);
    expect(objects.items).toHaveLength(ADMIN_ITEMS_MAX);
    expect(objects.items[0]).toMatchObject({ startOffset: count - 1, endOffset: count });
    expect(objects).toMatchObject({ coveringCount: count, isComplete: false });
  });

  test("forks and their source name each other, also where the source is deleted", async () => {
    const node = await open();
    await node.create("/source");
    await node.append("/source", "one");
    await node.append("/source", "two");
    await node.create("/fork", { contentType: null, fork: { sourceName: "/source", offset: 1, subOffset: 0 } });
    const source = await tell(node, "/source");
    const fork = await tell(node, "/fork");
    expect(source.forks).toEqual({ count: 1, items: [{ name: "/fork", streamId: fork.streamId, offset: 1, deleted: false }] });
    expect(fork.fork).toEqual({ name: "/source", streamId: source.streamId, offset: 1 });
    expect(fork.endOffset).toBe(1);
    await node.streams.delete("/source");
    expect(await tell(node, "/source")).toMatchObject({ deleted: true, serving: null });
  });

  test("the first producers are told with all digits of their numbers, and how many there are", async () => {
    const node = await open();
    await node.create("/s");
    const big = 2n ** 64n - 1n;
    for (let i = 0; i < ADMIN_ITEMS_MAX + 1; i++) {
      const producer = { producerId: `p${i}`, producerEpoch: big, seq: 0n };
      await node.append("/s", "x", { producer });
    }
    const producers = (await tell(node, "/s")).serving?.producers;
    expect(producers?.count).toBe(ADMIN_ITEMS_MAX + 1);
    expect(producers?.items).toHaveLength(ADMIN_ITEMS_MAX);
    expect(producers?.items[0]).toMatchObject({ id: "p0", epoch: "18446744073709551615", lastSeq: "0" });
  });

  test("a look neither opens a stream nor keeps it alive", async () => {
    const first = await open();
    await first.create("/s", { ttlSeconds: 60n });
    await first.append("/s", "one");
    await first.engine.uploadNow();
    const node = await first.restart();
    nodes.push(node);
    const before = await tell(node, "/s");
    expect(before.serving).toBeNull();
    expect(before.endOffset).toBe(1);
    node.clockOffsetMs = 5000;
    expect((await tell(node, "/s")).deadlineMs).toBe(before.deadlineMs);
    expect(node.streams.isInUse("/s")).toBe(false);
    expect(node.streams.sessionCount).toBe(0);
  });

  test("an object that the store lost is damage, by name", async () => {
    const node = await open();
    await node.create("/s");
    await node.append("/s", "one");
    await node.engine.uploadNow();
    const [key = ""] = [...node.metadata.view.objects()].map((entry) => objectKey("c", entry));
    await node.store.delete([key]);
    const second = await node.restart();
    nodes.push(second);
    await expect(tell(second, "/s")).rejects.toMatchObject({ code: "corrupt", message: expect.stringContaining(key) });
  });
});

test("nodes are told by id with the streams that they own, along the heirs of earlier lives", async () => {
  const first = await open();
  for (const name of ["/a", "/b", "/c"]) await first.create(name);
  await first.streams.delete("/c");
  const node = await first.restart();
  nodes.push(node);
  await node.create("/d");
  const answer = describeNodes(node.metadata.view, 1);
  expect([...Value.Errors(NodesAnswer, answer)]).toEqual([]);
  expect(answer).toMatchObject({
    nodeCount: 1,
    nodes: [{ nodeId: 1, nodeEpoch: 2, local: true, openingCount: 3, placedCount: 0, state: "live" }],
  });
});
