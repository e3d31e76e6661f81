import { describe, expect, test } from "bun:test";
import { BlockCache } from "../../src/engine/block-cache.ts";
import { READ_AHEAD_CACHE_SHARE } from "../../src/lib/limits.ts";

const ENTRY_BYTES = 256 + 44;

function block(fill: number): Uint8Array {
  return new Uint8Array(44).fill(fill);
}

/** A load that a test ends when it wants to. */
function pendingLoad() {
  const { promise, resolve, reject } = Promise.withResolvers<readonly Uint8Array[]>();
  return { load: () => promise, resolve, reject };
}

test("what was fetched is found, and is a copy that owns its memory", async () => {
  const cache = new BlockCache(10_000);
  const large = new Uint8Array(5000).fill(1);
  const [first] = await cache.fetch(["a", "b"], async () => [large.subarray(0, 10), large.subarray(10, 30)]);
  expect(first?.buffer.byteLength).toBe(10);
  expect(cache.find("a")).toBe(first ?? null);
  expect(await cache.find("b")).toEqual(new Uint8Array(20).fill(1));
  expect(cache.find("c")).toBeNull();
  expect(cache.bytes).toBe(2 * 256 + 30);
});

describe("blocks that fill one buffer", () => {
  const views = (buffer: Uint8Array) => [buffer.subarray(0, 44), buffer.subarray(44, 88)];

  test("are kept as they came, and leave together, when neither was found for longest", async () => {
    const cache = new BlockCache(16 * ENTRY_BYTES);
    const blocks = views(new Uint8Array(88).fill(1));
    expect(await cache.fetch(["a", "b"], async () => blocks)).toBe(blocks);
    expect([cache.find("a"), cache.find("b")]).toEqual(blocks);
    expect(cache.find("a")).toBe(blocks[0] ?? null);
    expect(cache.bytes).toBe(2 * ENTRY_BYTES);
    for (let at = 0; at < 14; at++) await cache.fetch([`x${at}`], async () => [block(1)]);
    // Found: the other one of the buffer stays with it.
    await cache.find("b");
    await cache.fetch(["y"], async () => [block(1)]);
    expect(["a", "b", "x0"].map((key) => cache.has(key))).toEqual([true, true, false]);
    for (let at = 1; at < 14; at++) await cache.find(`x${at}`);
    await cache.find("y");
    await cache.fetch(["z"], async () => [block(1)]);
    await cache.fetch(["z2"], async () => [block(1)]);
    expect(["a", "b", "x1"].map((key) => cache.has(key))).toEqual([false, false, true]);
    expect([cache.bytes, cache.count, cache.evictionCount]).toEqual([16 * ENTRY_BYTES, 16, 3]);
  });

  test("are copied apart where they are much of the cache, or not all of the buffer", async () => {
    for (const [bytesMax, length] of [
      [16 * ENTRY_BYTES - 1, 88],
      [16 * ENTRY_BYTES, 89],
    ] as const) {
      const cache = new BlockCache(bytesMax);
      const blocks = await cache.fetch(["a", "b"], async () => views(new Uint8Array(length)));
      expect(blocks.map(({ buffer }) => buffer.byteLength)).toEqual([44, 44]);
    }
  });
});

test("who asks while a key is fetched gets the same fetch", async () => {
  const cache = new BlockCache(10_000);
  const pending = pendingLoad();
  const leader = cache.fetch(["a", "b"], pending.load);
  const waiting = [cache.find("a"), cache.find("b"), cache.find("b")];
  expect(cache.has("a")).toBe(true);
  expect(cache.fetchCount).toBe(2);
  pending.resolve([block(1), block(2)]);
  await leader;
  expect(await Promise.all(waiting)).toEqual([block(1), block(2), block(2)]);
  expect(cache.fetchCount).toBe(0);
});

test("a failed fetch fails all who waited and leaves nothing behind", async () => {
  const cache = new BlockCache(10_000);
  const pending = pendingLoad();
  const outcomes = Promise.allSettled([cache.fetch(["a", "b"], pending.load), cache.find("a"), cache.find("b")]);
  pending.reject(new Error("store down"));
  expect((await outcomes).map((outcome) => outcome.status)).toEqual(["rejected", "rejected", "rejected"]);
  expect([cache.fetchCount, cache.count, cache.bytes, cache.has("a")]).toEqual([0, 0, 0, false]);
  const throwing = () => {
    throw new Error("at once");
  };
  await expect(cache.fetch(["a"], throwing)).rejects.toThrow("at once");
  await cache.fetch(["b"], async () => [block(1)]);
  expect([cache.fetchCount, cache.count]).toEqual([0, 1]);
});

