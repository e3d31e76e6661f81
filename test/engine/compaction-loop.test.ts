import { describe, expect, test } from "bun:test";
import type { CompactionLoop } from "../../src/engine/compaction-loop.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { COMPACTION_DAMAGE_RETRY_MS, PREPARED_OBJECT_TTL_MS } from "../../src/lib/limits.ts";
import type { ObjectEntry } from "../../src/metadata/entries.ts";
import { quiet } from "../support/manual-clock.ts";
import { CompactionBench, named, SMALL } from "./compaction-fixture.ts";
import { namedStream } from "./data-object-fixtures.ts";

const INTERVAL_MS = 1000;

/** So that nothing is merged, and only dead objects are rewritten. */
const NO_MERGES = { ...SMALL, depthMax: 1000, objectBytesTarget: 100_000 };

async function rounds(bench: CompactionBench, count = 3): Promise<void> {
  for (let round = 0; round < count; round++) {
    await bench.clock.advance(INTERVAL_MS);
    await untilIdle(bench);
  }
}

/** Work gives others their turns, so that it takes many of them. */
async function untilIdle(bench: CompactionBench): Promise<void> {
  let seen = -1;
  for (let turns = 0; turns < 30; turns++) {
    const calls = bench.store.reads.length + bench.proposed.length;
    if (calls !== seen) turns = 0;
    seen = calls;
    await quiet();
  }
}

async function started(bench: CompactionBench): Promise<CompactionLoop> {
  const loop = bench.loop();
  loop.start();
  await rounds(bench);
  return loop;
}

