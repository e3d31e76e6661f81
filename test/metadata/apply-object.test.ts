import { describe, expect, test } from "bun:test";
import type { Command, ObjectSummary } from "../../src/metadata/command.ts";
import { checkInvariants } from "../../src/metadata/invariants.ts";
import { nodeName, StateFixture, summaryOf, verdict } from "./state-fixture.ts";

const A = nodeName(1);
const B = nodeName(2);

function pair(): StateFixture {
  const f = new StateFixture();
  f.register(A);
  f.register(B);
  return f;
}

function commitOf(wal: typeof A, from: number, to: number, objectIds: readonly number[]): Command {
  return { type: "commit", wal, from, to, objects: objectIds.map((id) => summaryOf(id, 1, 100)), closedStreams: [] };
}

test("a commit makes its objects live and moves the committed position", () => {
  const f = pair();
  f.create(A, 1, "a");
  const ids = f.prepare(A, 2);
  const outcome = f.run(A, { type: "commit", wal: A, from: 0, to: 9, objects: ids.map((id) => summaryOf(id)), closedStreams: [1, 77] });
  expect(verdict(outcome)).toBe("applied");
  expect(f.state.liveObjectsOf(1).map((entry) => entry.objectId)).toEqual(ids.toReversed());
  expect(f.state.registration(A)?.committedNumber).toBe(9);
  expect(f.stream(1).isClosed).toBe(true);
  checkInvariants(f.state);
});

test("a commit from another position, repeated, or that moves nothing is refused and leaves its objects", () => {
  const f = pair();
  const [first = 0, second = 0] = f.prepare(A, 2);
  expect(verdict(f.run(A, commitOf(A, 1, 2, [first])))).toBe("wal_position");
  expect(verdict(f.run(A, commitOf(A, 0, 0, [first])))).toBe("wal_position");
  expect(verdict(f.run(A, commitOf(A, 0, 5, [first])))).toBe("applied");
  expect(verdict(f.run(A, commitOf(A, 0, 5, [first])))).toBe("wal_position");
  expect(verdict(f.run(A, commitOf(A, 5, 6, [first])))).toBe("object_state");
  expect(verdict(f.run(A, commitOf(A, 5, 6, [second, second])))).toBe("object_state");
  expect(f.state.object(second)?.state).toBe("prepared");
  checkInvariants(f.state);
});

test("another's WAL is committed only between its fence and its end", () => {
  const f = pair();
  const [objectId = 0] = f.prepare(B, 1);
  expect(verdict(f.run(B, commitOf(A, 0, 4, [objectId])))).toBe("not_fenced");
  f.run(B, { type: "fence", victim: A });
  expect(verdict(f.run(B, commitOf(A, 0, 4, [objectId])))).toBe("applied");
  expect(f.state.registration(A)).toMatchObject({ committedNumber: 4, fencedNumber: 0 });
  expect(verdict(f.run(B, { type: "end", victim: A, lastNumber: 4, heir: null }))).toBe("applied");
  expect(verdict(f.run(B, commitOf(A, 4, 5, [])))).toBe("already_ended");
});

test("a second recoverer of one WAL is refused", () => {
  const f = pair();
  const C = nodeName(3);
  f.register(C);
  f.run(B, { type: "fence", victim: A });
  const [ofB = 0] = f.prepare(B, 1);
  const [ofC = 0] = f.prepare(C, 1);
  expect(verdict(f.run(B, commitOf(A, 0, 4, [ofB])))).toBe("applied");
  expect(verdict(f.run(C, commitOf(A, 0, 4, [ofC])))).toBe("wal_position");
});

test("objects that another prepared cannot be committed", () => {
  const f = pair();
  const [objectId = 0] = f.prepare(B, 1);
  expect(verdict(f.run(A, commitOf(A, 0, 4, [objectId])))).toBe("object_state");
});

test("an abandoned object is destroyed after its expiry, and then cannot be committed", () => {
  const f = pair();
  const [objectId = 0] = f.prepare(A, 1, f.atMs + 1000);
  const destroy = { type: "destroy_objects", objectIds: [objectId] } as const;
  expect(verdict(f.run(B, destroy))).toBe("object_state");
  f.atMs += 1000;
  expect(verdict(f.run(B, destroy))).toBe("applied");
  expect(verdict(f.run(A, commitOf(A, 0, 1, [objectId])))).toBe("object_state");
  expect(f.state.object(objectId)).toMatchObject({ state: "destroyed", destroyedIndex: f.state.appliedIndex - 1, destroyedAtMs: f.atMs });
});

test("an object past its expiry that nobody destroyed is committed", () => {
  const f = pair();
  const [objectId = 0] = f.prepare(A, 1, f.atMs + 1000);
  f.atMs += 5000;
  expect(verdict(f.run(A, commitOf(A, 0, 1, [objectId])))).toBe("applied");
});

test("who prepared an object gives it up at any time", () => {
  const f = pair();
  const [objectId = 0] = f.prepare(A, 1);
  expect(verdict(f.run(A, { type: "destroy_objects", objectIds: [objectId] }))).toBe("applied");
});

