import { expect, test } from "bun:test";
import { holdUpload } from "../support/held-upload.ts";
import { TestNode } from "../support/test-node.ts";

const SELF = { nodeId: 1, nodeEpoch: 1 };

test("the WAL is trimmed up to what is committed, not before and not further", async () => {
  const node = await new TestNode({ settings: { segmentBytes: 1 } }).start(1);
  await node.create("/a");
  for (const body of ["0", "1", "2"]) await node.append("/a", body);
  const upload = holdUpload(node.store);
  const uploading = node.engine.uploadNow();
  await upload.begun;
  await node.append("/a", "3");
  await node.engine.trimmer.trimNow();
  expect(await node.wal.list(SELF, 0)).toEqual([1, 2, 3, 4]);
  upload.letGo();
  await uploading;
  await node.engine.trimmer.trimNow();
  expect(await node.wal.list(SELF, 0)).toEqual([4]);
  node.kill();
});