describe("the loop", () => {
  test("merges until there is nothing to merge, then is quiet, and goes on with the next upload", async () => {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    for (let upload = 0; upload < 20; upload++) await bench.upload([namedStream(streamId, upload * 5, 5)]);
    const loop = await started(bench);
    expect(bench.live().length).toBeLessThan(SMALL.depthMax ?? 0 + 3);
    expect(await bench.read(streamId, 0, 100)).toEqual(named(streamId, 0, 100));
    expect(loop.figures.planCount).toBeGreaterThan(0);
    expect(loop.record.lastSuccessMs).not.toBeNull();
    bench.store.reads.length = 0;
    const commands = bench.proposed.length;
    await rounds(bench, 20);
    expect(bench.store.reads).toEqual([]);
    expect(bench.proposed.length).toBe(commands);
    const plans = loop.figures.planCount;
    for (let upload = 20; upload < 24; upload++) await bench.upload([namedStream(streamId, upload * 5, 5)]);
    await rounds(bench);
    expect(loop.figures.planCount).toBeGreaterThan(plans);
    await loop.stop();
    expect(bench.fatal).toEqual([]);
  });

  test("does nothing while another node holds the lease, and everything once this one does", async () => {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    bench.isAllowed = false;
    for (let upload = 0; upload < 4; upload++) await bench.upload([namedStream(streamId, upload * 5, 5)]);
    const loop = await started(bench);
    expect(bench.store.reads).toEqual([]);
    bench.isAllowed = true;
    await rounds(bench);
    expect(loop.figures.planCount).toBe(1);
    await loop.stop();
  });

  test("after an error at any call of a round works in the next, and no object is lost or left prepared", async () => {
    for (let at = 0; ; at++) {
      const bench = new CompactionBench();
      const streamId = await bench.create();
      for (let upload = 0; upload < 4; upload++) await bench.upload([namedStream(streamId, upload * 40, 40)]);
      let calls = 0;
      bench.store.before = () => {
        if (calls++ === at) throw new PicoError("storage_failed", "as the test says");
      };
      const loop = await started(bench);
      await rounds(bench, 5);
      expect(loop.figures.planCount).toBeGreaterThan(0);
      expect(bench.inState("prepared")).toBe(0);
      expect(bench.fatal).toEqual([]);
      await loop.stop();
      bench.store.before = () => {};
      expect(await bench.read(streamId, 0, 160)).toEqual(named(streamId, 0, 160));
      if (calls <= at) break;
      expect(at).toBeLessThan(200);
    }
  });

  test("leaves damaged inputs alone, says so, merges the others, and tries again much later", async () => {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    const [damaged] = await bench.upload([namedStream(streamId, 0, 5)]);
    if (damaged === undefined) throw new Error("no object");
    for (let upload = 1; upload < 6; upload++) await bench.upload([namedStream(streamId, upload * 5, 5)]);
    await bench.store.damage(bench.keyOf(damaged), 20);
    const loop = await started(bench);
    expect(loop.figures).toMatchObject({ unusableCount: 1 });
    expect(loop.figures.planCount).toBeGreaterThan(0);
    expect(loop.record.lastError).toContain(bench.keyOf(damaged));
    expect(loop.record.failures).toBe(1);
    expect(bench.object(damaged.objectId).state).toBe("live");
    expect(bench.fatal).toEqual([]);
    // Nothing of it is read meanwhile.
    bench.store.reads.length = 0;
    await rounds(bench, 10);
    expect(bench.store.reads).toEqual([]);
    // It was the store, and that is well again.
    bench.store.instead.clear();
    await bench.clock.advance(COMPACTION_DAMAGE_RETRY_MS);
    for (let upload = 6; upload < 10; upload++) await bench.upload([namedStream(streamId, upload * 5, 5)]);
    await rounds(bench, 5);
    expect(bench.object(damaged.objectId).state).toBe("destroyed");
    expect(loop.figures.unusableCount).toBe(0);
    await loop.stop();
  });

  test("ends where small objects are no fewer for a merge: it is tried once", async () => {
    // Each stream gets an object of its own, since no block fits one.
    const bench = new CompactionBench({ ...SMALL, objectBytesTarget: 1000, blockBytesTarget: 2000, smallBytes: 900 });
    const ids = await bench.createMany(3);
    for (const id of ids) await bench.upload([namedStream(id, 0, 2)], 1);
    const before = bench.live();
    const loop = await started(bench);
    expect(bench.live()).toEqual(before);
    expect(loop.figures.planCount).toBe(0);
    expect(bench.inState("prepared")).toBe(0);
    const commands = bench.proposed.length;
    await rounds(bench, 5);
    expect(bench.proposed.length).toBe(commands);
    await loop.stop();
  });

  test("that was too slow plans less the next time", async () => {
    const bench = new CompactionBench({ ...SMALL, depthMax: 8, inputBytesMax: 20_000, objectBytesTarget: 1000 });
    const streamId = await bench.create();
    for (let upload = 0; upload < 16; upload++) await bench.upload([namedStream(streamId, upload * 40, 40)]);
    let creates = 0;
    bench.store.before = (call) => {
      if (call === "create" && ++creates === 2) bench.metadata.databaseOffsetMs += PREPARED_OBJECT_TTL_MS + 1;
    };
    const sizes: number[] = [];
    const { propose } = bench.metadata;
    bench.metadata.propose = (command) => {
      if (command.type === "compact") {
        sizes.push(command.inputs.reduce((sum, objectId) => sum + (bench.object(objectId).summary?.sizeBytes ?? 0), 0));
      }
      return propose.call(bench.metadata, command);
    };
    const loop = bench.loop();
    loop.start();
    await rounds(bench, 10);
    expect(loop.record.failures).toBe(1);
    expect(sizes[0]).toBeLessThanOrEqual(10_000);
    expect(Math.max(...sizes)).toBeGreaterThan(10_000);
    expect(await bench.read(streamId, 0, 640)).toEqual(named(streamId, 0, 640));
    await loop.stop();
  });
});

