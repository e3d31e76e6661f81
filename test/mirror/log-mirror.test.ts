import { beforeEach, expect, test } from "bun:test";
import { decodeLogChunk } from "../../src/mirror/log-chunk.ts";
import { LogMirror } from "../../src/mirror/log-mirror.ts";
import { logKey } from "../../src/mirror/mirror-object.ts";
import { readSnapshotManifest } from "../../src/mirror/snapshot-reader.ts";
import { registerCommand } from "../metadata/state-fixture.ts";
import { codeOf } from "../support/code-of.ts";
import { failure, lostAnswer } from "../support/faulty-store.ts";
import { silentLog } from "../support/silent-log.ts";
import { CLUSTER, IDENTITY, MirrorFixture, NODE } from "./mirror-fixture.ts";

let f: MirrorFixture;
beforeEach(() => {
  f = new MirrorFixture();
});

async function chunk(first: number) {
  return decodeLogChunk((await f.store.inner.read(logKey(CLUSTER, first))) ?? new Uint8Array(), CLUSTER, first);
}

test("the log is in the bucket as it is in the database, and what is there already costs nothing", async () => {
  f.addStreams(4);
  const mirror = f.mirror();
  expect(await mirror.cover(5)).toBeTrue();
  expect(await chunk(1)).toEqual({ rows: [...f.database.statements.readLog(0, 10).rows], unbrokenFrom: 1, clusterIdentity: IDENTITY });
  f.store.takeCalls();
  expect(await mirror.cover(5)).toBeTrue();
  expect(f.store.takeCalls()).toEqual([]);
  f.addStreams(2);
  expect(await mirror.cover(7)).toBeTrue();
  expect(f.store.takeCalls()).toEqual(["create"]);
  expect((await chunk(6)).rows.map(({ index }) => index)).toEqual([6, 7]);
});

test("an index that is not in the log is not covered", async () => {
  expect(await f.mirror().cover(2)).toBeFalse();
});

test("two mirrors of one log take each other's chunks and go on behind them", async () => {
  const [a, b] = [f.mirror(), f.mirror()];
  for (let round = 0; round < 5; round++) {
    f.addStreams(3);
    expect(await Promise.all([a.cover(f.head), b.cover(f.head)])).toEqual([true, true]);
    f.addStreams(1);
    expect(await (round % 2 === 0 ? a : b).cover(f.head)).toBeTrue();
  }
  const rows: number[] = [];
  for (const key of await f.store.keys(`${CLUSTER}/mirror/log/`))
    rows.push(...(await chunk(Number(key.slice(-16)))).rows.map(({ index }) => index));
  expect(rows).toEqual(Array.from({ length: f.head }, (_, at) => at + 1));
});

test("a create whose answer was lost is settled by reading back", async () => {
  f.addStreams(1);
  let lost = 0;
  f.store.onDone = () => {
    if (lost++ === 0) throw lostAnswer();
  };
  const mirror = f.mirror();
  expect(await mirror.cover(2)).toBeTrue();
  expect(lost).toBe(1);
});

test("a store that is away covers nothing, and the next round makes up for it", async () => {
  f.addStreams(1);
  const mirror = f.mirror();
  f.store.onCreate = () => {
    throw failure();
  };
  expect(await codeOf(() => mirror.cover(2))).toBe("storage_failed");
  f.store.onCreate = () => {};
  expect(await mirror.cover(2)).toBeTrue();
});

for (const [what, change] of [
  ["was set back", () => f.loseRows(2)],
  ["was set back by one row", () => f.loseRows(1)],
  [
    "was set back and went on",
    () => {
      f.loseRows(2);
      f.addStreams(5);
    },
  ],
  ["was lost and made anew", () => f.loseDatabase()],
] as const) {
  test(`a database that ${what} is told from the right one by the mirror, before anything is written`, async () => {
    f.addStreams(4);
    const old = f.mirror();
    expect(await old.cover(5)).toBeTrue();
    change();
    f.store.takeCalls();
    const identity = what.includes("anew") ? { clusterIdentity: "f".repeat(32) } : {};
    expect(await codeOf(() => f.mirror(identity).check())).toBe("corrupt");
    if (!what.includes("anew")) expect(await codeOf(() => old.cover(8))).toBe("corrupt");
    expect(f.store.takeCalls().filter((call) => call === "create" || call === "delete")).toEqual([]);
  });
}

