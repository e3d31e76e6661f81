import { expect, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { STORE_CALM_MS } from "../../src/lib/limits.ts";
import { CountedObjectStore, StoreCounts } from "../../src/storage/counted-object-store.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { codeOf } from "../support/code-of.ts";
import { FaultyStore, failure } from "../support/faulty-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { noted } from "../support/noted-log.ts";
import { silentLog } from "../support/silent-log.ts";
import { describeObjectStore } from "./object-store-contract.ts";

describeObjectStore("counted", async () => {
  const store = new CountedObjectStore(new MemoryObjectStore(systemClock), new StoreCounts(systemClock), silentLog);
  return { store, twin: store, dispose: () => store.close() };
});

test("each call counts, with its bytes, and what failed or was refused besides", async () => {
  const faulty = new FaultyStore();
  const counts = new StoreCounts(systemClock);
  const store = new CountedObjectStore(faulty, counts, silentLog);
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

test("the log is told once that the store cannot be read, and once that it can, not for each request nor while some still fail", async () => {
  const clock = new ManualClock();
  const faulty = new FaultyStore(clock);
  const { log, lines } = noted();
  const store = new CountedObjectStore(faulty, new StoreCounts(clock), log);
  await store.create("c/a", new Uint8Array(10));
  const away = () => {
    throw failure();
  };
  faulty.onRead = away;
  faulty.onList = away;
  for (let i = 0; i < 3; i++) expect(await codeOf(() => store.read("c/a"))).toBe("storage_failed");
  expect(await codeOf(() => store.list("c/", { after: null, limit: 10 }))).toBe("storage_failed");
  const begun = "warn: the store cannot be read: what needs it fails until it can, what is in memory is served: the store is away";
  expect(lines.map(({ text }) => text)).toEqual([begun]);
  expect(lines[0]?.fields.store).toBe("faulty:");

  // One of two goes through: it is not well yet.
  faulty.onRead = () => {};
  for (let i = 0; i < 5; i++) {
    await store.read("c/a");
    await clock.advance(STORE_CALM_MS - 1);
    expect(await codeOf(() => store.list("c/", { after: null, limit: 10 }))).toBe("storage_failed");
  }
  // A read that was under way when another failed says nothing.
  const { promise: held, resolve: release } = Promise.withResolvers<void>();
  faulty.onRead = () => held;
  const slow = store.read("c/a");
  expect(await codeOf(() => store.list("c/", { after: null, limit: 10 }))).toBe("storage_failed");
  release();
  await slow;
  await clock.advance(STORE_CALM_MS);
  expect(lines).toHaveLength(1);

  faulty.onList = () => {};
  await store.read("c/a");
  await clock.advance(STORE_CALM_MS);
  expect(lines.slice(1)).toEqual([{ text: "info: the store can be read again", fields: { store: "faulty:", failures: 10 } }]);
  faulty.onRead = away;
  expect(await codeOf(() => store.read("c/a"))).toBe("storage_failed");
  expect(lines.slice(2).map(({ text }) => text)).toEqual([begun]);

  // At its end nothing is told, and no timer is left.
  faulty.onRead = () => {};
  await store.read("c/a");
  await store.close();
  expect(clock.timerCount).toBe(0);
});
