import { expect, test } from "bun:test";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { EXCLUSIVE_LIFE } from "../../src/node/life-lock.ts";
import { NodeCore } from "../../src/node/node-core.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { MemoryDatabase, MemorySqlStore } from "../metadata/memory-sql-store.ts";
import { coreSettings, NO_ADDRESSES } from "../support/core-settings.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { silentLog } from "../support/silent-log.ts";
import { record } from "../support/test-node.ts";

const RECORD_BYTES = 1000;
const RECORDS = 100;
/** Of simulated time; a destroyed object stays a little more than one. */
const MINUTES_MAX = 15;

async function startNode() {
  const clock = new ManualClock();
  const store = new MemoryObjectStore(clock);
  const sql = new MemorySqlStore(new MemoryDatabase(clock));
  const components = { clock, random: new SeededRandom(1), log: silentLog, sql, store, wal: new ObjectWal(store, "c") };
  const core = await settled(NodeCore.open({ ...components, settings: coreSettings(), lifeLock: EXCLUSIVE_LIFE }));
  await settled(core.start(NO_ADDRESSES));
  const bytesStored = async () => {
    const { objects } = await store.list("c/data/", { after: null, limit: 1000 });
    return objects.reduce((bytes, { sizeBytes }) => bytes + sizeBytes, 0);
  };
  const pass = async (seconds: number) => {
    for (let second = 0; second < seconds; second++) {
      await clock.advance(1000);
      for (let turn = 0; turn < 10; turn++) await quiet();
    }
  };
  return { core, bytesStored, pass };
}

test("the bytes of a deleted stream leave the store behind the delete of its last fork, without a merge or another lease", async () => {
  const { core, bytesStored, pass } = await startNode();
  const create = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, isClosed: false, fork: null };
  const records = Array.from({ length: RECORDS }, () => record("x".repeat(RECORD_BYTES)));
  await settled(core.streams.create({ ...create, name: "/source", records }));
  await settled(core.engine.uploadNow());
  const fork = { sourceName: "/source", offset: RECORDS, subOffset: 0 };
  for (const name of ["/one", "/two"]) await settled(core.streams.create({ ...create, name, contentType: null, records: [], fork }));
  await settled(core.engine.uploadNow());
  await settled(core.streams.delete("/source"));
  // The first looks at all objects are over.
  await pass(60);
  expect(core.compaction.figures.failureCount).toBe(0);
  await settled(core.streams.delete("/one"));
  await pass(180);
  expect(await bytesStored()).toBeGreaterThan(RECORDS * RECORD_BYTES);
  await settled(core.streams.delete("/two"));
  for (let minute = 0; minute < MINUTES_MAX && (await bytesStored()) > 0; minute++) await pass(60);
  expect(await bytesStored()).toBe(0);
  await settled(core.stop());
});
