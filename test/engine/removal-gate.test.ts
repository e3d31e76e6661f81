import { beforeEach, expect, test } from "bun:test";
import { RemovalGate, type RemovalGateOptions } from "../../src/engine/removal-gate.ts";
import { encodeMarker, listMarkers, markerKey } from "../../src/engine/store-marker.ts";
import { codeOf } from "../support/code-of.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { FaultyStore, failure, lostAnswer } from "../support/faulty-store.ts";
import { ManualClock, settled } from "../support/manual-clock.ts";
import { noted } from "../support/noted-log.ts";
import { silentLog } from "../support/silent-log.ts";

const IDENTITY = "0123456789abcdef0123456789abcdef";
let clock: ManualClock;
let store: FaultyStore;
let metadata: DirectMetadata;

beforeEach(() => {
  clock = new ManualClock();
  store = new FaultyStore(clock);
  metadata = new DirectMetadata(clock);
  metadata.register({ nodeId: 1, nodeEpoch: 1 });
});

function newGate(options: Partial<RemovalGateOptions> = {}): RemovalGate {
  return new RemovalGate({ store, clusterId: "c", clusterIdentity: IDENTITY, metadata, log: silentLog, ...options });
}

/** Some more rows of the log. */
async function applyRows(count: number): Promise<void> {
  for (let i = 0; i < count; i++) await metadata.propose({ type: "reserve_ids" }).outcome;
}

function rowIdOf(index: number): string {
  return String(index).padStart(32, "0");
}

test("a delete passes once a marker at the applied index is stored, and a lower one costs no request", async () => {
  await applyRows(4);
  const gate = newGate();
  expect(await gate.allow(2)).toBeTrue();
  expect(gate.markedIndex).toBe(5);
  const marker = { index: 5, rowId: rowIdOf(5), clusterIdentity: IDENTITY, clusterId: "c" };
  expect((await store.inner.read(markerKey("c", 5)))?.toHex()).toBe(encodeMarker(marker).toHex());
  store.takeCalls();
  expect(await gate.allow(5)).toBeTrue();
  expect(store.takeCalls()).toEqual([]);
});

test("a higher marker takes the place of the lower ones, those of earlier lives included, at two requests", async () => {
  await store.create(markerKey("c", 1), encodeMarker({ index: 1, rowId: rowIdOf(1), clusterIdentity: IDENTITY, clusterId: "c" }));
  await applyRows(1);
  const gate = newGate();
  store.takeCalls();
  expect(await gate.allow(2)).toBeTrue();
  expect(store.takeCalls()).toEqual(["create", "list", "delete"]);
  expect(await listMarkers(store, "c")).toEqual([2]);
  await applyRows(1);
  store.takeCalls();
  expect(await gate.allow(3)).toBeTrue();
  expect(store.takeCalls()).toEqual(["create", "delete"]);
  expect(await listMarkers(store, "c")).toEqual([3]);
});

test("many who ask at once share one marker", async () => {
  await applyRows(9);
  const gate = newGate();
  const answers = Promise.all([1, 5, 10, 7].map((index) => gate.allow(index)));
  expect(await answers).toEqual([true, true, true, true]);
  expect(store.takeCalls().filter((call) => call === "create").length).toBe(1);
});

test("who asks for more than the marker under way will hold waits for another", async () => {
  const gate = newGate();
  const held = Promise.withResolvers<void>();
  store.onCreate = () => held.promise;
  const first = gate.allow(1);
  await applyRows(1);
  const second = gate.allow(2);
  held.resolve();
  expect(await Promise.all([first, second])).toEqual([true, true]);
  expect(gate.markedIndex).toBe(2);
  expect(await listMarkers(store, "c")).toEqual([2]);
});

test("a marker that the store refuses lets nothing pass, and the next who asks tries again", async () => {
  const gate = newGate();
  store.onCreate = () => {
    throw failure();
  };
  expect(await Promise.all([codeOf(() => gate.allow(1)), codeOf(() => gate.allow(1))])).toEqual(["storage_failed", "storage_failed"]);
  expect(gate.markedIndex).toBe(0);
  store.onCreate = () => {};
  expect(await gate.allow(1)).toBeTrue();
});

test("a marker whose answer was lost counts when it reads back, and only then", async () => {
  const gate = newGate();
  store.onDone = () => {
    store.onDone = () => {};
    throw lostAnswer();
  };
  expect(await gate.allow(1)).toBeTrue();
  await applyRows(1);
  store.onCreate = () => {
    throw lostAnswer();
  };
  expect(await codeOf(() => gate.allow(2))).toBe("storage_failed");
  expect(gate.markedIndex).toBe(1);
});

