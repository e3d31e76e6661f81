/** A scrub over a store that a test damages, refuses and changes underneath it. */
import { beforeEach, describe, expect, test } from "bun:test";
import type { DataObjectWriterOptions } from "../../src/engine/data-object-writer.ts";
import type { ScrubRequest, ScrubRun } from "../../src/engine/scrub-report.ts";
import { Scrubber, type ScrubGate } from "../../src/engine/scrubber.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { ADMIN_ITEMS_MAX, SCRUB_TRIES_MAX } from "../../src/lib/limits.ts";
import type { Command } from "../../src/metadata/command.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { FaultyStore, failure } from "../support/faulty-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { silentLog } from "../support/silent-log.ts";
import { buildObjects, CLUSTER_ID, namedStream } from "./data-object-fixtures.ts";

const SELF = { nodeId: 1, nodeEpoch: 10 };
const RANDOM = "0123456789abcdef";
const HOUR_MS = 3600_000;
const LOOK: ScrubRequest = { verifies: false, deletesOrphans: false, minAgeMs: HOUR_MS, by: "operator" };
const VERIFY: ScrubRequest = { ...LOOK, verifies: true };
const DELETE: ScrubRequest = { ...LOOK, deletesOrphans: true };

let clock: ManualClock;
let store: FaultyStore;
let metadata: DirectMetadata;
let scrubber: Scrubber;
let walStore: FaultyStore;
/** Of a WAL in a store of its own. */
let scrubberOfTwo: Scrubber;
/** Indexes that the gate was asked for. */
let asked: number[];
let isAllowed: () => boolean | Promise<boolean>;

beforeEach(() => {
  clock = new ManualClock();
  store = new FaultyStore(clock);
  metadata = new DirectMetadata(clock);
  metadata.register(SELF);
  asked = [];
  isAllowed = () => true;
  const gate: ScrubGate = {
    allow: async (index) => {
      asked.push(index);
      return isAllowed();
    },
  };
  const components = { clusterId: CLUSTER_ID, clock, random: new SeededRandom(1), log: silentLog, metadata, gate };
  scrubber = new Scrubber({ ...components, store, walStore: null });
  walStore = new FaultyStore(clock);
  scrubberOfTwo = new Scrubber({ ...components, store, walStore });
});

async function apply(command: Command): Promise<void> {
  expect(await metadata.propose(command).outcome).toMatchObject({ applied: true });
}

function keyOf(objectId: number): string {
  return `${CLUSTER_ID}/data/${RANDOM}/${objectId}`;
}

let walNumber = 0;
beforeEach(() => {
  walNumber = 0;
});

/** Prepares, stores and commits objects; returns their ids. */
async function makeLive(count: number, options: Partial<DataObjectWriterOptions> = {}): Promise<number[]> {
  const ids: number[] = [];
  for (let i = 0; i < count; i++) {
    const objectId = metadata.view.nextObjectId;
    await apply({ type: "prepare_objects", randoms: [RANDOM], expiresAtMs: clock.nowMs() + HOUR_MS });
    const [object] = buildObjects([namedStream(objectId, 0, 8, 50)], { blockBytesTarget: 200, ...options }, objectId);
    if (object === undefined) throw new Error("an object was built");
    await store.create(keyOf(objectId), object.bytes);
    await apply({ type: "commit", wal: SELF, from: walNumber, to: walNumber + 1, objects: [object.summary], closedStreams: [] });
    walNumber += 1;
    ids.push(objectId);
  }
  return ids;
}

/** An object that was removed, and then written after all. */
async function makeOrphan(): Promise<string> {
  const objectId = metadata.view.nextObjectId;
  await apply({ type: "prepare_objects", randoms: [RANDOM], expiresAtMs: clock.nowMs() });
  await apply({ type: "destroy_objects", objectIds: [objectId] });
  await apply({ type: "remove_objects", objectIds: [objectId] });
  await store.create(keyOf(objectId), new Uint8Array(7));
  return keyOf(objectId);
}

/** Time passes whenever the scrub waits for it. */
async function scrub(request: ScrubRequest): Promise<ScrubRun> {
  const running = scrubber.start(request);
  if (running === null) throw new Error("another scrub is under way");
  let isOver = false;
  void running.finally(() => {
    isOver = true;
  });
  for (let turns = 0; turns < 1000 && !isOver; turns++) await clock.advance(1000);
  return running;
}

