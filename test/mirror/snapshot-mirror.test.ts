import { beforeEach, expect, test } from "bun:test";
import { MIRROR_SNAPSHOT_INTERVAL_MS, OBJECT_DELETE_KEYS_MAX } from "../../src/lib/limits.ts";
import { logKey, manifestKey, partKey } from "../../src/mirror/mirror-object.ts";
import { encodeSnapshotPart, type SnapshotManifest } from "../../src/mirror/mirrored-snapshot.ts";
import { SnapshotMirror } from "../../src/mirror/snapshot-mirror.ts";
import { mirroredRows, readSnapshotManifest } from "../../src/mirror/snapshot-reader.ts";
import type { SnapshotRow } from "../../src/sql/sql-store.ts";
import { codeOf } from "../support/code-of.ts";
import { quiet } from "../support/manual-clock.ts";
import { CLUSTER, IDENTITY, MirrorFixture } from "./mirror-fixture.ts";

let f: MirrorFixture;
beforeEach(() => {
  f = new MirrorFixture();
});

function snapshots(): SnapshotMirror {
  const mirror = f.mirror();
  const cluster = { clusterId: CLUSTER, clusterIdentity: IDENTITY };
  return new SnapshotMirror({ store: f.store, sql: f.sql, cluster, coversLog: (index) => mirror.cover(index) });
}

const held = () => false;

test("a mirrored snapshot has the rows of the stored one, and the log is mirrored up to it", async () => {
  f.addStreams(20);
  const index = await f.snapshot();
  f.addStreams(1);
  const mirror = snapshots();
  expect(await mirror.take()).toBeTrue();
  const manifest = await readSnapshotManifest(f.store, CLUSTER, index);
  const stored: string[] = [];
  const head = f.database.statements.readSnapshot((rows) => {
    for (const { key, value } of rows) stored.push(`${key} ${value.toHex()}`);
  });
  const found: string[] = [];
  if (manifest === null) throw new Error("no manifest");
  expect(manifest).toMatchObject({ head, clusterIdentity: IDENTITY });
  for await (const rows of mirroredRows(f.store, CLUSTER, manifest))
    for (const { key, value } of rows) found.push(`${key} ${value.toHex()}`);
  expect(found.sort()).toEqual(stored.sort());
  expect(await f.store.keys(`${CLUSTER}/mirror/log/`)).toEqual([logKey(CLUSTER, 1)]);
});

test("without a newer stored snapshot nothing is written", async () => {
  f.addStreams(3);
  const mirror = snapshots();
  expect(await mirror.take()).toBeFalse();
  await f.snapshot();
  expect(await mirror.take()).toBeTrue();
  f.store.takeCalls();
  expect(await mirror.take()).toBeFalse();
  expect(f.store.takeCalls()).toEqual([]);
});

test("what lies below the newest complete snapshot but one goes, and what is refused is tried again", async () => {
  const mirror = snapshots();
  const indexes: number[] = [];
  for (let round = 0; round < 3; round++) {
    f.addStreams(3);
    indexes.push(await f.snapshot());
    expect(await mirror.take()).toBeTrue();
    if (round === 2) break;
    await mirror.removeOlder(held);
    expect((await f.store.keys()).filter((key) => key.endsWith("manifest")).length).toBe(round + 1);
  }
  const [first = 0, second = 0, third = 0] = indexes;
  await mirror.removeOlder(() => true);
  f.store.refusal = (key) => (key === manifestKey(CLUSTER, first) ? "AccessDenied" : null);
  await mirror.removeOlder(held);
  expect(mirror.hasOlder).toBeTrue();
  expect(await f.store.keys()).toContain(partKey(CLUSTER, first, 0));
  f.store.refusal = () => null;
  await mirror.removeOlder(held);
  expect(mirror.hasOlder).toBeFalse();
  expect((await f.store.keys(`${CLUSTER}/mirror/snapshot/`)).sort()).toEqual(
    [second, third].flatMap((index) => [partKey(CLUSTER, index, 0), manifestKey(CLUSTER, index)]).sort(),
  );
  // The row at the snapshot's own index proves that log and snapshot belong together.
  expect(await f.store.keys(`${CLUSTER}/mirror/log/`)).toEqual([logKey(CLUSTER, first + 1), logKey(CLUSTER, second + 1)]);
  f.store.takeCalls();
  await mirror.removeOlder(held);
  expect(f.store.takeCalls()).toEqual([]);
});