test("a marker that is there already counts if it is the same, and is corrupt if another database wrote it", async () => {
  const marker = { index: 1, rowId: rowIdOf(1), clusterIdentity: IDENTITY, clusterId: "c" };
  await store.create(markerKey("c", 1), encodeMarker(marker));
  expect(await newGate().allow(1)).toBeTrue();
  await applyRows(1);
  await store.create(markerKey("c", 2), encodeMarker({ ...marker, index: 2, rowId: rowIdOf(7) }));
  expect(await codeOf(() => newGate().allow(2))).toBe("corrupt");
  await applyRows(1);
  await store.create(markerKey("c", 3), encodeMarker({ ...marker, index: 3, rowId: rowIdOf(3), clusterIdentity: "f".repeat(32) }));
  expect(await codeOf(() => newGate().allow(3))).toBe("corrupt");
  await applyRows(1);
  await store.create(markerKey("c", 4), new Uint8Array(3));
  expect(await codeOf(() => newGate().allow(4))).toBe("corrupt");
});

test("older markers that the store does not give up are no obstacle, and are looked for with the next one", async () => {
  const gate = newGate();
  await gate.allow(1);
  store.refusal = () => "AccessDenied";
  await applyRows(1);
  expect(await gate.allow(2)).toBeTrue();
  expect(await listMarkers(store, "c")).toEqual([1, 2]);
  store.refusal = () => null;
  store.onList = () => {
    throw failure();
  };
  await applyRows(1);
  expect(await gate.allow(3)).toBeTrue();
  store.onList = () => {};
  await applyRows(1);
  expect(await gate.allow(4)).toBeTrue();
  expect(await listMarkers(store, "c")).toEqual([4]);
});

test("a refused delete of older markers is told once with the store's code, and once when it is over", async () => {
  const { log, lines } = noted();
  const gate = newGate({ log });
  await gate.allow(1);
  store.refusal = () => "AccessDenied";
  for (const index of [2, 3]) {
    await applyRows(1);
    await gate.allow(index);
  }
  expect(lines.map(({ text, fields }) => [text.slice(0, 33), fields.key, fields.code])).toEqual([
    ["warn: the store refuses to delete", markerKey("c", 1), "AccessDenied"],
  ]);
  store.refusal = () => null;
  for (const index of [4, 5]) {
    await applyRows(1);
    await gate.allow(index);
  }
  expect(lines.slice(1).map(({ text }) => text)).toEqual(["info: the store takes deletes of markers again"]);
});

test("nothing passes before the mirror of the log reaches the index", async () => {
  const asked: number[] = [];
  let isCovered = false;
  const gate = newGate({
    cover: async (index) => {
      asked.push(index);
      return isCovered;
    },
  });
  expect(await gate.allow(1)).toBeFalse();
  expect(store.takeCalls()).toEqual([]);
  isCovered = true;
  expect(await gate.allow(1)).toBeTrue();
  // Asked about the delete, and about the marker.
  expect(asked).toEqual([1, 1, 1]);
  const failing = newGate({
    cover: async () => {
      throw failure();
    },
  });
  expect(await codeOf(() => failing.allow(1))).toBe("storage_failed");
});

test("a node that gives up lets nothing pass any more, also those who wait already", async () => {
  const gate = newGate();
  const held = Promise.withResolvers<void>();
  store.onCreate = () => held.promise;
  const waiting = gate.allow(1);
  gate.close();
  held.resolve();
  expect(await settled(waiting)).toBeFalse();
  expect(await gate.allow(1)).toBeFalse();
});

test("nothing passes before the time until which an operator holds removal, by the database's clock", async () => {
  await metadata.propose({ type: "hold_removal", untilMs: metadata.databaseNowMs() + 1000 }).outcome;
  const gate = newGate();
  expect(await gate.allow(1)).toBeFalse();
  expect(store.takeCalls()).toEqual([]);
  await clock.advance(1000);
  expect(await gate.allow(1)).toBeTrue();
  await metadata.propose({ type: "hold_removal", untilMs: metadata.databaseNowMs() + 1000 }).outcome;
  expect(await gate.allow(1)).toBeFalse();
  await metadata.propose({ type: "hold_removal", untilMs: null }).outcome;
  expect(await gate.allow(1)).toBeTrue();
});

test("no marker is stored above what the mirror holds", async () => {
  await applyRows(4);
  const gate = newGate({ cover: async (index) => index <= 2 });
  expect(await gate.allow(2)).toBeFalse();
  expect(await listMarkers(store, "c")).toEqual([]);
  const covered = newGate({ cover: async (index) => index <= 5 });
  expect(await covered.allow(2)).toBeTrue();
  expect(await listMarkers(store, "c")).toEqual([5]);
});

test("a hold does not end while the database's clock jumps", async () => {
  await metadata.propose({ type: "hold_removal", untilMs: metadata.databaseNowMs() + 1000 }).outcome;
  await clock.advance(2000);
  metadata.isDatabaseClockSteady = false;
  const gate = newGate();
  expect(await gate.allow(metadata.view.appliedIndex)).toBeFalse();
  metadata.isDatabaseClockSteady = true;
  expect(await gate.allow(metadata.view.appliedIndex)).toBeTrue();
});