/** The next reads of a key answer other bytes than there are. */
async function replaceBytes(key: string, change: (bytes: Uint8Array) => Uint8Array): Promise<void> {
  const bytes = await store.inner.read(key);
  await store.inner.delete([key]);
  await store.inner.create(key, change(bytes ?? new Uint8Array()));
}

function flipMiddle(bytes: Uint8Array): Uint8Array {
  const at = bytes.length >> 1;
  bytes[at] = (bytes[at] ?? 0) ^ 1;
  return bytes;
}

test("a store that holds what the metadata knows is clean, and nothing in it is changed", async () => {
  await makeLive(3);
  await apply({ type: "prepare_objects", randoms: [RANDOM], expiresAtMs: clock.nowMs() });
  await store.create(`${CLUSTER_ID}/marker/0000000000000004`, new Uint8Array(3));
  await store.create("another/data/0123456789abcdef/99", new Uint8Array(3));
  store.takeCalls();
  const { report, error, endedAtMs, progress } = await scrub(LOOK);
  expect([error, report.hasDamage, report.orphans.count, report.unexplained.count]).toEqual([null, false, 0, 0]);
  expect([report.keyCount, report.liveCount, progress.phase]).toEqual([4, 3, "done"]);
  expect(endedAtMs).not.toBeNull();
  expect(store.takeCalls()).toEqual(["list"]);
  expect(scrubber.lastSuccessAtMs).toBe(endedAtMs);
});

test("a live object that is gone is missing, and one of another size is told with both", async () => {
  const [gone = 0, short = 0] = await makeLive(3);
  await store.inner.delete([keyOf(gone)]);
  await replaceBytes(keyOf(short), (bytes) => bytes.subarray(0, -1));
  for (const request of [LOOK, VERIFY]) {
    const { report, error } = await scrub(request);
    expect(error).toBeNull();
    expect(report.missing.items.map(({ key }) => key)).toEqual([keyOf(gone)]);
    const [wrong] = report.wrongSize.items;
    expect([wrong?.key, (wrong?.expectedBytes ?? 0) - (wrong?.foundBytes ?? 0)]).toEqual([keyOf(short), 1]);
    expect([report.damaged.count, report.verifiedCount]).toEqual([0, request.verifies ? 1 : 0]);
  }
});

test("an object that a list leaves out, and that is there, is not missing", async () => {
  const [objectId = 0] = await makeLive(2);
  const inner = store.inner.list.bind(store.inner);
  store.inner.list = async (...words) => {
    const page = await inner(...words);
    return { ...page, objects: page.objects.filter(({ key }) => key !== keyOf(objectId)) };
  };
  const { report } = await scrub(LOOK);
  expect([report.missing.count, report.hasDamage]).toEqual([0, false]);
});

test("an object that is compacted away between the list and the look is not missing", async () => {
  const [objectId = 0] = await makeLive(1);
  const inner = store.inner.size.bind(store.inner);
  await store.inner.delete([keyOf(objectId)]);
  store.inner.size = async (key) => {
    await apply({ type: "destroy_objects", objectIds: [objectId] });
    return inner(key);
  };
  expect((await scrub(LOOK)).report.missing.count).toBe(0);
});

test("what is prepared and stored while the list is read is no orphan, though the view is late", async () => {
  const { view } = metadata;
  const objectId = view.nextObjectId;
  await store.create(keyOf(objectId), new Uint8Array(7));
  let isCaughtUp = false;
  metadata.catchUp = async () => {
    if (store.calls.at(-1)?.startsWith("list") && !isCaughtUp) {
      isCaughtUp = true;
      await apply({ type: "prepare_objects", randoms: [RANDOM], expiresAtMs: clock.nowMs() });
    }
  };
  const { report } = await scrub(DELETE);
  expect([isCaughtUp, report.orphans.count, report.unexplained.count, report.deletedCount]).toEqual([true, 0, 0, 0]);
});

