import { expect, test } from "bun:test";
import { TestNode } from "../support/test-node.ts";

const SELF = { nodeId: 1, nodeEpoch: 1 };

test("the WAL is trimmed up to what is committed, not before and not further", async () => {
  const node = await new TestNode({ settings: { segmentBytes: 1 } }).start(1);
  await node.create("/a");
  for (const body of ["0", "1", "2"]) await node.append("/a", body);
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const { create } = node.store;
  node.store.create = async (key, bytes) => {
    if (key.includes("/data/")) {
      begun.resolve();
      await gate.promise;
    }
    return create.call(node.store, key, bytes);
  };
  const uploading = node.engine.uploadNow();
  await begun.promise;
  await node.append("/a", "3");
  await node.engine.trimmer.trimNow();
  expect(await node.wal.list(SELF, 0)).toEqual([1, 2, 3, 4]);
  gate.resolve();
  await uploading;
  await node.engine.trimmer.trimNow();
  expect(await node.wal.list(SELF, 0)).toEqual([4]);
  node.kill();
});
