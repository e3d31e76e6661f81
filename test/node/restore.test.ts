/** Nodes whose database is lost, and what a restore makes of their bucket. */
import { expect, test } from "bun:test";
import { encodeMarker, markerKey } from "../../src/engine/store-marker.ts";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { STREAM_IDS_PER_RESERVATION } from "../../src/lib/limits.ts";
import { checkInvariants } from "../../src/metadata/invariants.ts";
import { loadState } from "../../src/metadata/snapshot-loader.ts";
import { manifestKey } from "../../src/mirror/mirror-object.ts";
import { EXCLUSIVE_LIFE } from "../../src/node/life-lock.ts";
import { NodeCore } from "../../src/node/node-core.ts";
import { type RestoreReport, restoreDatabase } from "../../src/node/restore.ts";
import { MemoryDatabase, MemorySqlStore } from "../metadata/memory-sql-store.ts";
import { codeOf } from "../support/code-of.ts";
import { coreSettings, NO_ADDRESSES } from "../support/core-settings.ts";
import { FaultyStore, failure } from "../support/faulty-store.ts";
import { ManualClock, settled } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { silentLog } from "../support/silent-log.ts";
import { bodiesOf, record } from "../support/test-node.ts";

const SETTINGS = coreSettings({ isMirrored: true });
const create = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, isClosed: false, fork: null };

/** One bucket, and databases that come and go. */
class Host {
  readonly clock = new ManualClock();
  readonly store = new FaultyStore(this.clock);
  database = new MemoryDatabase(this.clock);
  #seed = 0;