describe("checksums", () => {
  test("every live object is read, and a damaged one is named", async () => {
    const [, bad = 0] = await makeLive(3);
    await replaceBytes(keyOf(bad), flipMiddle);
    expect((await scrub(LOOK)).report.hasDamage).toBeFalse();
    const { report, error } = await scrub(VERIFY);
    expect([error, report.verifiedCount, report.damaged.count]).toEqual([null, 2, 1]);
    expect(report.damaged.items[0]).toEqual({ key: keyOf(bad), what: expect.stringContaining("bytes") });
  });

  test("bytes that were damaged on their way are read again", async () => {
    await makeLive(1);
    const inner = store.inner.read.bind(store.inner);
    let reads = 0;
    store.inner.read = async (...words) => {
      const bytes = await inner(...words);
      reads += 1;
      return reads === 1 && bytes !== null ? flipMiddle(bytes) : bytes;
    };
    const { report } = await scrub(VERIFY);
    expect([report.damaged.count, report.verifiedCount]).toEqual([0, 1]);
  });

  test("an object that is compacted and removed before its turn is left out; one that goes by itself is missing", async () => {
    const [compacted = 0, lost = 0] = await makeLive(2);
    store.onRead = async (key) => {
      await store.inner.delete([key]);
      if (key === keyOf(compacted) && metadata.view.object(compacted)?.state === "live") {
        await apply({ type: "destroy_objects", objectIds: [compacted] });
      }
    };
    const { report } = await scrub(VERIFY);
    expect([report.missing.items.map(({ key }) => key), report.damaged.count, report.verifiedCount]).toEqual([[keyOf(lost)], 0, 0]);
  });

  test("progress tells bytes of all", async () => {
    const ids = await makeLive(2);
    const total = ids.reduce((sum, objectId) => sum + (metadata.view.object(objectId)?.summary?.sizeBytes ?? 0), 0);
    const seen = new Set<string>();
    store.onRead = () => {
      const { phase, done, total: of } = scrubber.run?.progress ?? {};
      seen.add(`${phase} ${done}/${of}`);
    };
    await scrub(VERIFY);
    expect([...seen]).toEqual([`verify 0/${total}`, `verify ${total / 2}/${total}`]);
  });
});

describe("orphans", () => {
  test("are told, and stay unless told otherwise", async () => {
    await makeLive(1);
    const key = await makeOrphan();
    await clock.advance(HOUR_MS * 2);
    const { report } = await scrub(LOOK);
    expect(report.orphans.items).toEqual([{ key, sizeBytes: 7, modifiedMs: expect.any(Number), reason: "removed_object" }]);
    expect([report.orphanBytes, report.deletedCount, report.hasDamage]).toEqual([7, 0, false]);
    expect(await store.keys()).toContain(key);
    expect(asked).toEqual([]);
  });

  test("that are old enough are deleted behind the gate, which is asked at the applied index", async () => {
    const [objectId = 0] = await makeLive(1);
    const old = await makeOrphan();
    await clock.advance(HOUR_MS);
    const young = await makeOrphan();
    const { report } = await scrub(DELETE);
    expect([report.deletedCount, report.deletedBytes, report.youngCount, report.deletionRefusal]).toEqual([1, 7, 1, null]);
    expect(await store.keys()).toEqual([keyOf(objectId), young]);
    expect(asked).toEqual([metadata.view.appliedIndex]);
    expect(store.calls.filter((call) => call.startsWith("delete"))).toEqual([`delete ${old}`]);
  });

  test("segments of an ended life go, tombstones and those of others stay", async () => {
    const name = (epoch: number, number: number) => `${CLUSTER_ID}/wal/1/${epoch}/${String(number).padStart(16, "0")}`;
    metadata.register({ nodeId: 1, nodeEpoch: 11 });
    for (const [epoch, bytes] of [
      [10, 500],
      [11, 500],
    ] as const)
      await store.create(name(epoch, 1), new Uint8Array(bytes));
    await store.create(name(10, 2), new Uint8Array(68));
    await clock.advance(HOUR_MS);
    expect((await scrub(DELETE)).report.deletedCount).toBe(0);
    await apply({ type: "end", victim: SELF, lastNumber: 0, heir: null });
    expect((await scrub(DELETE)).report.deletedCount).toBe(1);
    expect(await store.keys()).toEqual([name(10, 2), name(11, 1)]);
  });

  test("that the store refuses are told with its own word, and are not told as deleted", async () => {
    const [refused, gone] = [await makeOrphan(), await makeOrphan()];
    await clock.advance(HOUR_MS);
    store.refusal = (key) => (key === refused ? "AccessDenied" : null);
    const { report } = await scrub(DELETE);
    expect([report.deletedCount, report.deletedBytes]).toEqual([1, 7]);
    expect(report.refused.items).toEqual([{ key: refused, code: "AccessDenied", message: `${refused} is refused` }]);
    expect(await store.keys()).not.toContain(gone);
  });

  test("stay while removal is held", async () => {
    const key = await makeOrphan();
    await clock.advance(HOUR_MS);
    isAllowed = () => false;
    const { report } = await scrub(DELETE);
    expect([report.deletedCount, report.deletionRefusal]).toEqual([0, "removal_held"]);
    expect(await store.keys()).toEqual([key]);
  });

  test("stay while something is missing or damaged", async () => {
    const [objectId = 0] = await makeLive(1);
    await makeOrphan();
    await clock.advance(HOUR_MS);
    await replaceBytes(keyOf(objectId), flipMiddle);
    expect((await scrub({ ...DELETE, verifies: true })).report).toMatchObject({ deletedCount: 0, deletionRefusal: "damage" });
    await store.inner.delete([keyOf(objectId)]);
    expect((await scrub(DELETE)).report).toMatchObject({ deletedCount: 0, deletionRefusal: "damage" });
    expect(asked).toEqual([]);
  });

  test("stay beside keys that a database of this store would know", async () => {
    await makeOrphan();
    await store.create(keyOf(4711), new Uint8Array(1));
    await clock.advance(HOUR_MS);
    const { report } = await scrub(DELETE);
    expect([report.deletedCount, report.deletionRefusal]).toEqual([0, "unexplained_keys"]);
    expect(report.unexplained.items.map(({ key, reason }) => [key, reason])).toEqual([[keyOf(4711), "unknown_object"]]);
  });

  test("go beside a key of an unknown kind, which stays", async () => {
    await makeOrphan();
    await store.create(`${CLUSTER_ID}/topics/1`, new Uint8Array(1));
    await clock.advance(HOUR_MS);
    const { report } = await scrub(DELETE);
    expect([report.deletedCount, report.unexplained.count]).toEqual([1, 1]);
    expect(await store.keys()).toEqual([`${CLUSTER_ID}/topics/1`]);
  });

  test("of which there are many are all counted, and the first are named", async () => {
    for (let i = 0; i < ADMIN_ITEMS_MAX + 5; i++) await makeOrphan();
    const { report } = await scrub(LOOK);
    expect([report.orphans.count, report.orphans.items.length]).toEqual([ADMIN_ITEMS_MAX + 5, ADMIN_ITEMS_MAX]);
  });
});

