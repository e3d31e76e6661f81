/** What the engine tells operators, after known work. */
import { describe, expect, test } from "bun:test";
import { PicoError } from "../../src/lib/errors.ts";
import { MIB } from "../../src/lib/limits.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { gate } from "../support/gated-wal.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { TestNode } from "../support/test-node.ts";

/** Refuses the first creates of data objects, and sums up the others. */
class ReluctantStore extends MemoryObjectStore {
  refusals = 0;
  objects = 0;
  objectBytes = 0;
  override async create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    if (!key.includes("/data/")) return super.create(key, bytes);
    if (this.refusals-- > 0) throw new PicoError("storage_failed", "the bucket says 503");
    this.objects += 1;
    this.objectBytes += bytes.length;
    return super.create(key, bytes);
  }
}

describe("the figures of the engine", () => {
  test("a segment on its way is undurable and in flight; once durable it is counted with its bytes and its time", async () => {
    const clock = new ManualClock();
    const { wal, gated } = gate();
    const node = await settled(new TestNode({ clock, wal }).start(1));
    await settled(node.create("/a"));
    expect(node.engine.figures.wal).toMatchObject({ segmentCount: 0, segmentBytes: 0, inFlightCount: 0, undurableBytes: 0 });
    gated().hold();
    const append = node.append("/a", "x".repeat(1000));
    while (node.engine.figures.wal.inFlightCount < 1) await quiet();
    await clock.advance(250);
    const { wal: open, backlogBytes, backlogCostBytes, oldestPendingAgeMs } = node.engine.figures;
    expect(open.inFlightCount).toBe(1);
    expect(open.undurableBytes).toBeGreaterThan(1000);
    expect(open.segmentCount).toBe(0);
    expect(backlogBytes).toBeGreaterThan(1000);
    expect(backlogCostBytes).toBeGreaterThan(backlogBytes);
    expect(oldestPendingAgeMs).toBe(250);
    gated().release();
    await settled(append);
    const { wal: durable } = node.engine.figures;
    expect(durable).toMatchObject({ segmentCount: 1, segmentBytes: open.undurableBytes, inFlightCount: 0, undurableBytes: 0 });
    expect([durable.flushes.count, durable.flushes.sumMs]).toEqual([1, 250]);
  });

  test("an upload that fails says so while it is tried again, and what it wrote once it is committed", async () => {
    const clock = new ManualClock();
    const store = new ReluctantStore(clock);
    const node = await settled(new TestNode({ clock, store }).start(1));
    const [loop] = node.engine.loops;
    await settled(node.create("/a"));
    await settled(node.append("/a", "x"));
    await clock.advance(3000);
    expect(loop).toMatchObject({ name: "upload", lastSuccessMs: 3000, failures: 0, lastError: null });
    // Five tries make one of the whole upload.
    store.refusals = 10;
    const upload = node.engine.uploadNow();
    while ((loop?.failures ?? 0) < 1) await clock.advance(100);
    expect(loop).toMatchObject({ lastSuccessMs: 3000, lastError: "the bucket says 503" });
    expect(node.engine.figures.uploads).toMatchObject({ uploadCount: 0, failureCount: 1, objectCount: 0 });
    await clock.advance(60_000);
    await settled(upload);
    const { uploads, backlogBytes, backlogCostBytes } = node.engine.figures;
    expect(uploads).toMatchObject({ uploadCount: 1, failureCount: 2, objectCount: store.objects, objectBytes: store.objectBytes });
    expect(uploads.durations.count).toBe(1);
    expect([backlogBytes, backlogCostBytes, loop?.failures]).toEqual([0, 0, 2]);
    expect(loop?.lastSuccessMs).toBeGreaterThan(60_000);
  });

  test("pages from memory are hits of the log cache; behind an eviction they are misses, and blocks are fetched once", async () => {
    const clock = new ManualClock();
    const node = await settled(new TestNode({ clock, settings: { logCacheBytes: 0 } }).start(1));
    const { cache } = node.engine;
    await settled(node.create("/a"));
    await settled(node.append("/a", "0"));
    await settled(node.bodies("/a"));
    expect([cache.hitCount, cache.missCount, cache.evictionCount, cache.entryCount]).toEqual([1, 0, 0, 1]);
    await settled(node.engine.uploadNow());
    expect([cache.evictionCount, cache.entryCount, cache.sizeBytes]).toEqual([1, 0, 0]);
    const read = (bytesMax: number) => settled(node.streams.read({ name: "/a", from: "start", recordsMax: 0, bytesMax }));
    await read(MIB);
    const { hitCount, missCount } = node.blockCache;
    expect(missCount).toBeGreaterThan(0);
    // Another size is another page, so that the kept one does not answer.
    await read(MIB - 1);
    expect([cache.hitCount, cache.missCount]).toEqual([1, 2]);
    expect(node.blockCache.missCount).toBe(missCount);
    expect(node.blockCache.hitCount).toBeGreaterThan(hitCount);
  });
});
