import { expect, test } from "bun:test";
import { PROBE_LEFTOVER_AGE_MS } from "../../src/lib/limits.ts";
import { probeObjectStore } from "../../src/storage/object-store-probe.ts";
import { FaultyStore, failure } from "../support/faulty-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";

/** A store with `count` left-overs that are old enough. */
async function withLeftovers(count: number) {
  const clock = new ManualClock();
  const store = new FaultyStore(clock);
  const random = new SeededRandom(1);
  store.refusal = () => "AccessDenied";
  for (let i = 0; i < count; i++) await probeObjectStore(store, "c", random);
  store.refusal = () => null;
  await clock.advance(PROBE_LEFTOVER_AGE_MS);
  return { store, left: await store.keys(), probe: () => probeObjectStore(store, "c", random) };
}

test("a probe tells what the store did not delete, left-overs and its own, key by key", async () => {
  const { store, left, probe } = await withLeftovers(3);
  const [refused = ""] = left;
  store.refusal = (key) => (key === refused || !left.includes(key) ? "AccessDenied" : null);
  const undeleted = await probe();
  const [own = ""] = (await store.keys()).filter((key) => !left.includes(key));
  expect(undeleted).toEqual([refused, own].map((key) => ({ key, reason: `AccessDenied: ${key} is refused` })));
  expect((await store.keys()).sort()).toEqual([refused, own].sort());
  store.refusal = () => null;
  expect(await probe()).toEqual([]);
  expect(await store.keys()).toEqual([own]);
});

test("a delete that fails as a whole fails no probe, and every key of it is told", async () => {
  const { store, left, probe } = await withLeftovers(2);
  store.onDelete = () => {
    throw failure();
  };
  const undeleted = await probe();
  expect(undeleted).toHaveLength(3);
  expect(undeleted.map(({ key }) => key)).toEqual(expect.arrayContaining(left));
  expect(undeleted[0]?.reason).toBe("the store is away");
});
