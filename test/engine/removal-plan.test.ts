import { expect, test } from "bun:test";
import { planRemoval, type RemovalFacts, type RemovalTry } from "../../src/engine/removal-plan.ts";
import { LATE_WRITE_MS, REMOVAL_DELAY_MS } from "../../src/lib/limits.ts";
import type { ObjectEntry } from "../../src/metadata/entries.ts";

const NOW_MS = 1_800_000_000_000;
const FRESH_MS = REMOVAL_DELAY_MS;

function destroyed(objectId: number, destroyedIndex: number, ageMs = LATE_WRITE_MS): ObjectEntry {
  return {
    objectId,
    random: "0".repeat(16),
    state: "destroyed",
    preparedBy: { nodeId: 1, nodeEpoch: 1 },
    preparedUntilMs: 0,
    summary: null,
    liveIndex: null,
    destroyedIndex,
    destroyedAtMs: NOW_MS - ageMs,
  };
}

function plan(entries: readonly ObjectEntry[], changes: Partial<RemovalFacts> = {}) {
  const facts = { destroyed: entries, appliedByAll: 100, databaseNowMs: NOW_MS, monotonicMs: 5000, tries: new Map(), keysMax: 1000 };
  const { objects, lastOf, index } = planRemoval({ ...facts, ...changes });
  return { ids: objects.map(({ objectId }) => objectId), last: [...lastOf], index };
}

function tried(changes: Partial<RemovalTry>): RemovalTry {
  return { isDeletedOnce: false, refusals: 0, notBeforeMs: 0, ...changes };
}

test("an object goes a minute behind its destruction, for good once no late write can bring it back", () => {
  expect(plan([destroyed(1, 5, REMOVAL_DELAY_MS - 1)])).toEqual({ ids: [], last: [], index: 0 });
  expect(plan([destroyed(1, 5, REMOVAL_DELAY_MS)])).toEqual({ ids: [1], last: [], index: 5 });
  expect(plan([destroyed(1, 5, LATE_WRITE_MS - 1)])).toEqual({ ids: [1], last: [], index: 5 });
  expect(plan([destroyed(1, 5, LATE_WRITE_MS)])).toEqual({ ids: [1], last: [1], index: 5 });
});

test("one that was deleted early is not asked for again before its last time", () => {
  const tries = new Map([[1, tried({ isDeletedOnce: true })]]);
  expect(plan([destroyed(1, 5, FRESH_MS)], { tries }).ids).toEqual([]);
  expect(plan([destroyed(1, 5)], { tries })).toEqual({ ids: [1], last: [1], index: 5 });
});

test("nothing goes that a live node has not applied the destruction of", () => {
  const entries = [destroyed(1, 5), destroyed(2, 6), destroyed(3, 7)];
  expect(plan(entries, { appliedByAll: 6 })).toEqual({ ids: [1, 2], last: [1, 2], index: 6 });
  expect(plan(entries, { appliedByAll: 4 }).ids).toEqual([]);
  expect(plan(entries, { appliedByAll: 0 }).ids).toEqual([]);
});

test("a refused one waits for its time and keeps nobody else", () => {
  const tries = new Map([[1, tried({ refusals: 3, notBeforeMs: 5001 })]]);
  expect(plan([destroyed(1, 5), destroyed(2, 6)], { tries }).ids).toEqual([2]);
  expect(plan([destroyed(1, 5), destroyed(2, 6)], { tries, monotonicMs: 5001 }).ids).toEqual([1, 2]);
});

test("a clock of the database that falls deletes later, never sooner", () => {
  expect(plan([destroyed(1, 5)], { databaseNowMs: NOW_MS - LATE_WRITE_MS }).ids).toEqual([]);
});

test("what is not destroyed is never named, whoever lists it", () => {
  const alive = [
    { ...destroyed(1, 5), state: "live" as const },
    { ...destroyed(2, 5), state: "prepared" as const },
    { ...destroyed(3, 5), destroyedIndex: null },
    { ...destroyed(4, 5), destroyedAtMs: null },
  ];
  expect(plan(alive).ids).toEqual([]);
});

test("a batch has no more keys than one delete takes, the oldest first", () => {
  const entries = Array.from({ length: 10 }, (_, at) => destroyed(at + 1, at + 1));
  expect(plan(entries, { keysMax: 3 })).toEqual({ ids: [1, 2, 3], last: [1, 2, 3], index: 3 });
});
