import { beforeEach, describe, expect, test } from "bun:test";
import { ObjectRemoval } from "../../src/engine/object-removal.ts";
import { RemovalGate } from "../../src/engine/removal-gate.ts";
import {
  LATE_WRITE_MS,
  OBJECT_DELETE_KEYS_MAX,
  REMOVAL_DELAY_MS,
  REMOVAL_RETRY_MS_MAX,
  REMOVAL_RETRY_MS_MIN,
} from "../../src/lib/limits.ts";
import type { LogFields } from "../../src/lib/log.ts";
import { objectKey } from "../../src/metadata/entries.ts";
import { checkInvariants } from "../../src/metadata/invariants.ts";
import { codeOf } from "../support/code-of.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { FaultyStore, failure, lostAnswer } from "../support/faulty-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { silentLog } from "../support/silent-log.ts";

let clock: ManualClock;
let store: FaultyStore;
let metadata: DirectMetadata;
let removal: ObjectRemoval;
let isAllowed: boolean;
let appliedByAll: () => Promise<number>;
let isCovered: boolean;
let told: { readonly message: string; readonly fields: LogFields | undefined }[];

beforeEach(() => {
  clock = new ManualClock();
  store = new FaultyStore(clock);
  metadata = new DirectMetadata(clock);
  metadata.register({ nodeId: 1, nodeEpoch: 1 });
  isAllowed = true;
  isCovered = true;
  appliedByAll = async () => metadata.view.appliedIndex;
  told = [];
  removal = newRemoval();
});

function newRemoval(): ObjectRemoval {
  const cover = async () => isCovered;
  const tell = (message: string, fields?: LogFields) => void told.push({ message, fields });
  const log = { ...silentLog, warn: tell, info: tell };
  return new ObjectRemoval({
    clusterId: "c",
    clock,
    random: new SeededRandom(3),
    log,
    store,
    metadata,
    gate: new RemovalGate({ store, clusterId: "c", clusterIdentity: "0".repeat(32), metadata, log: silentLog, cover }),
    isAllowed: () => isAllowed,
    appliedByAll: () => appliedByAll(),
  });
}

/** Stored objects that were destroyed, by their ids; one more is prepared and one is there that nobody knows. */
async function destroyObjects(count: number): Promise<readonly string[]> {
  const randoms = Array.from({ length: count + 1 }, (_, at) =>
    (metadata.view.appliedIndex * 1_000_000 + at).toString(16).padStart(16, "0"),
  );
  const prepared = await metadata.propose({ type: "prepare_objects", randoms, expiresAtMs: Number.MAX_SAFE_INTEGER }).outcome;
  const firstId = prepared.facts.firstObjectId ?? 0;
  const keys = randoms.map((random, at) => objectKey("c", { random, objectId: firstId + at }));
  for (const key of keys) await store.inner.create(key, Uint8Array.of(1));
  await store.inner.create("c/data/ffffffffffffffff/999999", Uint8Array.of(1));
  const objectIds = keys.slice(1).map((_, at) => firstId + at);
  expect((await metadata.propose({ type: "destroy_objects", objectIds }).outcome).applied).toBeTrue();
  return keys.slice(0, count);
}

function listedCount(): number {
  return metadata.view.objectFigures().destroyed;
}

/** Time passes, with a look every ten seconds, as the loop does; errors end a round only. */
async function rounds(ms: number): Promise<void> {
  for (let waited = 0; waited < ms; waited += 10_000) {
    await clock.advance(10_000);
    await removal.round().catch(() => undefined);
  }
}

function deletesOf(key: string): number {
  return store.calls.filter((call) => call.startsWith("delete c/data") && call.includes(key)).length;
}

