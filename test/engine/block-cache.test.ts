import { expect, test } from "bun:test";
import { BlockCache } from "../../src/engine/block-cache.ts";

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
