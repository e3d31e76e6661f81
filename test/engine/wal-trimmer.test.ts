import { beforeEach, expect, test } from "bun:test";
import { RemovalGate } from "../../src/engine/removal-gate.ts";
import { ALL_NUMBERS, type WalStore } from "../../src/engine/wal-store.ts";
import { LocalDiskWal } from "../../src/engine/wal-store-local.ts";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { WalTrimmer } from "../../src/engine/wal-trimmer.ts";
import { LATE_WRITE_MS, WAL_TRIM_INTERVAL_MS } from "../../src/lib/limits.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import { codeOf } from "../support/code-of.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { FaultyStore, failure } from "../support/faulty-store.ts";
import { ManualClock, settled } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { silentLog } from "../support/silent-log.ts";
import { segmentBytes, tombstoneBytes } from "./wal-fixtures.ts";
import { MemoryDirectory } from "./wal-memory-directory.ts";

const FIRST = { nodeId: 1, nodeEpoch: 1 };
const SECOND = { nodeId: 1, nodeEpoch: 2 };
const OTHER = { nodeId: 2, nodeEpoch: 1 };

let clock: ManualClock;
let store: FaultyStore;
let metadata: DirectMetadata;
let wal: ObjectWal;
let isCleaner: boolean;
let isCovered: boolean;
let trimmer: WalTrimmer;
let fatal: unknown[];

beforeEach(() => {
  clock = new ManualClock();
  store = new FaultyStore(clock);
  metadata = new DirectMetadata(clock);
  wal = new ObjectWal(store, "c");
  isCleaner = true;
  isCovered = true;
  fatal = [];
  trimmer = newTrimmer();
});

function newTrimmer(trimmed: WalStore = wal): WalTrimmer {
  const cover = async () => isCovered;
  const gate = new RemovalGate({ store, clusterId: "c", clusterIdentity: "0".repeat(32), metadata, log: silentLog, cover });
  const onFatal = (error: unknown) => fatal.push(error);
  return new WalTrimmer({ clock, log: silentLog, metadata, wal: trimmed, gate, isCleaner: () => isCleaner, onFatal });
}

async function write(registration: RegistrationName, ...numbers: number[]): Promise<void> {
  for (const number of numbers) await wal.create(registration, number, segmentBytes(number, "body", { registration }));
}

/** Commits and ends the registration, as a graceful stop of its own does. */
async function end(registration: RegistrationName, lastNumber: number): Promise<void> {
  const own = metadata.registration;
  metadata.registration = registration;
  if (lastNumber > 0)
    await metadata.propose({ type: "commit", wal: registration, from: 0, to: lastNumber, objects: [], closedStreams: [] }).outcome;
  const outcome = await metadata.propose({ type: "end", victim: registration, lastNumber, heir: null }).outcome;
  expect(outcome.applied).toBeTrue();
  metadata.registration = own;
}

test("what is wanted goes behind a marker at the index where it was wanted, and nothing above it", async () => {
  metadata.register(FIRST);
  await write(FIRST, 1, 2, 3);
  trimmer.want(FIRST, 2);
  await trimmer.trimNow();
  expect(await store.keys("c/")).toEqual(["c/marker/0000000000000001", "c/wal/1/1/0000000000000003"]);
  expect(store.calls.findIndex((call) => call.startsWith("create c/marker"))).toBeLessThan(
    store.calls.findIndex((call) => call.startsWith("delete")),
  );
});

test("a trim that is held back, fails or is refused is tried again by the loop, and then nothing is asked for any more", async () => {
  metadata.register(FIRST);
  await write(FIRST, 1, 2, 3);
  isCovered = false;
  trimmer.start();
  trimmer.want(FIRST, 3);
  await clock.advance(WAL_TRIM_INTERVAL_MS);
  expect(await wal.list(FIRST, 0)).toEqual([1, 2, 3]);
  isCovered = true;
  store.onList = () => {
    throw failure();
  };
  await clock.advance(WAL_TRIM_INTERVAL_MS);
  expect(trimmer.record.lastError).toBe("the store is away");
  store.onList = () => {};
  store.refusal = (key) => (key.endsWith("2") ? "AccessDenied" : null);
  await clock.advance(WAL_TRIM_INTERVAL_MS);
  expect(await wal.list(FIRST, 0)).toEqual([2]);
  expect(trimmer.record.lastError).toContain("AccessDenied");
  store.refusal = () => null;
  await clock.advance(WAL_TRIM_INTERVAL_MS);
  expect(await wal.list(FIRST, 0)).toEqual([]);
  store.takeCalls();
  await clock.advance(10 * WAL_TRIM_INTERVAL_MS);
  expect(store.takeCalls()).toEqual([]);
  expect(fatal).toEqual([]);
  await trimmer.stop();
});

test("no marker, no trim: a marker that the store refuses keeps every segment", async () => {
  metadata.register(FIRST);
  await write(FIRST, 1);
  store.onCreate = () => {
    throw failure();
  };
  trimmer.want(FIRST, 1);
  expect(await codeOf(() => trimmer.trimNow())).toBe("storage_failed");
  expect(store.calls.some((call) => call.startsWith("delete"))).toBeFalse();
  expect(trimmer.wantedCount).toBe(1);
});