  async start(database = this.database): Promise<NodeCore> {
    const core = await settled(
      NodeCore.open({
        clock: this.clock,
        random: new SeededRandom(++this.#seed),
        log: silentLog,
        sql: new MemorySqlStore(database),
        store: this.store,
        wal: new ObjectWal(this.store, "c"),
        settings: SETTINGS,
        lifeLock: EXCLUSIVE_LIFE,
      }),
    );
    await settled(core.start(NO_ADDRESSES));
    return core;
  }

  /** The database is gone for good, and another one is made of the bucket. */
  async restore(isForced = false): Promise<RestoreReport> {
    await this.clock.advance(5);
    const report = await settled(
      restoreDatabase({
        store: this.store,
        wal: new ObjectWal(this.store, "c"),
        openDatabase: async () => {
          this.database = new MemoryDatabase(this.clock);
          return new MemorySqlStore(this.database);
        },
        clusterId: "c",
        nodeId: 1,
        clock: this.clock,
        random: new SeededRandom(++this.#seed),
        log: silentLog,
        isForced,
        onProgress: () => undefined,
      }),
    );
    await this.clock.advance(5);
    return report;
  }
}

async function bodies(core: NodeCore, name: string): Promise<string[]> {
  return bodiesOf(await settled(core.streams.read({ name, from: "start", recordsMax: 0, bytesMax: 100_000 })));
}

async function append(core: NodeCore, name: string, ...texts: string[]): Promise<void> {
  const request = { name, close: false, producer: null, matchTail: null, streamSeq: null, mimeType: null };
  await settled(core.streams.append({ ...request, records: texts.map((text) => record(text)) }));
}

test("a node on a restored database has every acknowledged record of the streams that the mirror knew", async () => {
  const host = new Host();
  const first = await host.start();
  await settled(first.streams.create({ ...create, name: "/a", records: [record("1")] }));
  await settled(first.streams.create({ ...create, name: "/b", records: [record("1")] }));
  await append(first, "/a", "2", "3");
  await host.clock.advance(2000);
  const known = first.metadata.stateHash();
  expect(first.mirror?.figures).toMatchObject({ coveredIndex: known.index, behindRows: 0 });
  // In the last moment: records of known streams, and a stream that the mirror does not get.
  host.store.onCreate = (key) => {
    if (key.includes("/mirror/")) throw failure();
  };
  await append(first, "/a", "4");
  await settled(first.streams.create({ ...create, name: "/late", records: [record("x"), record("y")] }));
  first.abandon();
  host.store.onCreate = () => {};

  const report = await host.restore();
  expect(report).toMatchObject({
    snapshotIndex: 0,
    mirroredIndex: known.index,
    stateHash: known.rowSum.toString(16).padStart(16, "0"),
    streams: 2,
    takenBack: [],
    lostStreamCount: 1,
    orphanCount: 0,
    problems: [],
  });
  expect(report.lostStreams).toEqual([{ streamId: expect.any(Number), records: 2 }]);
  expect(report.walSegments).toBeGreaterThan(0);
  const second = await host.start();
  expect(await bodies(second, "/a")).toEqual(["1", "2", "3", "4"]);
  expect(await bodies(second, "/b")).toEqual(["1"]);
  await append(second, "/a", "5");
  await host.clock.advance(5000);
  await settled(second.stop());
  const state = await loadState(new MemorySqlStore(host.database));
  checkInvariants(state);
});

test("nothing that was handed out in the lost seconds is handed out again", async () => {
  const host = new Host();
  const first = await host.start();
  await host.clock.advance(2000);
  const mirrored = first.metadata.nextIds;
  host.store.onCreate = (key) => {
    if (key.includes("/mirror/")) throw failure();
  };
  for (let i = 0; i < 20; i++) await settled(first.metadata.propose({ type: "reserve_ids" }).outcome);
  const randoms = Array.from({ length: 50 }, () => "00ff00ff00ff00ff");
  await settled(first.metadata.propose({ type: "prepare_objects", randoms, expiresAtMs: host.clock.nowMs() + 1e9 }).outcome);
  const lost = first.metadata.nextIds;
  const epoch = first.metadata.registration?.nodeEpoch ?? 0;
  first.abandon();
  host.store.onCreate = () => {};
  await host.restore();
  const second = await host.start();
  expect(lost.nextStreamId).toBeGreaterThan(mirrored.nextStreamId);
  expect(second.metadata.nextIds.nextStreamId).toBeGreaterThan(lost.nextStreamId + STREAM_IDS_PER_RESERVATION);
  expect(second.metadata.nextIds.nextObjectId).toBeGreaterThan(lost.nextObjectId);
  expect(second.metadata.registration?.nodeEpoch).toBeGreaterThan(epoch + 1);
  second.abandon();
});

test("a restore from a snapshot and the log behind it gives the same state, and a damaged snapshot gives way", async () => {
  const host = new Host();
  const first = await host.start();
  for (const round of [1, 2]) {
    for (let i = 0; i < 1200; i++) first.metadata.propose({ type: "resize", nodeId: 1, slots: i + round });
    await host.clock.advance(20_000);
    await settled(first.mirror?.takeSnapshot());
    await settled(first.streams.create({ ...create, name: `/${round}`, records: [record("1")] }));
    await host.clock.advance(3000);
  }
  const known = first.metadata.stateHash();
  first.abandon();
  const copy = await host.store.keys("c/mirror/snapshot/");
  expect(copy.filter((key) => key.endsWith("manifest")).length).toBe(2);
  const report = await host.restore();
  expect(report).toMatchObject({ mirroredIndex: known.index, streams: 2, problems: [] });
  expect(report.snapshotIndex).toBeGreaterThan(0);
  expect(report.stateHash).toBe(known.rowSum.toString(16).padStart(16, "0"));
  await host.store.inner.delete([manifestKey("c", report.snapshotIndex).replace("manifest", "000000")]);
  const again = await host.restore();
  expect(again.snapshotIndex).toBeLessThan(report.snapshotIndex);
  expect(again.problems.join()).toContain(`the snapshot at ${report.snapshotIndex} could not be used`);
  const second = await host.start();
  expect(await bodies(second, "/2")).toEqual(["1"]);
  second.abandon();
});

test("a process that goes on with the lost database never acknowledges again once the restored node serves", async () => {
  const host = new Host();
  const zombie = await host.start();
  await settled(zombie.streams.create({ ...create, name: "/a", records: [record("1")] }));
  await host.clock.advance(2000);
  const lost = host.database;
  await host.restore();
  expect(host.database).not.toBe(lost);
  // Between the restore and the start it still may; what it takes is in its WAL, and is replayed.
  await append(zombie, "/a", "2");
  const second = await host.start();
  const late = codeOf(() => append(zombie, "/a", "3"));
  await host.clock.advance(2000);
  expect(await late).not.toBeNull();
  expect(await bodies(second, "/a")).toEqual(["1", "2"]);
  await append(second, "/a", "4");
  await host.clock.advance(20_000);
  expect(zombie.phase).toBe("stopped");
  expect(second.phase).toBe("serving");
  second.abandon();
  const report = await host.restore();
  expect(report.problems).toEqual([]);
});

test("a registration whose command was lost is taken back with what is in its WAL", async () => {
  const host = new Host();
  const first = await host.start();
  await settled(first.streams.create({ ...create, name: "/a", records: [record("1")] }));
  // Else what the second life uploads would leave the WAL on the word of commands that are lost below.
  await settled(first.metadata.propose({ type: "hold_removal", untilMs: host.clock.nowMs() + 3_600_000 }).outcome);
  await host.clock.advance(2000);
  const mirrored = await host.store.keys("c/mirror/");
  first.abandon();
  await host.clock.advance(10);
  const second = await host.start();
  await append(second, "/a", "2");
  const { nodeEpoch } = second.metadata.registration ?? { nodeEpoch: 0 };
  second.abandon();
  // The mirror as it was before the second life, as if it had been copied back.
  const newer = (await host.store.keys("c/mirror/")).filter((key) => !mirrored.includes(key));
  await host.store.inner.delete(newer);
  const report = await host.restore();
  expect(report.takenBack).toEqual([`1@${nodeEpoch}`]);
  const third = await host.start();
  expect(await bodies(third, "/a")).toEqual(["1", "2"]);
  third.abandon();
});

test("a bucket without a mirror, a hole in it, and a marker above it are refused by name", async () => {
  const host = new Host();
  expect(await codeOf(() => host.restore())).toBe("settings");
  const first = await host.start();
  await settled(first.streams.create({ ...create, name: "/a", records: [record("1")] }));
  await host.clock.advance(2000);
  await settled(first.streams.create({ ...create, name: "/b", records: [] }));
  await host.clock.advance(2000);
  await settled(first.streams.create({ ...create, name: "/c", records: [] }));
  await host.clock.advance(2000);
  first.abandon();
  const [, middle = ""] = await host.store.keys("c/mirror/log/");
  const bytes = (await host.store.inner.read(middle)) ?? new Uint8Array();
  await host.store.inner.delete([middle]);
  host.store.takeCalls();
  for (const isForced of [false, true]) expect(await codeOf(() => host.restore(isForced))).toBe("corrupt");
  expect(host.store.takeCalls().filter((call) => call === "create" || call === "delete")).toEqual([]);
  await host.store.inner.create(middle, bytes);
  const marker = { index: 500, rowId: "ab".repeat(16), clusterIdentity: first.metadata.clusterIdentity, clusterId: "c" };
  await host.store.inner.create(markerKey("c", 500), encodeMarker(marker));
  expect(await codeOf(() => host.restore(true))).toBe("corrupt");
  // One that is listed and not found says nothing, least of all that the mirror reaches it.
  host.store.hides = (key) => key === markerKey("c", 500);
  expect(await codeOf(() => host.restore(true))).toBe("storage_failed");
  host.store.hides = () => false;
  await host.store.inner.delete([markerKey("c", 500)]);
  expect((await host.restore()).streams).toBe(3);
});

test("a data object that is missing is named, and restored without only by force", async () => {
  const host = new Host();
  const first = await host.start();
  await settled(first.streams.create({ ...create, name: "/a", records: [record("1")] }));
  await host.clock.advance(2000);
  await settled(first.stop());
  const [object = ""] = await host.store.keys("c/data/");
  await host.store.inner.delete([object]);
  const refused = host.restore().then(
    () => "resolved",
    (error: Error) => error.message,
  );
  expect(await refused).toContain(object);
  const report = await host.restore(true);
  expect(report.problems.join()).toContain(object);
  expect(report.objects).toBe(0);
});

test("a start on an empty database beside a mirror is refused, and says how to restore it", async () => {
  const host = new Host();
  const first = await host.start();
  await host.clock.advance(2000);
  first.abandon();
  const empty = new MemoryDatabase(host.clock);
  const refused = host.start(empty).then(
    () => "resolved",
    (error: Error) => error.message,
  );
  expect(await refused).toContain("pico restore");
});

test("an empty WAL in a bucket of another name is taken for a copy only by force, and then a node starts on it", async () => {
  const host = new Host();
  const first = await host.start();
  // Without records nothing of it goes to the WAL.
  await settled(first.streams.create({ ...create, name: "/a", records: [] }));
  await host.clock.advance(2000);
  expect(await host.store.keys("c/wal/")).toEqual([]);
  const former = host.store.description;
  Object.assign(host.store, { description: "copy:" });
  host.store.takeCalls();
  const refused = host.restore().then(
    () => "resolved",
    (error: Error) => error.message,
  );
  expect(await refused).toContain(`was in the WAL ${former}, below c/wal/, and copy:, below c/wal/ has nothing of it`);
  expect(host.store.takeCalls().filter((call) => call === "create" || call === "delete")).toEqual([]);
  const report = await host.restore(true);
  expect(report.problems).toEqual([expect.stringContaining("name that WAL with --wal")]);
  // It is the same bucket: whoever still writes there is closed out already.
  const late = codeOf(() => append(first, "/a", "late"));
  await host.clock.advance(2000);
  expect(await late).toBe("durability");
  // What was told once is settled.
  expect((await host.restore()).problems).toEqual([]);
  const second = await host.start();
  await append(second, "/a", "1");
  expect(await bodies(second, "/a")).toEqual(["1"]);
  second.abandon();
});

test("a WAL with something in it may have come with its bucket to any name", async () => {
  const host = new Host();
  const first = await host.start();
  await settled(first.streams.create({ ...create, name: "/a", records: [record("1")] }));
  await host.clock.advance(2000);
  first.abandon();
  Object.assign(host.store, { description: "copy:" });
  expect((await host.restore()).problems).toEqual([]);
  const second = await host.start();
  expect(await bodies(second, "/a")).toEqual(["1"]);
  second.abandon();
});