describe("a store that refuses", () => {
  test("one object for good leaves that one alone and merges the others", async () => {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    const [refused] = await bench.upload([namedStream(streamId, 0, 5)]);
    for (let upload = 1; upload < 20; upload++) await bench.upload([namedStream(streamId, upload * 5, 5)]);
    refuseReads(bench, refused);
    const loop = await started(bench);
    await rounds(bench, 60);
    expect(loop.figures.planCount).toBeGreaterThan(0);
    expect(loop.figures.unusableCount).toBe(1);
    expect(bench.object(refused?.objectId ?? 0).state).toBe("live");
    // Later it takes part again.
    bench.store.before = () => {};
    await bench.clock.advance(bench.settings.lookAgainMs);
    await rounds(bench, 5);
    expect(loop.figures.unusableCount).toBe(0);
    await loop.stop();
  });

  test("one object does not keep others from a look", async () => {
    const bench = new CompactionBench(NO_MERGES);
    const [kept = 0, deleted = 0] = await bench.createMany(2);
    const [refused] = await bench.upload([namedStream(kept, 0, 5)]);
    const [dead] = await bench.upload([namedStream(deleted, 0, 5)]);
    await bench.delete(deleted);
    refuseReads(bench, refused);
    const loop = await started(bench);
    await rounds(bench, 10);
    expect(bench.object(dead?.objectId ?? 0).state).toBe("destroyed");
    await loop.stop();
  });

  test("what is written is not asked for its inputs each second", async () => {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    for (let upload = 0; upload < 5; upload++) await bench.upload([namedStream(streamId, upload * 5, 5)]);
    bench.store.before = (call) => {
      if (call === "create") throw new PicoError("storage_full", "no room");
    };
    const loop = await started(bench);
    await rounds(bench, 300);
    expect(loop.figures.failureCount).toBeGreaterThan(3);
    expect(loop.figures.failureCount).toBeLessThan(20);
    bench.store.before = () => {};
    await rounds(bench, 70);
    expect(loop.figures.planCount).toBeGreaterThan(0);
    expect(bench.fatal).toEqual([]);
    await loop.stop();
  });

  test("and has other bytes under the key of an output ends that round, and not the node", async () => {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    for (let upload = 0; upload < 5; upload++) await bench.upload([namedStream(streamId, upload * 5, 5)]);
    const { create } = bench.store;
    bench.store.create = async (key) => {
      await create.call(bench.store, key, new Uint8Array(10));
      return "exists";
    };
    const loop = await started(bench);
    expect(loop.record.lastError).toContain("reads back differently");
    expect(bench.fatal).toEqual([]);
    bench.store.create = create;
    await rounds(bench, 10);
    expect(loop.figures.planCount).toBeGreaterThan(0);
    expect(await bench.read(streamId, 0, 25)).toEqual(named(streamId, 0, 25));
    await loop.stop();
  });

  test("the rewrite of an object that is mostly dead is tried again", async () => {
    const bench = new CompactionBench(NO_MERGES);
    const ids = await bench.createMany(4);
    const [object] = await bench.upload(ids.map((id) => namedStream(id, 0, 50)));
    const loop = await started(bench);
    bench.store.before = (call) => {
      if (call === "create") throw new PicoError("storage_full", "no room");
    };
    for (const id of ids.slice(1)) await bench.delete(id);
    await rounds(bench, 5);
    expect(bench.object(object?.objectId ?? 0).state).toBe("live");
    expect(loop.figures.failureCount).toBeGreaterThan(0);
    bench.store.before = () => {};
    await rounds(bench, 70);
    expect(bench.object(object?.objectId ?? 0).state).toBe("destroyed");
    expect(bench.records()).toBe(50);
    await loop.stop();
  });
});

function refuseReads(bench: CompactionBench, object: ObjectEntry | undefined): void {
  const refusedKey = object === undefined ? "" : bench.keyOf(object);
  bench.store.before = (call, key) => {
    if (call === "read" && key === refusedKey) throw new PicoError("storage_failed", "input/output error");
  };
}