test("a hold that comes while keys are listed keeps every one of them", async () => {
  const mirror = snapshots();
  for (let round = 0; round < 3; round++) {
    f.addStreams(3);
    await f.snapshot();
    expect(await mirror.take()).toBeTrue();
  }
  let isHeld = false;
  f.store.onList = () => {
    isHeld = true;
  };
  f.store.takeCalls();
  await mirror.removeOlder(() => isHeld);
  expect(f.store.takeCalls()).not.toContain("delete");
  isHeld = false;
  f.store.onList = () => {};
  await mirror.removeOlder(held);
  expect(mirror.hasOlder).toBeFalse();
});

test("a snapshot whose manifest is damaged or missing stands for nothing", async () => {
  const mirror = snapshots();
  const indexes: number[] = [];
  for (let round = 0; round < 2; round++) {
    f.addStreams(3);
    indexes.push(await f.snapshot());
    expect(await mirror.take()).toBeTrue();
  }
  const [first = 0, second = 0] = indexes;
  f.store.hides = (key) => key === manifestKey(CLUSTER, second);
  const other = snapshots();
  await other.look();
  expect(other.newestIndex).toBe(first);
  f.store.hides = () => false;
  await f.damage(manifestKey(CLUSTER, second));
  await other.look();
  expect(other.newestIndex).toBe(first);
});

test("a snapshot that does not read back is not complete, and nothing older is deleted for it", async () => {
  const mirror = snapshots();
  f.addStreams(3);
  await f.snapshot();
  await mirror.take();
  f.addStreams(3);
  const index = await f.snapshot();
  f.store.hides = (key) => key === partKey(CLUSTER, index, 0);
  expect(await codeOf(() => mirror.take())).toBe("storage_failed");
  await mirror.removeOlder(held);
  expect(f.store.takeCalls()).not.toContain("delete");
});

test("a stored snapshot that is damaged is not mirrored", async () => {
  f.addStreams(3);
  await f.snapshot();
  f.database.database.run("UPDATE snapshot_rows SET value = CAST(value || x'00' AS BLOB) WHERE key = (SELECT min(key) FROM snapshot_rows)");
  expect(await codeOf(() => snapshots().take())).toBe("corrupt");
  expect((await f.store.keys()).filter((key) => key.endsWith("manifest"))).toEqual([]);
});

test("no manifest is written before the log is mirrored up to it", async () => {
  f.addStreams(3);
  await f.snapshot();
  const cluster = { clusterId: CLUSTER, clusterIdentity: IDENTITY };
  const mirror = new SnapshotMirror({ store: f.store, sql: f.sql, cluster, coversLog: async () => false });
  expect(await mirror.take()).toBeFalse();
  expect((await f.store.keys()).filter((key) => key.endsWith("manifest"))).toEqual([]);
});

test("a part that is there with other bytes is not taken for ours", async () => {
  f.addStreams(3);
  const index = await f.snapshot();
  await f.store.inner.create(partKey(CLUSTER, index, 0), new Uint8Array(9));
  expect(await codeOf(() => snapshots().take())).toBe("storage_failed");
  expect((await f.store.keys()).filter((key) => key.endsWith("manifest"))).toEqual([]);
});