describe("an error ends the run before anything is deleted", () => {
  const away = new PicoError("unavailable", "the database does not answer");

  /** Runs with a fault that begins at a call, and returns what is there afterwards. */
  async function scrubWith(fault: () => void): Promise<{ run: ScrubRun; deletes: number }> {
    for (let i = 0; i < 3; i++) await makeOrphan();
    await clock.advance(HOUR_MS);
    fault();
    store.calls.length = 0;
    const run = await scrub(DELETE);
    return { run, deletes: store.calls.filter((call) => call.startsWith("delete")).length };
  }

  test("of any page of the list", async () => {
    for (const page of [1, 2, 3]) {
      let pages = 0;
      const { list } = store.inner;
      store.inner.list = (prefix, options) => list.call(store.inner, prefix, { ...options, limit: 2 });
      const { run, deletes } = await scrubWith(() => {
        store.onList = () => {
          pages += 1;
          if (pages >= page) throw failure();
        };
      });
      expect([page, run.error, deletes, pages]).toEqual([page, "the store is away", 0, page + SCRUB_TRIES_MAX - 1]);
      expect(scrubber.lastSuccessAtMs).toBeNull();
      store.onList = () => {};
      store.inner.list = list;
    }
  });

  test("of any catch-up of the metadata", async () => {
    for (const call of [1, 2, 3]) {
      let calls = 0;
      const { run, deletes } = await scrubWith(() => {
        metadata.catchUp = async () => {
          calls += 1;
          if (calls >= call) throw away;
        };
      });
      expect([call, run.error, deletes]).toEqual([call, "the database does not answer", 0]);
    }
  });

  test("of the gate", async () => {
    const { run, deletes } = await scrubWith(() => {
      isAllowed = () => Promise.reject(failure());
    });
    expect([run.error, deletes]).toEqual(["the store is away", 0]);
  });

  test("of the delete itself, which is told as nothing that happened", async () => {
    const { run } = await scrubWith(() => {
      store.onDone = (call) => {
        if (call === "delete") throw new PicoError("unknown_outcome", "the answer was lost");
      };
    });
    expect([run.error, run.report.deletedCount]).toEqual(["the answer was lost", 0]);
  });
});

