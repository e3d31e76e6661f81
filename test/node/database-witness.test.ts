import { expect, test } from "bun:test";
import { encodeMarker, markerKey, type StoreMarker } from "../../src/engine/store-marker.ts";
import type { Command } from "../../src/metadata/command.ts";
import { assertDatabaseFitsStores } from "../../src/node/database-witness.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { codeOf, MemoryWal, OWNER, segmentBytes } from "../engine/wal-fixtures.ts";
import { PLAIN, summaryOf } from "../metadata/state-fixture.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { ManualClock } from "../support/manual-clock.ts";

const IDENTITY = "0123456789abcdef0123456789abcdef";

function setUp() {
  const clock = new ManualClock();
  const stores = {
    metadata: new DirectMetadata(clock),
    wal: new MemoryWal(),
    store: new MemoryObjectStore(clock),
    clusterId: "picomq",
    clusterIdentity: IDENTITY,
    rowIdAt: async (index: number): Promise<string | null> => String(index).padStart(32, "0"),
    nodeId: OWNER.nodeId,
  };
  stores.metadata.walLocation = { kind: "object", description: "memory" };
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
  metadata.walLocation = { kind: "local", description: "memory" };
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
  expect(await verdict()).toBe("corrupt");
  await end();
  expect(await verdict()).toBe("none");
  const inStore = setUp();
  inStore.metadata.register(OWNER);
  await inStore.metadata.propose({ type: "commit", wal: OWNER, from: 0, to: 1, objects: [], closedStreams: [] }).outcome;
  expect(await inStore.verdict()).toBe("none");
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
  // The first object of all may come between the list and what the log says of it.
  const catchUp = metadata.catchUp.bind(metadata);
  metadata.catchUp = async () => {
    await store.create("picomq/data/0000000000000001/1", Uint8Array.of(1));
    await catchUp();
  };
  expect(await verdict()).toBe("none");
});

test("a store that cannot be listed is no proof: its error passes", async () => {
  const { wal, verdict } = setUp();
  wal.registrations = () => Promise.reject(new TypeError("not now"));
  await expect(verdict()).rejects.toThrow("not now");
});

async function withMarker(index: number, changes: Partial<StoreMarker> = {}) {
  const stores = setUp();
  const { metadata, store } = stores;
  metadata.register(OWNER);
  for (let row = 2; row <= 5; row++) await metadata.propose({ type: "reserve_ids" }).outcome;
  const marker = { index, rowId: String(index).padStart(32, "0"), clusterIdentity: IDENTITY, clusterId: "picomq", ...changes };
  await store.create(markerKey("picomq", index), encodeMarker(marker));
  return stores;
}

test("a log that reaches the highest marker, with the row id that it names, is no contradiction", async () => {
  for (const index of [1, 4, 5]) expect(await (await withMarker(index)).verdict()).toBe("none");
});

test("a log that ends below the highest marker is older than what is stored, however good a lower marker is", async () => {
  const { store, verdict } = await withMarker(6);
  expect(await verdict()).toBe("corrupt");
  await store.create(
    markerKey("picomq", 2),
    encodeMarker({ index: 2, rowId: "0".repeat(31).concat("2"), clusterIdentity: IDENTITY, clusterId: "picomq" }),
  );
  expect(await verdict()).toBe("corrupt");
});

test("another row at the marker's index is another history; a truncated one cannot be compared", async () => {
  const { metadata, store, wal } = await withMarker(4, { rowId: "f".repeat(32) });
  const stores = { metadata, store, wal, clusterId: "picomq", clusterIdentity: IDENTITY, nodeId: OWNER.nodeId };
  expect(await codeOf(assertDatabaseFitsStores({ ...stores, rowIdAt: async (index) => String(index).padStart(32, "0") }))).toBe("corrupt");
  expect(await codeOf(assertDatabaseFitsStores({ ...stores, rowIdAt: async () => null }))).toBe("none");
});

test("a marker of another database, a damaged one, and one that cannot be read each refuse the start", async () => {
  expect(await (await withMarker(3, { clusterIdentity: "f".repeat(32) })).verdict()).toBe("corrupt");
  const damaged = await withMarker(3);
  await damaged.store.create(markerKey("picomq", 4), Uint8Array.of(1));
  expect(await damaged.verdict()).toBe("corrupt");
  const silent = await withMarker(3);
  silent.store.read = () => Promise.reject(new TypeError("not now"));
  await expect(silent.verdict()).rejects.toThrow("not now");
});

test("an empty database beside a marker is older than what is stored, though there is no object", async () => {
  const { store, verdict } = setUp();
  await store.create(
    markerKey("picomq", 1),
    encodeMarker({ index: 1, rowId: "1".repeat(32), clusterIdentity: IDENTITY, clusterId: "picomq" }),
  );
  expect(await verdict()).toBe("corrupt");
});

test("a life that was not ended is given up from the place of its WAL only, or where something of it is", async () => {
  const { metadata, wal, verdict } = setUp();
  metadata.register(OWNER);
  expect(await verdict()).toBe("none");
  Object.assign(wal, { description: "somewhere else" });
  expect(await verdict()).toBe("corrupt");
  Object.assign(wal, { kind: "local", description: "memory" });
  expect(await verdict()).toBe("corrupt");
  wal.of(OWNER);
  expect(await verdict()).toBe("none");
});

test("a life that was ended, or another node's, is no reason to look for its WAL", async () => {
  const stores = setUp();
  stores.metadata.register(OWNER);
  Object.assign(stores.wal, { description: "somewhere else" });
  expect(await stores.verdict()).toBe("corrupt");
  expect(await codeOf(assertDatabaseFitsStores({ ...stores, nodeId: OWNER.nodeId + 1 }))).toBe("none");
  expect((await stores.metadata.propose({ type: "end", victim: OWNER, lastNumber: 0, heir: null }).outcome).applied).toBe(true);
  expect(await stores.verdict()).toBe("none");
});
