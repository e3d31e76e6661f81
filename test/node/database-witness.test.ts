import { expect, test } from "bun:test";
import type { Command } from "../../src/metadata/command.ts";
import { assertDatabaseFitsStores } from "../../src/node/database-witness.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { codeOf, MemoryWal, OWNER, segmentBytes } from "../engine/wal-fixtures.ts";
import { PLAIN, summaryOf } from "../metadata/state-fixture.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { ManualClock } from "../support/manual-clock.ts";

function setUp() {
  const clock = new ManualClock();
  const stores = {
    metadata: new DirectMetadata(clock),
    wal: new MemoryWal(),
    store: new MemoryObjectStore(clock),
    clusterId: "picomq",
    nodeId: OWNER.nodeId,
  };
  return { ...stores, verdict: () => codeOf(assertDatabaseFitsStores(stores)) };
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

/** A life on local disk behind one before it; `commit` says that the first segment of its WAL is uploaded. */
function lifeOnDisk() {
  const stores = setUp();
  const wal = Object.assign(stores.wal, { kind: "local" as const });
  const { metadata } = stores;
  metadata.register({ ...OWNER, nodeEpoch: OWNER.nodeEpoch - 1 });
  const streamId = metadata.register(OWNER);
  const propose = async (command: Command) => expect((await metadata.propose(command).outcome).applied).toBe(true);
  return {
    ...stores,
    wal,
    create: () => propose({ type: "create_stream", streamId, name: "/a", settings: PLAIN, isClosed: false, fork: null }),
    commit: () => propose({ type: "commit", wal: OWNER, from: 0, to: 1, objects: [], closedStreams: [] }),
    end: () => propose({ type: "end", victim: OWNER, lastNumber: 1, heir: null }),
  };
}

test("a life on local disk without a file is no contradiction, with streams or without, until a commit says that it wrote", async () => {
  const { wal, create, commit, verdict } = lifeOnDisk();
  await create();
  expect(await verdict()).toBe("none");
  await commit();
  expect(await verdict()).toBe("corrupt");
  wal.of(OWNER);
  expect(await verdict()).toBe("none");
});

test("nor is one that has ended, that is another node's, or whose WAL is in an object store and trimmed", async () => {
  const { metadata, commit, end, verdict } = lifeOnDisk();
  await commit();
  expect(await codeOf(assertDatabaseFitsStores({ ...lifeOnDisk(), metadata, nodeId: OWNER.nodeId + 1 }))).toBe("none");
  expect(await codeOf(assertDatabaseFitsStores({ ...setUp(), metadata }))).toBe("none");
  expect(await verdict()).toBe("corrupt");
  await end();
  expect(await verdict()).toBe("none");
});

test("live objects in the database beside a store without any of the cluster are: it is another store", async () => {
  const { metadata, store, verdict } = setUp();
  metadata.register(OWNER);
  const expiresAtMs = Number.MAX_SAFE_INTEGER;
  expect((await metadata.propose({ type: "prepare_objects", randoms: ["0000000000000001"], expiresAtMs }).outcome).applied).toBe(true);
  expect(await verdict()).toBe("none");
  const [object] = metadata.view.objects();
  const summary = summaryOf(object?.objectId ?? 0);
  const commit = { type: "commit", wal: OWNER, from: 0, to: 1, objects: [summary], closedStreams: [] } as const;
  expect((await metadata.propose(commit).outcome).applied).toBe(true);
  await store.create("other/data/0000000000000001/1", Uint8Array.of(1));
  expect(await verdict()).toBe("corrupt");
  await store.create("picomq/data/0000000000000001/1", Uint8Array.of(1));
  expect(await verdict()).toBe("none");
});

test("a store that cannot be listed is no proof: its error passes", async () => {
  const { wal, verdict } = setUp();
  wal.registrations = () => Promise.reject(new TypeError("not now"));
  await expect(verdict()).rejects.toThrow("not now");
});
