/** What it costs to watch a node: nothing that grows with what is in it, and nothing of its stores (FAULTS Z4). */
import { expect, spyOn, test } from "bun:test";
import { METRICS } from "../../src/admin/metric-definitions.ts";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { EXCLUSIVE_LIFE } from "../../src/node/life-lock.ts";
import { NodeCore } from "../../src/node/node-core.ts";
import { NodeWatch } from "../../src/node/node-watch.ts";
import { ProblemLog } from "../../src/node/problem-log.ts";
import { MemoryDatabase, MemorySqlStore } from "../metadata/memory-sql-store.ts";
import { coreSettings, NO_ADDRESSES } from "../support/core-settings.ts";
import { CountingStore } from "../support/counting-store.ts";
import { ManualClock, settled } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { silentLog } from "../support/silent-log.ts";
import { record } from "../support/test-node.ts";

const SETTINGS = coreSettings();
const STREAMS = 10_000;
const POLLERS = 20;

async function startWatched() {
  const clock = new ManualClock();
  const store = new CountingStore(clock);
  const sql = new MemorySqlStore(new MemoryDatabase(clock));
  const log = new ProblemLog(silentLog, clock);
  const wal = new ObjectWal(store, "c");
  const core = await settled(
    NodeCore.open({ clock, random: new SeededRandom(1), log, sql, store, wal, settings: SETTINGS, lifeLock: EXCLUSIVE_LIFE }),
  );
  await settled(core.start(NO_ADDRESSES));
  const watch = new NodeWatch({ clock, log, core: () => core, storeFigures: () => null, isReady: () => core.isReady });
  watch.start();
  return { clock, store, sql, core, watch };
}

test("twenty who ask at once about ten thousand streams walk none of them, and ask neither store nor database", async () => {
  const { clock, store, sql, core, watch } = await startWatched();
  await clock.advance(4000);
  const before = await watch.metrics();
  const create = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, isClosed: false, fork: null };
  for (let from = 0; from < STREAMS; from += 500) {
    const names = Array.from({ length: 500 }, (_, at) => `/stream/${from + at}`);
    await settled(Promise.all(names.map((name) => core.streams.create({ ...create, name, records: [record("x")] }))));
  }
  const { view } = core.metadata;
  const walks = [
    spyOn(view, "streams"),
    spyOn(view, "objects"),
    spyOn(view, "listStreams"),
    spyOn(view, "registrations"),
    spyOn(core.engine.cache, "pendingSegments"),
    spyOn(core.streams, "movedDeadlines"),
  ];
  const asked = () => [sql.calls.length, store.creates, store.lists, store.reads.size, store.deletes];
  const figures = spyOn(watch, "figures");
  const askedBefore = asked();
  const turns = spyOn(clock, "soon");
  const answers = await Promise.all(
    Array.from({ length: POLLERS }, async () => ({ text: await watch.metrics(), activity: watch.activity(null) })),
  );
  expect(walks.map(({ mock }) => mock.calls.length)).toEqual(walks.map(() => 0));
  expect(asked()).toEqual(askedBefore);
  // One scrape serves those who ask while it is made.
  expect(figures.mock.calls.length).toBe(POLLERS + 1);
  // Others get a turn behind each metric.
  expect(turns.mock.calls.length).toBe(METRICS.length);
  for (const { text, activity } of answers) {
    expect(text).toContain(`\npico_streams ${STREAMS}\n`);
    expect(text.split("\n").length).toBe(before.split("\n").length);
    expect(activity.streams.count).toBe(STREAMS);
    expect(activity.samples.length).toBe(2);
  }
  watch.stop();
  core.abandon();
}, 60_000);

test("a node that is only watched asks its database and its store no more than one that is not", async () => {
  const watched = await startWatched();
  const alone = await startWatched();
  alone.watch.stop();
  for (const { clock } of [watched, alone]) await clock.advance(60_000);
  expect(watched.watch.activity(null).samples.length).toBe(30);
  expect(watched.sql.calls).toEqual(alone.sql.calls);
  expect(watched.store.creates).toBe(alone.store.creates);
  for (const { core, watch } of [watched, alone]) {
    watch.stop();
    core.abandon();
  }
});
