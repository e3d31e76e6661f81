import { describe, expect, spyOn, test } from "bun:test";
import { isPicoError } from "../../src/lib/errors.ts";
import { KIB, MIB } from "../../src/lib/limits.ts";
import { codeOf } from "../support/code-of.ts";
import { CountingStore } from "../support/counting-store.ts";
import { ManualClock, settled } from "../support/manual-clock.ts";
import { bodiesOf, TestNode } from "../support/test-node.ts";

describe("a store that takes 1 MB a second under full load", () => {
  const backlogBytesMax = 2 * MIB;
  const settings = { backlogBytesMax, uploadBytes: MIB, segmentBytes: 256 * KIB };
  const RECORDS = 400;
  const body = (writer: number, at: number) => `${writer}:${at}:`.padEnd(32 * KIB, "x");

  test("appends are refused with a time to come back, memory stays bounded, nothing is lost, and all is well by itself afterwards", async () => {
    const clock = new ManualClock();
    const store = new CountingStore(clock);
    store.bytesPerSecond = 1_000_000;
    let node = await settled(new TestNode({ clock, store, settings }).start(1));
    const writers = [0, 1, 2, 3];
    for (const writer of writers) await settled(node.create(`/${writer}`));
    const sent = writers.map(() => 0);
    let refusals = 0;
    let backlogSeen = 0;
    let cacheSeen = 0;
    while (sent.some((count) => count < RECORDS / writers.length)) {
      for (const writer of writers) {
        for (let isTaken = true; isTaken && (sent[writer] ?? 0) < RECORDS / writers.length; ) {
          try {
            await settled(node.append(`/${writer}`, body(writer, sent[writer] ?? 0)));
            sent[writer] = (sent[writer] ?? 0) + 1;
          } catch (error) {
            if (!isPicoError(error, "unavailable")) throw error;
            expect(error.facts.retryAfterSeconds).toBe(1);
            refusals += 1;
            isTaken = false;
          }
          backlogSeen = Math.max(backlogSeen, node.engine.backlogBytes);
          cacheSeen = Math.max(cacheSeen, node.engine.cache.sizeBytes);
        }
      }
      await clock.advance(1000);
    }
    expect(refusals).toBeGreaterThan(10);
    expect(backlogSeen).toBeGreaterThan(backlogBytesMax / 2);
    expect(backlogSeen).toBeLessThan(backlogBytesMax + 64 * KIB);
    expect(cacheSeen).toBeLessThan(backlogBytesMax + 128 * KIB);
    const uploaded = node.engine.uploadNow();
    await clock.advance(30_000);
    await settled(uploaded);
    expect(node.engine.backlogBytes).toBe(0);
    expect(await settled(node.append("/0", "accepted again"))).toMatchObject({ startOffset: RECORDS / writers.length });
    expect(node.fatal).toEqual([]);
    store.bytesPerSecond = Number.POSITIVE_INFINITY;
    node = await settled(node.restart());
    for (const writer of writers) {
      const bodies = await settled(node.bodies(`/${writer}`));
      expect(bodies.slice(0, RECORDS / writers.length)).toEqual(
        Array.from({ length: RECORDS / writers.length }, (_, at) => body(writer, at)),
      );
    }
  }, 60_000);

  test("tiny records count with the memory that they take, and are taken again once there is room", async () => {
    const clock = new ManualClock();
    const store = new CountingStore(clock);
    store.bytesPerSecond = 1;
    const tiny = { backlogBytesMax: 200 * KIB, uploadBytes: MIB, segmentBytes: 256 * KIB };
    const node = await settled(new TestNode({ clock, store, settings: tiny }).start(1));
    await settled(node.create("/0"));
    let taken = 0;
    let code: string | null = null;
    for (; code === null; taken++) code = await codeOf(() => settled(node.append("/0", "x")));
    expect(code).toBe("unavailable");
    expect(taken).toBeGreaterThan(100);
    expect(node.engine.cache.sizeBytes).toBeLessThan(tiny.backlogBytesMax + KIB);
    store.bytesPerSecond = Number.POSITIVE_INFINITY;
    const uploaded = node.engine.uploadNow();
    await clock.advance(24 * 3_600_000);
    await settled(uploaded);
    expect(await codeOf(() => settled(node.append("/0", "y")))).toBe(null);
  }, 60_000);

  test("a node that ends meanwhile leaves nobody waiting", async () => {
    const clock = new ManualClock();
    const store = new CountingStore(clock);
    store.bytesPerSecond = 50_000;
    const node = await settled(new TestNode({ clock, store, settings }).start(1));
    await settled(node.create("/0"));
    for (let code: string | null = null, at = 0; code === null; at++) code = await codeOf(() => settled(node.append("/0", body(0, at))));
    const upload = codeOf(() => node.engine.uploadNow());
    node.kill();
    expect(await codeOf(() => settled(node.append("/0", "x")))).toBe("unavailable");
    await clock.advance(10 * 60_000);
    expect(await settled(upload)).toBe("unavailable");
  });
});