describe("objects that are dead", () => {
  test("are found though a stream of many objects is trimmed all the time", async () => {
    const bench = new CompactionBench({ ...NO_MERGES, lookPauseMs: 30_000 });
    const [busy = 0, other = 0] = await bench.createMany(2);
    for (let upload = 0; upload < 12; upload++) await bench.upload([namedStream(busy, upload * 50, 50)]);
    const [dead] = await bench.upload([namedStream(other, 0, 50)]);
    const loop = await started(bench);
    await rounds(bench, 10);
    bench.store.reads.length = 0;
    await bench.delete(other);
    for (let round = 0; round < 100; round++) {
      await bench.trim(busy, 1);
      await rounds(bench, 1);
    }
    expect(bench.object(dead?.objectId ?? 0).state).toBe("destroyed");
    // A few looks at each object, of a few reads, and not one a trim.
    expect(bench.store.reads.length).toBeLessThan(13 * 4 * 10);
    await loop.stop();
  });

  test("for the greater part are rewritten in their level, wholly dead ones destroyed without a read of their records", async () => {
    const bench = new CompactionBench(NO_MERGES);
    const ids = await bench.createMany(20);
    const first = await bench.upload(ids.slice(0, 10).map((id) => namedStream(id, 0, 50)));
    const second = await bench.upload(
      ids.slice(10).map((id) => namedStream(id, 0, 50)),
      2,
    );
    const loop = await started(bench);
    expect(bench.live().length).toBe(first.length + second.length);
    for (const id of ids.slice(0, 10)) await bench.delete(id);
    for (const id of ids.slice(10, 14)) await bench.delete(id);
    bench.store.reads.length = 0;
    await rounds(bench, 5);
    for (const { objectId } of first) expect(bench.object(objectId).state).toBe("destroyed");
    const readOfFirst = bench.store.reads.filter(({ key }) => first.some((entry) => bench.keyOf(entry) === key));
    const recordsRead = readOfFirst.filter(({ start }) => start === 8);
    expect(recordsRead).toEqual([]);
    expect(bench.live().map(({ summary }) => [summary?.level, summary?.streamCount])).toEqual([[2, 6]]);
    expect(loop.figures).toMatchObject({ deadObjectCount: first.length, failureCount: 0 });
    for (const id of ids.slice(14)) expect(await bench.read(id, 0, 50)).toEqual(named(id, 0, 50));
    await loop.stop();
  });

  test("by trims are rewritten too; the tail states stay", async () => {
    const bench = new CompactionBench(NO_MERGES);
    const ids = await bench.createMany(4);
    await bench.upload(ids.map((id) => namedStream(id, 0, 50)));
    const loop = await started(bench);
    for (const id of ids) await bench.trim(id, 50);
    await rounds(bench, 5);
    expect(bench.records()).toBe(0);
    for (const id of ids) expect((await bench.tail(id))?.nextOffset).toBe(50);
    await loop.stop();
  });

  test("a little are left, and looked at once after a while; a node at rest asks for nothing", async () => {
    const bench = new CompactionBench({ ...NO_MERGES, lookAgainMs: 100_000 });
    const ids = await bench.createMany(20);
    const objects = await bench.upload(ids.map((id) => namedStream(id, 0, 50)));
    const loop = await started(bench);
    await bench.delete(ids[3] ?? 0);
    bench.store.reads.length = 0;
    await rounds(bench, 5);
    expect(bench.store.reads).toEqual([]);
    await bench.clock.advance(100_000);
    expect(bench.store.reads.length).toBeGreaterThan(0);
    expect(bench.live().map(({ objectId }) => objectId)).toEqual(objects.map(({ objectId }) => objectId));
    bench.store.reads.length = 0;
    await bench.clock.advance(1_000_000);
    expect(bench.store.reads).toEqual([]);
    await loop.stop();
  });

  test("only by an estimate that is wrong are read once, and written not at all", async () => {
    const bench = new CompactionBench({ ...NO_MERGES, blockBytesTarget: 4000 });
    const [many = 0, few = 0, other = 0] = await bench.createMany(3);
    // All in one block; what the second and the third one have trimmed is not in the object any more.
    for (const id of [few, other]) await bench.trim(id, 48);
    const trimmed = [few, other].map((id) => ({ ...namedStream(id, 0, 50), fromOffset: 48 }));
    await bench.upload([namedStream(many, 0, 100), ...trimmed]);
    const [object] = bench.live();
    expect(object?.summary?.recordCount).toBe(104);
    const loop = await started(bench);
    expect(bench.live()).toEqual(object === undefined ? [] : [object]);
    expect(loop.figures).toMatchObject({ planCount: 0, failureCount: 0, bytesWritten: 0 });
    bench.store.reads.length = 0;
    await rounds(bench, 5);
    expect(bench.store.reads).toEqual([]);
    await bench.delete(many);
    await rounds(bench, 5);
    expect(bench.records()).toBe(4);
    await loop.stop();
  });

  test("of a deleted source leave when its last fork goes, and by part when one of several does", async () => {
    const bench = new CompactionBench(NO_MERGES);
    const source = await bench.create();
    for (let upload = 0; upload < 4; upload++) await bench.upload([namedStream(source, upload * 50, 50)]);
    const low = await bench.create(source, 50);
    const high = await bench.create(source, 150);
    const loop = await started(bench);
    await bench.delete(source);
    await rounds(bench, 5);
    // What the forks read.
    expect(bench.records()).toBe(150);
    await bench.delete(high);
    await rounds(bench, 5);
    expect(bench.records()).toBe(50);
    expect(await bench.read(low, 0, 50)).toEqual(named(source, 0, 50));
    await bench.trim(low, 50);
    await rounds(bench, 5);
    expect(bench.records()).toBe(0);
    await bench.delete(low);
    await rounds(bench, 5);
    expect(bench.live()).toEqual([]);
    await loop.stop();
  });

  test("since before this node's turn are found at its begin", async () => {
    const bench = new CompactionBench(NO_MERGES);
    const ids = await bench.createMany(10);
    await bench.upload(ids.map((id) => namedStream(id, 0, 50)));
    for (const id of ids) await bench.delete(id);
    const loop = await started(bench);
    expect(bench.live()).toEqual([]);
    await loop.stop();
  });

  test("are not concluded from errors: with a store that fails, or an index that is damaged, every object stays", async () => {
    for (const harm of ["store", "index"]) {
      const bench = new CompactionBench(NO_MERGES);
      const ids = await bench.createMany(10);
      const [object] = await bench.upload(ids.map((id) => namedStream(id, 0, 50)));
      if (object === undefined) throw new Error("no object");
      for (const id of ids) await bench.delete(id);
      if (harm === "index") await bench.store.damage(bench.keyOf(object), (object.summary?.sizeBytes ?? 0) - 100);
      else
        bench.store.before = () => {
          throw new PicoError("storage_failed", "as the test says");
        };
      const loop = await started(bench);
      expect(bench.live().length).toBe(1);
      expect(loop.record.failures).toBeGreaterThan(0);
      expect(bench.fatal).toEqual([]);
      bench.store.before = () => {};
      bench.store.instead.clear();
      await rounds(bench, 3);
      expect(bench.live().length).toBe(harm === "index" ? 1 : 0);
      await loop.stop();
    }
  });
});

