/** Nodes whose database is lost, and what a restore makes of their bucket. */
import { expect, test } from "bun:test";
import { encodeMarker, markerKey, markerPrefix } from "../../src/engine/store-marker.ts";
import type { WalStore } from "../../src/engine/wal-store.ts";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { STREAM_IDS_PER_RESERVATION } from "../../src/lib/limits.ts";
import { formatRegistration } from "../../src/lib/registration.ts";
import { encodeBatch, encodeCommand } from "../../src/metadata/command-format.ts";
import { checkInvariants } from "../../src/metadata/invariants.ts";
import { MetadataLog } from "../../src/metadata/metadata-log.ts";
import { loadState } from "../../src/metadata/snapshot-loader.ts";
import { decodeLogChunk, encodeLogChunk } from "../../src/mirror/log-chunk.ts";
import { manifestKey } from "../../src/mirror/mirror-object.ts";
import { EXCLUSIVE_LIFE } from "../../src/node/life-lock.ts";
import { NodeCore } from "../../src/node/node-core.ts";
import { type RestoreReport, restoreDatabase } from "../../src/node/restore.ts";
import { MemoryDatabase, MemorySqlStore } from "../metadata/memory-sql-store.ts";
import { registerCommand } from "../metadata/state-fixture.ts";
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
  /** What the log says of the WAL of those that are started. */
  walKind: WalStore["kind"] = "object";
  #seed = 0;

  async start(database = this.database): Promise<NodeCore> {
    const core = await settled(
      NodeCore.open({
        clock: this.clock,
        random: new SeededRandom(++this.#seed),
        log: silentLog,
        sql: new MemorySqlStore(database),
        store: this.store,
        wal: Object.assign(new ObjectWal(this.store, "c"), { kind: this.walKind }),
        settings: SETTINGS,
        lifeLock: EXCLUSIVE_LIFE,
      }),
    );
    await settled(core.start(NO_ADDRESSES));
    return core;
  }

  /** Cuts the first byte off. */
  async damage(keys: readonly string[]): Promise<void> {
    for (const key of keys) {
      const bytes = (await this.store.inner.read(key)) ?? new Uint8Array();
      await this.store.inner.delete([key]);
      await this.store.inner.create(key, bytes.subarray(1));
    }
  }

  /** The database is gone for good, and another one is made of the bucket. */
  async restore(isForced = false, wal: WalStore = new ObjectWal(this.store, "c")): Promise<RestoreReport> {
    await this.clock.advance(5);
    const report = await settled(
      restoreDatabase({
        store: this.store,
        wal,
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

function rowId(database: MemoryDatabase, index: number): string {
  return database.statements.readLog(index - 1, 1).rows[0]?.rowId ?? "";
}

async function bodies(core: NodeCore, name: string): Promise<string[]> {
  return bodiesOf(await settled(core.streams.read({ name, from: "start", recordsMax: 0, bytesMax: 100_000 })));
}

/** `NODE@EPOCH STATE` of every registration in the restored database. */
async function registrations(host: Host): Promise<string[]> {
  const { clock, database } = host;
  const parts = { clock, random: new SeededRandom(0), logger: silentLog, onFatal: () => undefined };
  const log = await settled(MetadataLog.open({ store: new MemorySqlStore(database), ...parts }));
  const found = [...log.view.registrations()].map(({ name, state }) => `${formatRegistration(name)} ${state}`);
  await settled(log.stop());
  return found;
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
  // Written as the streams of the last moment are, and deleted in time: nothing of it is lost.
  await settled(first.streams.create({ ...create, name: "/gone", records: [record("x")] }));
  await settled(first.streams.delete("/gone"));
  await settled(
    first.metadata.propose({ type: "prepare_objects", randoms: ["00ff00ff00ff00ff"], expiresAtMs: host.clock.nowMs() + 1e9 }).outcome,
  );
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

test("ids that are seen in the store are not handed out again, however high", async () => {
  const host = new Host();
  const first = await host.start();
  await host.clock.advance(2000);
  first.abandon();
  const objectId = 2 ** 45;
  await host.store.inner.create(`c/data/00ff00ff00ff00ff/${objectId}`, new Uint8Array(1));
  await host.restore();
  const second = await host.start();
  expect(second.metadata.nextIds.nextObjectId).toBeGreaterThan(objectId);
  second.abandon();
});

test("a restore ends its own life and fences the others, whatever its clock says, and is in the mirror", async () => {
  const host = new Host();
  const first = await host.start();
  const { nodeEpoch } = first.metadata.registration ?? { nodeEpoch: 0 };
  const other = { nodeId: 2, nodeEpoch: 7 };
  const register = { ...registerCommand(other), wal: { kind: "object", description: new ObjectWal(host.store, "c").description } } as const;
  const payload = encodeBatch([encodeCommand(register)]);
  host.database.statements.insertBatch({ rowId: "2".repeat(32), proposer: other, batch: 0, payload, fences: [] });
  await host.clock.advance(2000);
  first.abandon();
  host.clock.stepWall(-3_600_000);
  const { mirroredIndex } = await host.restore();
  expect(await registrations(host)).toEqual([`1@${nodeEpoch} fenced`, `1@${nodeEpoch + 1} ended`, "2@7 fenced"]);
  expect((await host.restore()).mirroredIndex).toBeGreaterThan(mirroredIndex);
});

test("a mirror that goes on while it is restored is read again", async () => {
  const host = new Host();
  const zombie = await host.start();
  await settled(zombie.streams.create({ ...create, name: "/a", records: [record("1")] }));
  await host.clock.advance(2000);
  let rounds = 0;
  host.store.onCreate = async (key) => {
    if (!key.includes("/mirror/") || rounds > 0) return;
    rounds += 1;
    await zombie.streams.create({ ...create, name: "/b", records: [] });
    await zombie.mirror?.cover(zombie.metadata.view.appliedIndex);
  };
  expect(await host.restore()).toMatchObject({ streams: 2, problems: [] });
  zombie.abandon();
});

test("a marker that a living node writes while it is restored is no damage: the mirror is read again, or the node named", async () => {
  for (const isEndless of [false, true]) {
    const host = new Host();
    const zombie = await host.start();
    await host.clock.advance(2000);
    let rounds = 0;
    host.store.onList = async (prefix) => {
      if (prefix !== markerPrefix("c") || (rounds > 0 && !isEndless)) return;
      rounds += 1;
      await zombie.streams.create({ ...create, name: `/${rounds}`, records: [] });
      const { appliedIndex: index } = zombie.metadata.view;
      await zombie.mirror?.cover(index);
      const { clusterIdentity } = zombie.metadata;
      const marker = { index, rowId: rowId(lost, index), clusterIdentity, clusterId: "c" };
      await host.store.inner.create(markerKey("c", index), encodeMarker(marker));
    };
    const lost = host.database;
    if (isEndless) expect(await codeOf(() => host.restore())).toBe("unavailable");
    else expect((await host.restore()).streams).toBe(1);
    zombie.abandon();
  }
});

test("a local WAL that is gone, or a local one in place of a bucket's, is a loss; by force its life is ended", async () => {
  for (const [kind, kindNow] of [
    ["local", "object"],
    ["object", "local"],
  ] as const) {
    const host = new Host();
    host.walKind = kind;
    const first = await host.start();
    const { nodeEpoch } = first.metadata.registration ?? { nodeEpoch: 0 };
    await settled(first.streams.create({ ...create, name: "/a", records: [] }));
    await host.clock.advance(2000);
    first.abandon();
    const wal = Object.assign(new ObjectWal(host.store, "c"), { kind: kindNow });
    expect(await codeOf(() => host.restore(false, wal))).toBe("corrupt");
    await host.restore(true, wal);
    expect(await registrations(host)).toContain(`1@${nodeEpoch} ended`);
  }
});

test("a WAL of a life that the log does not know, below one that it knows, is refused", async () => {
  const host = new Host();
  const first = await host.start();
  const { nodeEpoch } = first.metadata.registration ?? { nodeEpoch: 0 };
  await host.clock.advance(2000);
  first.abandon();
  await host.store.inner.create(`c/wal/1/${nodeEpoch - 1}/0000000000000001`, new Uint8Array(1));
  expect(await codeOf(() => host.restore(true))).toBe("corrupt");
});

test("the last chunk of the log is damaged: what it held is a loss, and with no other one there is nothing to restore", async () => {
  const host = new Host();
  const first = await host.start();
  await settled(first.streams.create({ ...create, name: "/a", records: [] }));
  await host.clock.advance(2000);
  const before = await host.store.keys("c/mirror/log/");
  await settled(first.streams.create({ ...create, name: "/b", records: [] }));
  await host.clock.advance(2000);
  first.abandon();
  const last = (await host.store.keys("c/mirror/log/")).filter((key) => !before.includes(key));
  await host.damage(last);
  expect(await codeOf(() => host.restore())).toBe("corrupt");
  await host.damage(before);
  expect(await codeOf(() => host.restore(true))).toBe("corrupt");
});

test("a mirror whose beginning is gone, and no snapshot for it, is refused with where its log begins", async () => {
  const host = new Host();
  const first = await host.start();
  await host.clock.advance(2000);
  const beginning = await host.store.keys("c/mirror/log/");
  const { index } = first.metadata.stateHash();
  await settled(first.streams.create({ ...create, name: "/a", records: [] }));
  await host.clock.advance(2000);
  first.abandon();
  await host.store.inner.delete(beginning);
  const refused = host.restore().then(
    () => "resolved",
    (error: Error) => error.message,
  );
  expect(await refused).toContain(`breaks off at 0 and goes on at ${index + 1}`);
});

test("two databases mirrored below one prefix are not made into one", async () => {
  const host = new Host();
  const first = await host.start();
  await settled(first.streams.create({ ...create, name: "/a", records: [] }));
  await host.clock.advance(2000);
  const before = await host.store.keys("c/mirror/log/");
  await settled(first.streams.create({ ...create, name: "/b", records: [] }));
  await host.clock.advance(2000);
  first.abandon();
  const [key = ""] = (await host.store.keys("c/mirror/log/")).filter((found) => !before.includes(found));
  const chunk = decodeLogChunk((await host.store.inner.read(key)) ?? new Uint8Array(), "c", Number(key.slice(-16)));
  await host.store.inner.delete([key]);
  await host.store.inner.create(key, encodeLogChunk({ clusterId: "c", clusterIdentity: "e".repeat(32) }, chunk));
  const refused = host.restore(true).then(
    () => "resolved",
    (error: Error) => error.message,
  );
  expect(await refused).toContain("two databases were mirrored");
});

test("a restore from a snapshot and the log behind it gives the same state, and a damaged snapshot gives way", async () => {
  const host = new Host();
  const first = await host.start();
  for (const round of [1, 2]) {
    await settled(first.streams.create({ ...create, name: `/${round}`, records: [record("1")] }));
    for (let i = 0; i < 1200; i++) first.metadata.propose({ type: "resize", nodeId: 1, slots: i + round });
    await host.clock.advance(20_000);
    await settled(first.mirror?.takeSnapshot());
  }
  // That it was created before the other one, only the snapshot tells.
  await settled(first.streams.delete("/1"));
  await host.clock.advance(3000);
  const known = first.metadata.stateHash();
  first.abandon();
  const copy = await host.store.keys("c/mirror/snapshot/");
  expect(copy.filter((key) => key.endsWith("manifest")).length).toBe(2);
  const report = await host.restore();
  expect(report).toMatchObject({ mirroredIndex: known.index, streams: 1, lostStreamCount: 0, problems: [] });
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
  for (const other of [{ rowId: "ab".repeat(16) }, { rowId: rowId(host.database, 2), clusterIdentity: "e".repeat(32) }]) {
    await host.store.inner.create(markerKey("c", 2), encodeMarker({ ...marker, index: 2, ...other }));
    expect(await codeOf(() => host.restore(true))).toBe("corrupt");
    await host.store.inner.delete([markerKey("c", 2)]);
  }
  expect((await host.restore()).streams).toBe(3);
});

test("a data object that is missing is named, and restored without only by force", async () => {
  const host = new Host();
  const first = await host.start();
  await settled(first.streams.create({ ...create, name: "/a", records: [record("1")] }));
  await host.clock.advance(2000);
  await settled(first.stop());
  const [object = ""] = await host.store.keys("c/data/");
  const bytes = (await host.store.inner.read(object)) ?? new Uint8Array();
  await host.store.inner.delete([object]);
  // Cut short it is as good as missing.
  await host.store.inner.create(object, bytes.subarray(1));
  expect(await codeOf(() => host.restore())).toBe("corrupt");
  await host.store.inner.delete([object]);
  const refused = host.restore().then(
    () => "resolved",
    (error: Error) => error.message,
  );
  expect(await refused).toContain(object);
  // Somebody else's, which looks like an object id.
  await host.store.inner.create("c/data/report/9007199254740990", new Uint8Array(1));
  const report = await host.restore(true);
  expect(report.problems.join()).toContain(object);
  expect(report.objects).toBe(0);
  expect(report.orphanCount).toBe(0);
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