describe("what an append costs", () => {
  /** Calls that 50 appends to one stream, their uploads and three minutes of background work make, beside `streams` idle ones. */
  async function costBeside(streams: number) {
    const clock = new ManualClock();
    const store = new CountingStore(clock);
    const settings = { uploadIntervalMs: 60_000 };
    const first = await settled(new TestNode({ clock, store, settings }).start(1));
    for (let at = 0; at < streams; at++) await settled(first.create(`/idle-${at}`, { ttlSeconds: 1_000_000n }));
    await settled(Promise.all(Array.from({ length: streams }, (_, at) => first.append(`/idle-${at}`, "once"))));
    await settled(first.create("/busy"));
    await settled(first.engine.uploadNow());
    const node = await settled(first.restart());
    await settled(node.append("/busy", "first"));
    const proposed = spyOn(node.metadata, "propose");
    const scanned = spyOn(node.metadata.view, "streams");
    const lookedUp = spyOn(node.metadata.view, "streamById");
    const ranged = spyOn(node.metadata.view, "listStreams");
    const before = { creates: store.creates, bytes: store.bytesCreated, lists: store.lists, deletes: store.deletes };
    store.reads.clear();
    for (let at = 0; at < 50; at++) {
      await settled(node.append("/busy", String(at).padStart(4)));
      await clock.advance(4000);
    }
    const cost = {
      creates: store.creates - before.creates,
      lists: store.lists - before.lists,
      deletes: store.deletes - before.deletes,
      reads: [...store.reads.values()].reduce((sum, count) => sum + count, 0),
      proposals: proposed.mock.calls.length,
      scans: scanned.mock.calls.length + ranged.mock.calls.length,
      lookUps: lookedUp.mock.calls.length,
      sessions: node.streams.sessionCount,
      timers: clock.timerCount,
    };
    return { cost, bytes: store.bytesCreated - before.bytes };
  }

  test("store calls, commands, look-ups, sessions and timers are the same beside 3,000 idle streams as beside 3", async () => {
    const few = await costBeside(3);
    const many = await costBeside(3000);
    expect(many.cost).toEqual(few.cost);
    expect(many.cost.proposals).toBeGreaterThan(0);
    expect(many.cost.scans).toBe(0);
    expect(Math.abs(many.bytes - few.bytes)).toBeLessThan(1024);
  }, 60_000);
});

describe("readers that come back at once after a restart", () => {
  test("2,000 readers of one old offset cost one fetch a block and no more memory than the cache may have", async () => {
    const store = new CountingStore(new ManualClock());
    const first = await new TestNode({ store }).start(1);
    await first.create("/a");
    const expected: string[] = [];
    for (let at = 0; at < 100; at++) {
      expected.push(`${at}:`.padEnd(4 * KIB, "x"));
      await first.append("/a", expected[at] ?? "");
    }
    await first.engine.uploadNow();
    const node = await first.restart();
    store.reads.clear();
    const readers = Array.from({ length: 2000 }, () => ({ at: 0, count: 0 }));
    const appended = node.append("/a", "behind the storm");
    await Promise.all(
      readers.map(async (reader) => {
        for (let isUpToDate = false; !isUpToDate; ) {
          const page = await node.streams.read({ name: "/a", from: reader.at, recordsMax: 0, bytesMax: 64 * KIB });
          const bodies = bodiesOf(page);
          if (bodies[0] !== (expected[reader.at] ?? "behind the storm")) throw new Error("another record");
          reader.count += bodies.length;
          reader.at = page.next;
          isUpToDate = page.isUpToDate;
          expect(node.blockCache.bytes).toBeLessThanOrEqual(node.blockCache.bytesMax);
        }
      }),
    );
    await appended;
    for (const { count } of readers) expect([100, 101]).toContain(count);
    expect(Math.max(...store.reads.values())).toBe(1);
    expect(store.reads.size).toBeLessThan(20);
    expect(node.blockCache.fetchCount).toBe(0);
  }, 60_000);
});