test("the least recently used go first, and the bytes stay within the limit", async () => {
  const cache = new BlockCache(3 * ENTRY_BYTES);
  for (const key of ["a", "b", "c"]) await cache.fetch([key], async () => [block(1)]);
  expect(cache.count).toBe(3);
  await cache.find("a");
  await cache.fetch(["d"], async () => [block(1)]);
  expect(["a", "b", "c", "d"].map((key) => cache.has(key))).toEqual([true, false, true, true]);
  expect(cache.bytes).toBe(3 * ENTRY_BYTES);
  expect([cache.hitCount, cache.missCount, cache.evictionCount]).toEqual([1, 4, 1]);
});

test("a block of more than half the cache is given and not kept", async () => {
  const cache = new BlockCache(1000);
  await cache.fetch(["fits"], async () => [new Uint8Array(244)]);
  const [large] = await cache.fetch(["large"], async () => [new Uint8Array(245)]);
  expect(large?.length).toBe(245);
  expect([cache.has("fits"), cache.has("large")]).toEqual([true, false]);
});

describe("bytes that are brought ahead", () => {
  /** Room for two ahead. */
  const CACHE_BYTES = (2 * ENTRY_BYTES) / READ_AHEAD_CACHE_SHARE;
  const wanted = (...keys: string[]) => keys.map((key) => ({ key, length: 44 }));
  const loadAll = async (count: number) => Array.from({ length: count }, () => block(7));

  test("are bounded while they are under way and until somebody finds them", async () => {
    const cache = new BlockCache(CACHE_BYTES);
    const pending = pendingLoad();
    const counts: number[] = [];
    const begun = cache.fetchAhead(wanted("a", "b", "c"), (count) => {
      counts.push(count);
      return pending.load();
    });
    expect([begun, cache.aheadBytes, cache.fetchCount]).toEqual([2, 2 * ENTRY_BYTES, 2]);
    expect(cache.fetchAhead(wanted("c"), loadAll)).toBe(0);
    const waiting = cache.find("a");
    pending.resolve([block(1), block(2)]);
    expect(await waiting).toEqual(block(1));
    expect(counts).toEqual([2]);
    expect(cache.aheadBytes).toBe(ENTRY_BYTES);
    expect(cache.fetchAhead(wanted("c", "d"), loadAll)).toBe(1);
    expect(cache.has("d")).toBe(false);
    expect(await cache.find("b")).toEqual(block(2));
    expect(await cache.find("c")).toEqual(block(7));
    expect([cache.aheadBytes, cache.count, cache.missCount]).toEqual([0, 3, 3]);
  });

  test("end where a key is known, and make room once they are evicted", async () => {
    const cache = new BlockCache(CACHE_BYTES);
    await cache.fetch(["b"], async () => [block(1)]);
    expect(cache.fetchAhead(wanted("a", "b", "c"), loadAll)).toBe(1);
    expect(cache.fetchAhead(wanted("b"), loadAll)).toBe(0);
    await untilFetched(cache);
    expect(cache.aheadBytes).toBe(ENTRY_BYTES);
    for (let at = 0; at < CACHE_BYTES / ENTRY_BYTES; at++) await cache.fetch([`x${at}`], async () => [block(1)]);
    expect([cache.has("a"), cache.aheadBytes]).toEqual([false, 0]);
  });

  test("that fail leave nothing behind, and whoever waited is told to bring them", async () => {
    const cache = new BlockCache(CACHE_BYTES);
    const pending = pendingLoad();
    expect(cache.fetchAhead(wanted("a", "b"), pending.load)).toBe(2);
    const waiting = [cache.find("a"), cache.find("a")];
    pending.reject(new Error("store down"));
    expect(await Promise.all(waiting)).toEqual([null, null]);
    expect([cache.fetchCount, cache.count, cache.aheadBytes, cache.has("b")]).toEqual([0, 0, 0, false]);
    await cache.fetch(["a"], async () => [block(1)]);
    expect(cache.find("a")).toEqual(block(1));
  });

  test("are none where the cache is too small for any", () => {
    for (const bytesMax of [0, 1, ENTRY_BYTES]) {
      const cache = new BlockCache(bytesMax);
      expect(cache.fetchAhead(wanted("a"), loadAll)).toBe(0);
      expect(cache.fetchCount).toBe(0);
    }
  });
});

async function untilFetched(cache: BlockCache): Promise<void> {
  while (cache.fetchCount > 0) await Promise.resolve();
}