test("a list that fails once is asked again", async () => {
  await makeLive(1);
  let failures = 2;
  store.onList = () => {
    if (failures-- > 0) throw failure();
  };
  expect(await scrub(LOOK)).toMatchObject({ error: null });
});

test("one runs at a time, and a stop ends it before the next call", async () => {
  await makeLive(4);
  const running = scrubber.start(VERIFY);
  expect(scrubber.start(LOOK)).toBeNull();
  await clock.advance(0);
  await scrubber.stop();
  expect(await running).toMatchObject({ error: "the node stops" });
  expect(scrubber.start(LOOK)).toBeNull();
});

test("an orphan is judged once more behind a catch-up, right before its delete", async () => {
  const key = await makeOrphan();
  await clock.advance(HOUR_MS);
  let calls = 0;
  metadata.catchUp = async () => {
    calls += 1;
    if (calls < 3) return;
    // No command takes an id back: only a judgement that is not made would not see this.
    const { appliedIndex, nextObjectId } = metadata.view;
    const entry = { objectId: nextObjectId - 1, random: RANDOM, state: "prepared", preparedBy: SELF, preparedUntilMs: 0 } as const;
    metadata.view.putObject({ ...entry, summary: null, liveIndex: null, destroyedIndex: null, destroyedAtMs: null });
    expect(metadata.view.appliedIndex).toBe(appliedIndex);
  };
  const { report } = await scrub(DELETE);
  expect([calls, report.orphans.count, report.deletedCount]).toEqual([3, 1, 0]);
  expect(await store.keys()).toEqual([key]);
});

describe("a WAL in a store of its own", () => {
  const ENDED = { nodeId: 2, nodeEpoch: 1 };
  const segmentKey = (nodeId: number, nodeEpoch: number, number: number) =>
    `${CLUSTER_ID}/wal/${nodeId}/${nodeEpoch}/${String(number).padStart(16, "0")}`;

  beforeEach(async () => {
    metadata.register(ENDED);
    await apply({ type: "end", victim: ENDED, lastNumber: 0, heir: null });
    metadata.registration = SELF;
    await walStore.create(segmentKey(2, 1, 1), new Uint8Array(500));
    await walStore.create(segmentKey(1, 10, 1), new Uint8Array(500));
  });

  const runOfTwo = async (request: ScrubRequest): Promise<ScrubRun> => {
    const running = scrubberOfTwo.start(request);
    if (running === null) throw new Error("a scrub is under way");
    await clock.advance(0);
    return running;
  };

  test("is compared: what an ended life left there is an orphan, and goes where that is asked for", async () => {
    await makeLive(1);
    const { report } = await runOfTwo(LOOK);
    expect(report.orphans.items.map(({ key, reason }) => [key, reason])).toEqual([[segmentKey(2, 1, 1), "ended_wal"]]);
    expect(report.keyCount).toBe(3);
    await clock.advance(2 * HOUR_MS);
    const { report: deleted } = await runOfTwo(DELETE);
    expect(deleted.deletedCount).toBe(1);
    expect(await walStore.keys("")).toEqual([segmentKey(1, 10, 1)]);
    expect(asked.length).toBe(1);
  });

  test("a life that the database does not know, there, keeps every orphan of both", async () => {
    await walStore.create(segmentKey(9, 9, 1), new Uint8Array(500));
    await clock.advance(2 * HOUR_MS);
    const { report } = await runOfTwo(DELETE);
    expect(report.unexplained.items.map(({ reason }) => reason)).toEqual(["unknown_registration"]);
    expect(report.deletionRefusal).toBe("unexplained_keys");
    expect((await walStore.keys("")).length).toBe(3);
  });

  test("a data object that lies there is not in the storage: it is missing", async () => {
    const [objectId = 0] = await makeLive(1);
    const bytes = await store.read(keyOf(objectId));
    await store.delete([keyOf(objectId)]);
    await walStore.create(keyOf(objectId), bytes ?? new Uint8Array(1));
    const { report } = await runOfTwo(LOOK);
    expect(report.missing.items.map(({ key }) => key)).toEqual([keyOf(objectId)]);
  });

  test("a store of the WAL that cannot be listed leaves the scrub unfinished, and deletes nothing", async () => {
    walStore.onList = () => {
      throw new PicoError("storage_full", "no right to list");
    };
    const { error, report } = await runOfTwo(DELETE);
    expect([error, report.deletedCount]).toEqual(["no right to list", 0]);
  });
});