test("parts that are whole and not those of the manifest, or do not add up to it, are corrupt", async () => {
  f.addStreams(3);
  const index = await f.snapshot();
  await snapshots().take();
  const manifest = await readSnapshotManifest(f.store, CLUSTER, index);
  if (manifest === null) throw new Error("no manifest");
  const read = async (expected: SnapshotManifest) => {
    const all: SnapshotRow[] = [];
    for await (const rows of mirroredRows(f.store, CLUSTER, expected)) all.push(...rows);
    return all;
  };
  const { head, parts } = manifest;
  expect(await codeOf(() => read({ parts, head: { ...head, rowSum: head.rowSum + 1n } }))).toBe("corrupt");
  const rows = await read(manifest);
  await f.store.inner.delete([partKey(CLUSTER, index, 0)]);
  const reversed = encodeSnapshotPart({ clusterId: CLUSTER, clusterIdentity: IDENTITY }, index, 0, rows.toReversed());
  await f.store.inner.create(partKey(CLUSTER, index, 0), reversed);
  expect(await codeOf(() => read(manifest))).toBe("corrupt");
});

test("a snapshot that is asked for twice at once is taken once", async () => {
  f.addStreams(3);
  await f.snapshot();
  const mirror = f.mirror();
  expect(await Promise.all([mirror.takeSnapshot(), mirror.takeSnapshot()])).toEqual([true, true]);
  // A chunk, a part, a manifest.
  expect(f.store.takeCalls().filter((call) => call === "create")).toHaveLength(3);
});

test("more old objects than one request takes all go, in requests of that size", async () => {
  const mirror = snapshots();
  for (let part = 1; part <= 2 * OBJECT_DELETE_KEYS_MAX; part++) await f.store.inner.create(partKey(CLUSTER, 1, part), new Uint8Array(1));
  const indexes: number[] = [];
  for (let round = 0; round < 2; round++) {
    f.addStreams(3);
    indexes.push(await f.snapshot());
    await mirror.take();
  }
  f.store.onDelete = (keys) => expect(keys.length).toBeLessThanOrEqual(OBJECT_DELETE_KEYS_MAX);
  await mirror.removeOlder(held);
  expect(await f.store.keys(`${CLUSTER}/mirror/snapshot/`)).toEqual(
    indexes.flatMap((index) => [partKey(CLUSTER, index, 0), manifestKey(CLUSTER, index)]),
  );
});

test("behind a log that broke off a snapshot is due at once", async () => {
  f.addStreams(3);
  expect(await f.mirror().cover(4)).toBeTrue();
  f.addStreams(5);
  const index = await f.snapshot();
  f.database.statements.truncateLog(index - 1, 0);
  f.addStreams(1);
  const mirror = f.mirror();
  mirror.start();
  await f.clock.advance(MIRROR_SNAPSHOT_INTERVAL_MS * 2);
  await quiet();
  expect(mirror.figures).toMatchObject({ coveredIndex: f.head, snapshotIndex: index });
  const stopped = mirror.stop();
  await f.clock.advance(1);
  await stopped;
});

test("the lease holder mirrors while there is something new, and a node at rest asks nothing", async () => {
  f.addStreams(5);
  const mirror = f.mirror();
  mirror.start();
  await f.clock.advance(MIRROR_SNAPSHOT_INTERVAL_MS * 2);
  await quiet();
  expect(mirror.figures).toMatchObject({ coveredIndex: 6, behindRows: 0 });
  f.store.takeCalls();
  await f.clock.advance(60_000);
  expect(f.store.takeCalls()).toEqual([]);
  f.addStreams(1);
  await f.clock.advance(2000);
  expect(mirror.figures.coveredIndex).toBe(7);
  expect(f.store.takeCalls()).toEqual(["create"]);
  const stopped = mirror.stop();
  await f.clock.advance(1);
  await stopped;
  expect(f.fatal).toEqual([]);
});

test("a node without the lease mirrors nothing by itself", async () => {
  f.addStreams(5);
  const mirror = f.mirror({ isLeaseHeld: false });
  mirror.start();
  await f.clock.advance(10_000);
  expect(f.store.takeCalls()).toEqual([]);
  const stopped = mirror.stop();
  await f.clock.advance(1);
  await stopped;
});