test("who goes on with a database that another one replaced meets its rows and stops", async () => {
  f.addStreams(2);
  const zombie = f.mirror();
  expect(await zombie.cover(3)).toBeTrue();
  const rows = f.database.statements.readLog(0, 10).rows;
  const restored = new MirrorFixture(f.store);
  restored.loseDatabase(IDENTITY);
  restored.database.statements.importPart({ snapshotRows: [], snapshotHead: null, logRows: rows });
  restored.add({ nodeId: 1, nodeEpoch: 2 }, [{ type: "reserve_ids" }]);
  expect(await restored.mirror().cover(4)).toBeTrue();
  f.addStreams(1);
  expect(await codeOf(() => zombie.cover(4))).toBe("corrupt");
  // What waits for the log to be covered must not go on meanwhile.
  expect(zombie.figures.coveredIndex).toBe(3);
});

test("a longer chunk of a database that went on is not taken for ours because it begins with our rows", async () => {
  f.addStreams(2);
  const zombie = f.mirror();
  expect(await zombie.cover(3)).toBeTrue();
  f.addStreams(1);
  const rows = f.database.statements.readLog(0, 10).rows;
  const restored = new MirrorFixture(f.store);
  restored.loseDatabase(IDENTITY);
  restored.database.statements.importPart({ snapshotRows: [], snapshotHead: null, logRows: rows });
  restored.add({ nodeId: 1, nodeEpoch: 2 }, [{ type: "reserve_ids" }]);
  expect(await restored.mirror().cover(5)).toBeTrue();
  expect(await codeOf(() => zombie.cover(4))).toBe("corrupt");
  expect(zombie.figures.coveredIndex).toBe(3);
});

test("behind a shorter chunk of another mirror the rest is still copied", async () => {
  f.addStreams(2);
  const [a, b] = [f.mirror(), f.mirror()];
  expect([await a.cover(3), await b.cover(3)]).toEqual([true, true]);
  f.addStreams(1);
  expect(await a.cover(4)).toBeTrue();
  f.addStreams(2);
  expect(await b.cover(6)).toBeTrue();
  expect((await chunk(5)).rows.map(({ index }) => index)).toEqual([5, 6]);
});

test("another database below the same cluster id is told also where no row is left to compare", async () => {
  f.addStreams(2);
  expect(await f.mirror().cover(3)).toBeTrue();
  f.loseDatabase();
  f.add(NODE, [registerCommand(NODE)]);
  f.addStreams(8);
  const index = await f.snapshot();
  f.database.statements.truncateLog(index - 1, 0);
  expect(await codeOf(() => f.mirror({ clusterIdentity: "f".repeat(32) }).check())).toBe("corrupt");
});

test("what a snapshot stands for is the chunks up to its index, also of chunks that another life wrote", async () => {
  const rows = () => {
    const cluster = { clusterId: CLUSTER, clusterIdentity: IDENTITY };
    return new LogMirror({ store: f.store, sql: f.sql, cluster, log: silentLog });
  };
  const writer = rows();
  for (let round = 0; round < 3; round++) {
    f.addStreams(round === 0 ? 1 : 2);
    await writer.copy();
  }
  const reader = rows();
  await reader.find();
  for (const mirror of [writer, reader]) {
    expect([3, 4, 6].map((index) => mirror.weightUpTo(index).chunks)).toEqual([1, 2, 3]);
    mirror.forgetUpTo(4);
    expect([4, 6].map((index) => mirror.weightUpTo(index).chunks)).toEqual([0, 1]);
  }
});

test("a last chunk that reads back damaged is written again under another key", async () => {
  f.addStreams(2);
  expect(await f.mirror().cover(3)).toBeTrue();
  f.addStreams(2);
  expect(await f.mirror().cover(5)).toBeTrue();
  await f.damage(logKey(CLUSTER, 4));
  const mirror = f.mirror();
  expect(await mirror.cover(5)).toBeTrue();
  const repaired = (await f.store.inner.read(logKey(CLUSTER, 4, 1))) ?? new Uint8Array();
  expect(decodeLogChunk(repaired, CLUSTER, 4)).toMatchObject({ unbrokenFrom: 1, rows: [{ index: 4 }, { index: 5 }] });
  f.store.takeCalls();
  expect(await f.mirror().cover(5)).toBeTrue();
  expect(f.store.takeCalls()).not.toContain("create");
  f.addStreams(1);
  expect(await f.mirror().cover(6)).toBeTrue();
});