describe("the removal of destroyed objects", () => {
  test("deletes them behind a marker a minute later, again when no late write can come, and then they are forgotten; nothing else goes", async () => {
    const keys = await destroyObjects(3);
    await rounds(REMOVAL_DELAY_MS - 10_000);
    expect(store.takeCalls()).toEqual([]);
    await rounds(10_000);
    expect(store.takeCalls()).toEqual(["create", "list", "delete"]);
    for (const key of keys) expect(await store.size(key)).toBeNull();
    expect((await store.keys("c/data/")).length).toBe(2);
    expect(listedCount()).toBe(3);
    // A create that was on its way when its caller gave it up.
    await store.inner.create(keys[0] ?? "", Uint8Array.of(1));
    store.takeCalls();
    await rounds(LATE_WRITE_MS - REMOVAL_DELAY_MS);
    expect(store.takeCalls()).toEqual(["delete"]);
    expect((await store.keys("c/data/")).length).toBe(2);
    expect(listedCount()).toBe(0);
    expect(removal.figures.removedCount).toBe(3);
    checkInvariants(metadata.view);
    await rounds(3_600_000);
    expect(store.takeCalls()).toEqual([]);
  });

  test("waits for every live node", async () => {
    let lagging = metadata.view.appliedIndex;
    appliedByAll = async () => lagging;
    await destroyObjects(1);
    await rounds(2 * LATE_WRITE_MS);
    expect(store.takeCalls()).toEqual([]);
    lagging = metadata.view.appliedIndex;
    await rounds(10_000);
    expect(listedCount()).toBe(0);
  });

  test("one refused key a batch stays listed, is asked for ever more slowly, is counted, shown and logged once, and goes by itself later", async () => {
    const [first, second, third] = await destroyObjects(3);
    store.refusal = (key) => (key === second ? "AccessDenied" : null);
    await rounds(LATE_WRITE_MS);
    expect(listedCount()).toBe(1);
    for (const key of [first, third]) expect(await store.size(key ?? "")).toBeNull();
    const { refused, refusalCount, lastRefusal, refusedSinceMs } = removal.figures;
    expect({ refused, code: lastRefusal?.code, key: lastRefusal?.key }).toEqual({ refused: 1, code: "AccessDenied", key: second });
    expect(refusedSinceMs).toBe(1_700_000_000_000 + REMOVAL_DELAY_MS);
    expect(refusalCount).toBeGreaterThan(2);
    expect(told.map(({ message, fields }) => [message, fields?.code])).toEqual([
      ["the store refuses to delete objects, which stay listed and are tried again", "AccessDenied"],
    ]);
    store.calls.length = 0;
    await rounds(24 * 3_600_000);
    const asked = deletesOf(second ?? "");
    expect(asked).toBeGreaterThanOrEqual((24 * 3_600_000) / REMOVAL_RETRY_MS_MAX - 1);
    expect(asked).toBeLessThan((24 * 3_600_000) / (REMOVAL_RETRY_MS_MAX / 2) + 1);
    store.refusal = () => null;
    await rounds(REMOVAL_RETRY_MS_MAX + 10_000);
    expect(listedCount()).toBe(0);
    expect(removal.figures).toMatchObject({ refused: 0, lastRefusal: null, refusedSinceMs: null });
    expect(told.map(({ message }) => message).slice(1)).toEqual(["the store takes deletes again"]);
  });

  test("all keys refused: none is forgotten; another reason is another line in the log", async () => {
    await destroyObjects(4);
    store.refusal = () => "SlowDown";
    await rounds(LATE_WRITE_MS);
    store.refusal = () => "AccessDenied";
    await rounds(2 * REMOVAL_RETRY_MS_MAX);
    expect(listedCount()).toBe(4);
    expect(removal.figures.refused).toBe(4);
    const codes = told.map(({ fields }) => fields?.code);
    expect([codes[0], codes.at(-1)]).toEqual(["SlowDown", "AccessDenied"]);
    expect(codes.length).toBeLessThan(4);
  });

  test("an answer that was lost confirms nothing; the delete is repeated", async () => {
    const [key] = await destroyObjects(1);
    store.onDone = (call) => {
      if (call === "delete") throw lostAnswer();
    };
    await rounds(2 * LATE_WRITE_MS);
    expect(await store.size(key ?? "")).toBeNull();
    expect(listedCount()).toBe(1);
    expect(removal.figures.lastRefusal?.code).toBe("unknown_outcome");
    store.onDone = () => {};
    await rounds(REMOVAL_RETRY_MS_MAX + 10_000);
    expect(listedCount()).toBe(0);
  });

  test("a key without an answer, and answers in another order, are held to their keys", async () => {
    const keys = await destroyObjects(3);
    await rounds(LATE_WRITE_MS - 10_000);
    const { delete: deleteKeys } = store;
    store.delete = async (asked) => (await deleteKeys.call(store, asked)).filter(({ key }) => key !== keys[1]).toReversed();
    await rounds(10_000);
    expect([...metadata.view.destroyedObjects()].map((entry) => objectKey("c", entry))).toEqual([keys[1] ?? ""]);
    expect(removal.figures.lastRefusal?.code).toBe("no_answer");
  });

  test("the first error of a round ends it: of the heartbeats, the gate, the store, and no delete follows", async () => {
    await destroyObjects(OBJECT_DELETE_KEYS_MAX + 1);
    await clock.advance(LATE_WRITE_MS);
    appliedByAll = () => Promise.reject(failure());
    expect(await codeOf(() => removal.round())).toBe("storage_failed");
    appliedByAll = async () => metadata.view.appliedIndex;
    store.onCreate = () => {
      throw failure();
    };
    expect(await codeOf(() => removal.round())).toBe("storage_failed");
    expect(store.calls.some((call) => call.startsWith("delete"))).toBeFalse();
    store.onCreate = () => {};
    isCovered = false;
    await removal.round();
    expect(store.calls.some((call) => call.startsWith("delete"))).toBeFalse();
    isCovered = true;
    store.onDelete = (keys) => {
      if (keys[0]?.includes("/data/")) throw failure();
    };
    expect(await codeOf(() => removal.round())).toBe("storage_failed");
    expect(store.calls.filter((call) => call.startsWith("delete c/data")).length).toBe(1);
    expect(listedCount()).toBe(OBJECT_DELETE_KEYS_MAX + 1);
    store.onDelete = () => {};
    await rounds(2 * REMOVAL_RETRY_MS_MIN);
    expect(listedCount()).toBe(0);
  });

  test("who has no lease deletes nothing, also when it is lost in the middle of a round", async () => {
    await destroyObjects(2);
    await clock.advance(LATE_WRITE_MS);
    isAllowed = false;
    await removal.round();
    expect(store.takeCalls()).toEqual([]);
    isAllowed = true;
    appliedByAll = async () => {
      isAllowed = false;
      return metadata.view.appliedIndex;
    };
    await removal.round();
    expect(store.takeCalls()).toEqual(["create", "list"]);
    isAllowed = true;
    appliedByAll = async () => metadata.view.appliedIndex;
    store.onDelete = () => {
      isAllowed = false;
    };
    await removal.round();
    // The store confirmed; to say so is the next holder's work, who deletes once more.
    expect(listedCount()).toBe(2);
    isAllowed = true;
    store.onDelete = () => {};
    await newRemoval().round();
    expect(listedCount()).toBe(0);
  });

  test("objects that another holder of the lease removed meanwhile are no obstacle for the others", async () => {
    await destroyObjects(3);
    await clock.advance(LATE_WRITE_MS);
    store.onDelete = async () => {
      store.onDelete = () => {};
      const [entry] = metadata.view.destroyedObjects();
      await metadata.propose({ type: "remove_objects", objectIds: [entry?.objectId ?? 0] }).outcome;
    };
    await removal.round();
    await rounds(10_000);
    expect(listedCount()).toBe(0);
  });
});