test("a compaction replaces live inputs by prepared outputs, once", () => {
  const f = pair();
  const inputs = f.prepare(A, 2);
  f.run(A, commitOf(A, 0, 1, inputs));
  const [output = 0, spare = 0] = f.prepare(B, 2);
  const compact = { type: "compact", inputs, outputs: [summaryOf(output, 1, 100, 1)] } as const;
  expect(verdict(f.run(B, { ...compact, outputs: [summaryOf(inputs[0] ?? 0)] }))).toBe("object_state");
  expect(verdict(f.run(B, { ...compact, inputs: [spare] }))).toBe("object_state");
  expect(verdict(f.run(B, compact))).toBe("applied");
  expect(verdict(f.run(B, compact))).toBe("object_state");
  expect(verdict(f.run(B, { ...compact, outputs: [summaryOf(spare, 1, 100, 1)] }))).toBe("object_state");
  expect(f.state.object(spare)?.state).toBe("prepared");
  expect(f.state.liveObjectsOf(50).map((entry) => entry.objectId)).toEqual([output]);
  checkInvariants(f.state);
});

describe("outputs of a compaction that are no run in the place of its inputs are refused", () => {
  const place = (streamId: number, offset: number) => ({ streamId, offset });
  const cases: Record<string, readonly Partial<ObjectSummary>[]> = {
    "a stream below the inputs": [{ first: place(9, 0) }],
    "a stream above the inputs": [{ last: place(21, 0) }],
    "more records than the inputs had": [
      { last: place(15, 5), recordCount: 4 },
      { first: place(16, 0), recordCount: 7 },
    ],
    "two that overlap": [{ last: place(16, 5) }, { first: place(16, 5) }],
    "two out of order": [{ first: place(16, 0) }, { last: place(15, 5) }],
    "two of different levels": [{ last: place(15, 5) }, { first: place(16, 0), level: 2 }],
  };
  test.each(Object.entries(cases))("%s", (_, changes) => {
    const f = pair();
    const inputs = f.prepare(A, 2);
    const objects = inputs.map((objectId) => ({ ...summaryOf(objectId, 10, 20), recordCount: 5 }));
    f.run(A, { type: "commit", wal: A, from: 0, to: 1, objects, closedStreams: [] });
    const ids = f.prepare(A, 2);
    const outputs = changes.map((change, at) => ({ ...summaryOf(ids[at] ?? 0, 10, 20, 1), ...change }));
    const refused = f.run(A, { type: "compact", inputs, outputs });
    expect(verdict(refused)).toBe("object_state");
    expect(refused.facts.objectId).toBe(outputs.at(-1)?.objectId ?? 0);
    expect(inputs.map((objectId) => f.state.object(objectId)?.state)).toEqual(["live", "live"]);
    checkInvariants(f.state);
  });

  test("as are any where there is no input; of inputs that are all dead there may be none", () => {
    const f = pair();
    const inputs = f.prepare(A, 1);
    f.run(A, commitOf(A, 0, 1, inputs));
    const [output = 0] = f.prepare(A, 1);
    expect(verdict(f.run(A, { type: "compact", inputs: [], outputs: [summaryOf(output)] }))).toBe("object_state");
    expect(verdict(f.run(A, { type: "compact", inputs, outputs: [] }))).toBe("applied");
    expect(f.state.object(inputs[0] ?? 0)?.state).toBe("destroyed");
    checkInvariants(f.state);
  });
});

test("only destroyed objects are removed, all of a command or none", () => {
  const f = pair();
  const [destroyed = 0, live = 0] = f.prepare(A, 2);
  f.run(A, commitOf(A, 0, 1, [live]));
  f.run(A, { type: "destroy_objects", objectIds: [destroyed] });
  expect(verdict(f.run(B, { type: "remove_objects", objectIds: [destroyed, live] }))).toBe("object_state");
  expect(f.state.object(destroyed)).not.toBeNull();
  expect(verdict(f.run(B, { type: "remove_objects", objectIds: [destroyed] }))).toBe("applied");
  expect(verdict(f.run(B, { type: "remove_objects", objectIds: [destroyed] }))).toBe("unknown_object");
  checkInvariants(f.state);
});

test("objects of a stream come lowest level first, newest commit first, and only those that reach the offset", () => {
  const f = pair();
  const ids = f.prepare(A, 6);
  const [a = 0, b = 0, c = 0, d = 0, e = 0, input = 0] = ids;
  const at = (objectId: number, level: number, first: [number, number], last: [number, number]) => ({
    ...summaryOf(objectId, 0, 0, level),
    first: { streamId: first[0], offset: first[1] },
    last: { streamId: last[0], offset: last[1] },
  });
  f.run(A, { type: "commit", wal: A, from: 0, to: 1, objects: [at(a, 0, [1, 0], [9, 5])], closedStreams: [] });
  f.run(A, { type: "commit", wal: A, from: 1, to: 2, objects: [at(b, 0, [5, 10], [5, 20])], closedStreams: [] });
  const whole = { ...at(input, 0, [1, 0], [9, 9]), recordCount: 9 };
  f.run(A, { type: "commit", wal: A, from: 2, to: 3, objects: [whole], closedStreams: [] });
  f.run(A, { type: "compact", inputs: [input], outputs: [at(c, 1, [1, 0], [5, 9]), at(d, 1, [5, 10], [5, 30]), at(e, 1, [6, 0], [6, 9])] });
  const found = (streamId: number, offset?: number) => f.state.liveObjectsOf(streamId, offset).map((entry) => entry.objectId);
  expect(found(5)).toEqual([b, a, d, c]);
  expect(found(5, 10)).toEqual([b, a, d]);
  expect(found(5, 25)).toEqual([a, d]);
  expect(found(6)).toEqual([a, e]);
  expect(found(10)).toEqual([]);
  checkInvariants(f.state);
});
