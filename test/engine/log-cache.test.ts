import { describe, expect, test } from "bun:test";
import { LogCache, LogEntry, type StreamLog } from "../../src/engine/log-cache.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import { WalSegment } from "../../src/engine/wal-segment.ts";

const WAL = { nodeId: 1, nodeEpoch: 1 };

/** A durable segment with one entry of one record for each log. */
function addSegment(cache: LogCache, number: number, logs: readonly StreamLog[], bytes = 100) {
  const cached = cache.addSegment(WAL, WalSegment.stored(number, new Uint8Array(bytes)), 0);
  for (const log of logs) {
    const { durableOffset: offset, durableChangeNumber: change } = log;
    cache.addEntry(cached, new LogEntry(log, cached, 0, bytes, change + 1, offset, offset + 1, 0, null));
    log.durableOffset += 1;
    log.durableChangeNumber += 1;
  }
  return cached;
}

describe("the log cache", () => {
  test("evicts the oldest uploaded segments only, and only as many as its size demands", () => {
    const probe = new LogCache(0);
    addSegment(probe, 1, [probe.openLog(1, emptyTailState())]);
    const cache = new LogCache(2 * probe.sizeBytes);
    const log = cache.openLog(1, emptyTailState());
    const segments = [1, 2, 3, 4].map((number) => addSegment(cache, number, [log]));
    cache.evict();
    expect(log.firstOffset).toBe(0);
    for (const cached of segments.slice(0, 3)) cached.isUploaded = true;
    cache.evict();
    expect(log.firstOffset).toBe(2);
    expect(cache.sizeBytes).toBe(cache.sizeBytesMax);
  });

  test("a segment that is not uploaded holds back the uploaded ones behind it", () => {
    const cache = new LogCache(0);
    const log = cache.openLog(1, emptyTailState());
    addSegment(cache, 1, [log]);
    addSegment(cache, 2, [log]).isUploaded = true;
    cache.evict();
    expect(log.firstOffset).toBe(0);
  });

  test("a log without entries goes unless a session holds it", () => {
    const cache = new LogCache(0);
    const held = cache.openLog(1, emptyTailState());
    held.isHeld = true;
    const free = cache.openLog(2, emptyTailState());
    addSegment(cache, 1, [held, free]).isUploaded = true;
    cache.evict();
    expect(cache.log(1)).toBe(held);
    expect(cache.log(2)).toBeUndefined();
    expect(cache.streamCount).toBe(1);
  });

  test("reads begin with the entry that holds the offset, also behind evicted ones", () => {
    const cache = new LogCache(0);
    const log = cache.openLog(1, emptyTailState(5));
    log.isHeld = true;
    for (let number = 1; number <= 100; number++) addSegment(cache, number, [log]).isUploaded = number <= 70;
    cache.evict();
    expect(log.firstOffset).toBe(75);
    expect([...log.from(103)].map((entry) => entry.baseOffset)).toEqual([103, 104]);
    const last = log.last;
    expect(last?.baseOffset).toBe(104);
    if (last !== undefined) expect(log.upTo(last).map((entry) => entry.baseOffset)[0]).toBe(75);
  });

  test("what is evicted leaves memory, though its streams and its neighbours stay", async () => {
    const cache = new LogCache(0);
    const evicted: WeakRef<WalSegment>[] = [];
    const fill = () => {
      for (let number = 1; number <= 60; number++) {
        const log = cache.openLog(number, emptyTailState());
        log.isHeld = true;
        const cached = addSegment(cache, number, [log]);
        cached.isUploaded = true;
        evicted.push(new WeakRef(cached.segment));
      }
      addSegment(cache, 61, [cache.openLog(1, emptyTailState())]);
    };
    fill();
    cache.evict();
    // References seen in this turn keep their targets until it ends.
    await new Promise((resolve) => setImmediate(resolve));
    Bun.gc(true);
    // The collector may take a stray word on the stack for a reference.
    expect(evicted.filter((segment) => segment.deref() !== undefined).length).toBeLessThan(10);
    expect(cache.streamCount).toBe(60);
  });
});
