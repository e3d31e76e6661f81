import { expect, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { CountedObjectStore, StoreCounts } from "../../src/storage/counted-object-store.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { codeOf } from "../support/code-of.ts";
import { FaultyStore } from "../support/faulty-store.ts";
import { describeObjectStore } from "./object-store-contract.ts";

describeObjectStore("counted", async () => {
  const store = new CountedObjectStore(new MemoryObjectStore(systemClock), new StoreCounts(systemClock));
  return { store, twin: store, dispose: () => store.close() };
});

test("each call counts, with its bytes, and what failed or was refused besides", async () => {
  const faulty = new FaultyStore();
  const counts = new StoreCounts(systemClock);
  const store = new CountedObjectStore(faulty, counts);
  await store.create("c/a", new Uint8Array(10));
  await store.create("c/a", new Uint8Array(10));
  await store.read("c/a");
  await store.read("c/a", { start: 2, end: 5 });
  await store.read("c/absent");
  await store.size("c/a");
  await store.list("c/", { after: null, limit: 10 });
  faulty.onCreate = () => {
    throw new PicoError("storage_failed", "no");
  };
  expect(await codeOf(() => store.create("c/b", new Uint8Array(10)))).toBe("storage_failed");
  faulty.refusal = () => "AccessDenied";
  await store.delete(["c/a"]);

  const { create, read, size, list, delete: deletes } = counts.figures;
  expect([create.durations.count, create.failureCount, create.bytes]).toEqual([3, 1, 10]);
  expect([read.durations.count, read.failureCount, read.bytes]).toEqual([3, 0, 13]);
  expect([size.durations.count, list.durations.count]).toEqual([1, 1]);
  expect([deletes.durations.count, deletes.failureCount]).toEqual([1, 1]);
});