test("live objects hold at most 1.3 times the live bytes, a bounded number of rounds after most of them died", async () => {
  const bench = new CompactionBench({ objectBytesTarget: 400_000, blockBytesTarget: 8000, smallBytes: 50_000 });
  const streamCount = 500;
  const [uploads, perUpload, bodyBytes] = [12, 4, 200];
  const ids = await bench.createMany(streamCount);
  for (let upload = 0; upload < uploads; upload++) {
    await bench.upload(ids.map((id) => namedStream(id, upload * perUpload, perUpload, bodyBytes)));
  }
  const loop = await started(bench);
  const kept = ids.filter((_, at) => at % 10 === 0);
  for (const id of ids) if (!kept.includes(id)) await bench.delete(id);
  const end = uploads * perUpload;
  let liveBytes = 0;
  for (const [at, id] of kept.entries()) {
    const start = at % 2 === 0 ? end / 2 : 0;
    await bench.trim(id, start);
    liveBytes += (end - start) * bodyBytes;
  }
  await rounds(bench, 30);
  const stored = bench.live().reduce((sum, { summary }) => sum + (summary?.sizeBytes ?? 0), 0);
  expect(stored / liveBytes).toBeLessThan(1.3);
  for (const [at, id] of kept.entries()) {
    const start = at % 2 === 0 ? end / 2 : 0;
    expect((await bench.read(id, start, end)).map((body) => body.replace(/\.+$/, ""))).toEqual(named(id, start, end));
  }
  expect(loop.figures.failureCount).toBe(0);
  await loop.stop();
}, 60_000);
