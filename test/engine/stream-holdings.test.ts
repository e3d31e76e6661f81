import { describe, expect, test } from "bun:test";
import type { DataObjectReaders } from "../../src/engine/data-object-readers.ts";
import { findStreamHoldings } from "../../src/engine/stream-holdings.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import { HOLDING_LOOKS_MAX, OBJECT_READS_MAX } from "../../src/lib/limits.ts";
import type { ObjectEntry } from "../../src/metadata/entries.ts";
import type { View } from "../../src/metadata/view.ts";
import { codeOf } from "../support/code-of.ts";

/** So many live objects, newest first, of which one holds the stream's tail state. */
function objects(count: number, holderAt: number) {
  const entries = Array.from({ length: count }, (_, objectId) => ({ objectId }) as ObjectEntry);
  const asked: number[] = [];
  const view = { liveObjectsOf: () => entries, object: (objectId: number) => entries[objectId] ?? null } as unknown as View;
  const readers = {
    async readTailState({ objectId }: ObjectEntry) {
      asked.push(objectId);
      return objectId === holderAt ? { ...emptyTailState(7), changeNumber: 7 } : null;
    },
    readBatches: async () => [],
  } as unknown as DataObjectReaders;
  return { asked, find: () => findStreamHoldings({ view, catchUp: async () => {} }, readers, 1, 1) };
}

test("a search ends with the group of objects that has told enough", async () => {
  const { asked, find } = objects(1000, 3);
  const { tail, holdings, coveringCount, isComplete } = await find();
  expect([tail?.nextOffset, holdings.length, coveringCount, isComplete]).toEqual([7, 1, 1000, false]);
  expect(asked.length).toBe(OBJECT_READS_MAX);
});

test("a search for a stream that no object holds asks a bounded number, and says that it is not complete", async () => {
  const { asked, find } = objects(1000, -1);
  expect(await find()).toEqual({ tail: null, holdings: [], coveringCount: 1000, isComplete: false });
  expect(asked.length).toBe(HOLDING_LOOKS_MAX);
});

test("of few objects each is asked", async () => {
  const { asked, find } = objects(40, -1);
  expect((await find()).isComplete).toBe(true);
  expect(asked.length).toBe(40);
});

describe("an object that is missing", () => {
  /** A stream whose tail moves to another object while it is searched, as often as the test says; and whether the view learns of it. */
  function moving(movesMax: number, isLearned: boolean) {
    let moves = 0;
    let known = 0;
    const entry = (objectId: number) => ({ objectId, state: "live" }) as ObjectEntry;
    const view = {
      liveObjectsOf: () => [entry(known)],
      object: (objectId: number) => (objectId === known ? entry(objectId) : null),
    } as unknown as View;
    const readers = {
      describe: ({ objectId }: ObjectEntry) => `data object ${objectId}`,
      async readTailState({ objectId }: ObjectEntry) {
        if (moves < movesMax) moves += 1;
        return objectId === moves ? { ...emptyTailState(7), changeNumber: 7 } : "object_missing";
      },
      readBatches: async () => [],
    } as unknown as DataObjectReaders;
    const catchUp = async () => {
      if (isLearned) known = moves;
    };
    return findStreamHoldings({ view, catchUp }, readers, 1, 1);
  }

  test("and was replaced, as the newest view knows, makes the search begin again", async () => {
    for (const movesMax of [0, 1, 2]) expect((await moving(movesMax, true)).tail?.nextOffset).toBe(7);
  });

  test("again and again ends the search, as one that may be repeated", async () => {
    expect(await codeOf(() => moving(100, true))).toBe("unavailable");
  });

  test("though the newest view holds it to be live is damage", async () => {
    expect(await codeOf(() => moving(1, false))).toBe("corrupt");
  });
});
