import { expect, test } from "bun:test";
import type { DataObjectReaders } from "../../src/engine/data-object-readers.ts";
import { findStreamHoldings } from "../../src/engine/stream-holdings.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import { HOLDING_LOOKS_MAX, OBJECT_READS_MAX } from "../../src/lib/limits.ts";
import type { ObjectEntry } from "../../src/metadata/entries.ts";
import type { View } from "../../src/metadata/view.ts";

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
  return { asked, find: () => findStreamHoldings(view, readers, 1, 1) };
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