test("a hold that comes while segments are listed keeps every one of them", async () => {
  metadata.register(FIRST);
  await write(FIRST, 1, 2);
  store.onList = async (prefix) => {
    if (!prefix.startsWith("c/wal/")) return;
    await metadata.propose({ type: "hold_removal", untilMs: clock.nowMs() + 60_000 }).outcome;
  };
  trimmer.want(FIRST, 2);
  expect(await codeOf(() => trimmer.trimNow())).toBe("storage_failed");
  expect(await wal.list(FIRST, 0)).toEqual([1, 2]);
  expect(trimmer.wantedCount).toBe(1);
});

test("one registration whose trim fails keeps the others waiting for a round, not for ever", async () => {
  metadata.register(FIRST);
  metadata.register(SECOND);
  await write(FIRST, 1);
  await write(SECOND, 1);
  store.onList = (prefix) => {
    if (prefix === "c/wal/1/1/") throw failure();
  };
  trimmer.want(FIRST, 1);
  trimmer.want(SECOND, 1);
  expect(await codeOf(() => trimmer.trimNow())).toBe("storage_failed");
  expect(await wal.list(SECOND, 0)).toEqual([1]);
  expect(await codeOf(() => trimmer.trimNow())).toBe("storage_failed");
  expect(await wal.list(SECOND, 0)).toEqual([]);
});

test("a higher trim that comes while one is under way is not lost", async () => {
  metadata.register(FIRST);
  await write(FIRST, 1, 2);
  trimmer.want(FIRST, 1);
  const held = Promise.withResolvers<void>();
  store.onDelete = () => held.promise;
  const round = trimmer.trimNow();
  await clock.advance(0);
  trimmer.want(FIRST, 2);
  held.resolve();
  await settled(round);
  expect(trimmer.wantedCount).toBe(1);
  await trimmer.trimNow();
  expect(await wal.list(FIRST, 0)).toEqual([]);
  expect(trimmer.wantedCount).toBe(0);
});

test("what the ended of all nodes left goes once no write of theirs can come any more; tombstones and the living stay", async () => {
  for (const name of [FIRST, OTHER]) metadata.register(name);
  await write(FIRST, 1, 2);
  await write(OTHER, 1, 3);
  await wal.create(OTHER, 2, tombstoneBytes(2, { registration: OTHER }));
  await write({ nodeId: 9, nodeEpoch: 9 }, 1);
  await end(OTHER, 1);
  await trimmer.trimNow();
  expect(store.calls.some((call) => call.startsWith("delete"))).toBeFalse();
  await clock.advance(LATE_WRITE_MS);
  await trimmer.trimNow();
  // Nobody knows 9@9: that is no reason to delete.
  expect((await store.keys("c/wal/")).map((key) => key.slice("c/wal/".length))).toEqual([
    "1/1/0000000000000001",
    "1/1/0000000000000002",
    "2/1/0000000000000002",
    "9/9/0000000000000001",
  ]);
  store.takeCalls();
  await trimmer.trimNow();
  // It looks whether something came in the place of what it trimmed, and then never again.
  expect(store.takeCalls()).toEqual(["list"]);
  await trimmer.trimNow();
  expect(store.takeCalls()).toEqual([]);
});

test("on local disk what the ended left goes at once: nobody writes there late", async () => {
  const directory = new MemoryDirectory();
  const openLocal = () => LocalDiskWal.open({ directory, random: new SeededRandom(1), firstFileBytes: 65_536, fileBytes: 65_536 });
  const before = await openLocal();
  metadata.register(FIRST);
  await before.begin(FIRST);
  await before.create(FIRST, 1, segmentBytes(1, "body", { registration: FIRST }));
  await before.close();
  await end(FIRST, 1);
  metadata.register(SECOND);
  const local = await openLocal();
  trimmer = newTrimmer(local);
  await trimmer.trimNow();
  expect([...directory.files.keys()]).toEqual([]);
  await local.close();
});

test("who is not the cleaner leaves what others left, and looks for nothing", async () => {
  metadata.register(OTHER);
  await write(OTHER, 1);
  await end(OTHER, 1);
  await clock.advance(LATE_WRITE_MS);
  isCleaner = false;
  store.takeCalls();
  await trimmer.trimNow();
  expect(store.takeCalls()).toEqual([]);
  isCleaner = true;
  await trimmer.trimNow();
  expect(await wal.list(OTHER, 0)).toEqual([]);
});

test("a list that fails is no proof that nothing is left", async () => {
  metadata.register(OTHER);
  await write(OTHER, 1);
  await end(OTHER, 1);
  await clock.advance(LATE_WRITE_MS);
  store.onList = () => {
    throw failure();
  };
  expect(await codeOf(() => trimmer.trimNow())).toBe("storage_failed");
  store.onList = () => {};
  await trimmer.trimNow();
  expect(await wal.list(OTHER, 0)).toEqual([]);
});

test("all of a registration goes behind its end", async () => {
  metadata.register(FIRST);
  await write(FIRST, 1, 2, 3);
  await end(FIRST, 3);
  trimmer.want(FIRST, ALL_NUMBERS);
  await trimmer.trimNow();
  expect(await store.keys("c/wal/")).toEqual([]);
});
