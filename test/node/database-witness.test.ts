import { expect, test } from "bun:test";
import { assertDatabaseKnowsStores } from "../../src/node/database-witness.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { codeOf, MemoryWal, OWNER, segmentBytes } from "../engine/wal-fixtures.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { ManualClock } from "../support/manual-clock.ts";

function setUp() {
  const clock = new ManualClock();
  const stores = { metadata: new DirectMetadata(clock), wal: new MemoryWal(), store: new MemoryObjectStore(clock), clusterId: "picomq" };
  return { ...stores, verdict: () => codeOf(assertDatabaseKnowsStores(stores)) };
}

test("an empty database beside empty stores is a new cluster", async () => {
  expect(await setUp().verdict()).toBe("none");
});

test("a WAL of a registration that the database knows, or of one before it, is no contradiction", async () => {
  const { metadata, wal, verdict } = setUp();
  metadata.register(OWNER);
  await wal.create(OWNER, 1, segmentBytes(1, "body"));
  await wal.create({ ...OWNER, nodeEpoch: OWNER.nodeEpoch - 1 }, 1, segmentBytes(1, "body"));
  expect(await verdict()).toBe("none");
});

test("a WAL of a later life of a known node, or of an unknown node, is: the database is older than it", async () => {
  for (const unknown of [
    { ...OWNER, nodeEpoch: OWNER.nodeEpoch + 1 },
    { nodeId: OWNER.nodeId + 1, nodeEpoch: 1 },
  ]) {
    const { metadata, wal, verdict } = setUp();
    metadata.register(OWNER);
    await wal.create(unknown, 1, segmentBytes(1, "body"));
    expect(await verdict()).toBe("corrupt");
  }
});

test("data objects of the cluster beside an empty database are, those of another cluster are not", async () => {
  const { metadata, store, verdict } = setUp();
  await store.create("other/data/0000000000000001/1", Uint8Array.of(1));
  expect(await verdict()).toBe("none");
  await store.create("picomq/data/0000000000000001/1", Uint8Array.of(1));
  expect(await verdict()).toBe("corrupt");
  metadata.register(OWNER);
  expect(await verdict()).toBe("none");
});

test("a store that cannot be listed is no proof: its error passes", async () => {
  const { wal, verdict } = setUp();
  wal.registrations = () => Promise.reject(new TypeError("not now"));
  await expect(verdict()).rejects.toThrow("not now");
});