test("a last chunk that reads back damaged hides no database that was set back", async () => {
  f.addStreams(2);
  expect(await f.mirror().cover(3)).toBeTrue();
  f.addStreams(2);
  expect(await f.mirror().cover(5)).toBeTrue();
  await f.damage(logKey(CLUSTER, 4));
  f.loseRows(3);
  f.addStreams(6);
  expect(await codeOf(() => f.mirror().check())).toBe("corrupt");
});

test("where the log was truncated beyond the mirror, nothing is covered before a snapshot stands for it", async () => {
  f.addStreams(3);
  expect(await f.mirror().cover(4)).toBeTrue();
  f.addStreams(5);
  const index = await f.snapshot();
  f.database.statements.truncateLog(index - 1, 0);
  f.addStreams(1);
  f.store.onCreate = (key) => {
    if (key.endsWith("manifest")) throw failure();
  };
  const mirror = f.mirror();
  expect(await codeOf(() => mirror.cover(f.head))).toBe("storage_failed");
  f.store.onCreate = () => {};
  expect(await mirror.cover(f.head)).toBeTrue();
  expect((await chunk(index)).unbrokenFrom).toBe(index);
  // Another life knows it too.
  expect(await f.mirror().cover(f.head)).toBeTrue();
  // Also one that finds the chunk damaged, and writes its rows again.
  await f.damage(logKey(CLUSTER, index));
  expect(await f.mirror().cover(f.head)).toBeTrue();
  const repaired = (await f.store.inner.read(logKey(CLUSTER, index, 1))) ?? new Uint8Array();
  expect(decodeLogChunk(repaired, CLUSTER, index).unbrokenFrom).toBe(index);
});

test("one row that is missing between mirror and log breaks it", async () => {
  f.addStreams(3);
  expect(await f.mirror().cover(4)).toBeTrue();
  f.addStreams(2);
  const index = await f.snapshot();
  expect(index).toBe(6);
  f.database.statements.truncateLog(index - 1, 0);
  f.addStreams(1);
  expect(await f.mirror().cover(7)).toBeTrue();
  expect((await chunk(index)).unbrokenFrom).toBe(index);
});

test("where another mirror copied what was truncated meanwhile, the log goes on unbroken behind it", async () => {
  f.addStreams(3);
  const mirror = f.mirror();
  expect(await mirror.cover(4)).toBeTrue();
  f.addStreams(5);
  expect(await f.mirror().cover(9)).toBeTrue();
  const index = await f.snapshot();
  f.database.statements.truncateLog(index - 1, 0);
  f.addStreams(1);
  expect(await mirror.cover(10)).toBeTrue();
  expect(await chunk(10)).toMatchObject({ unbrokenFrom: 1, rows: [{ index: 10 }] });
});

test("a row that came behind the last look of a copy under way is covered by another copy", async () => {
  f.addStreams(1);
  const mirror = f.mirror();
  const looked = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const readLog = f.sql.readLog.bind(f.sql);
  let looks = 0;
  f.sql.readLog = async (...words) => {
    const page = await readLog(...words);
    looks += 1;
    if (looks === 2) {
      looked.resolve();
      await goOn.promise;
    }
    return page;
  };
  const first = mirror.cover(2);
  await looked.promise;
  f.addStreams(1);
  const second = mirror.cover(3);
  goOn.resolve();
  expect(await Promise.all([first, second])).toEqual([true, true]);
});

test("a snapshot stands for what came before the unbroken log only if that has its own row", async () => {
  f.addStreams(3);
  expect(await f.snapshot()).toBe(4);
  const before = f.mirror();
  expect(await before.takeSnapshot()).toBeTrue();
  f.addStreams(2);
  expect(await before.cover(6)).toBeTrue();
  for (const first of [1, 5]) await f.damage(logKey(CLUSTER, first));
  const index = await f.snapshot();
  const mirror = f.mirror();
  expect(await mirror.cover(index)).toBeTrue();
  expect((await readSnapshotManifest(f.store, CLUSTER, index))?.head.index).toBe(index);
});
