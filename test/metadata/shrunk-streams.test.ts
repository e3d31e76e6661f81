import { expect, test } from "bun:test";
import type { Command } from "../../src/metadata/command.ts";
import { nodeName, PLAIN, StateFixture } from "./state-fixture.ts";

const A = nodeName(1);

/** Node A with a stream 1 that holds records up to 100. */
function fixture(): { readonly f: StateFixture; readonly shrunkBy: (...commands: Command[]) => number[] } {
  const f = new StateFixture();
  f.register(A);
  f.create(A, 1, "root");
  const shrunkBy = (...commands: Command[]) => {
    f.batch(A, commands);
    return [...f.state.shrunkStreams()].toSorted((left, right) => left - right);
  };
  return { f, shrunkBy };
}

const remove = (streamId: number): Command => ({ type: "delete_stream", streamId });
const trim = (streamId: number, startOffset: number): Command => ({ type: "trim_stream", streamId, startOffset });

test("a row shrinks the streams that it deletes or trims, and no others", () => {
  const { f, shrunkBy } = fixture();
  f.create(A, 2, "other");
  expect(shrunkBy(trim(1, 10))).toEqual([1]);
  expect(shrunkBy(trim(1, 10))).toEqual([]);
  expect(shrunkBy(trim(1, 20), remove(2), remove(9))).toEqual([1, 2]);
  expect(shrunkBy({ type: "create_stream", streamId: 3, name: "new", settings: PLAIN, isClosed: false, fork: null })).toEqual([]);
  expect(shrunkBy(remove(1))).toEqual([1]);
});

test("the last fork shrinks the whole chain of deleted sources that goes with it", () => {
  const { f, shrunkBy } = fixture();
  f.fork(A, 2, 1, 50);
  f.fork(A, 3, 2, 60);
  expect(shrunkBy(remove(1))).toEqual([1]);
  expect(shrunkBy(remove(2))).toEqual([1, 2]);
  expect(shrunkBy(remove(3))).toEqual([1, 2, 3]);
  expect(f.state.streamCount).toBe(0);
});

test("a fork that is trimmed, or goes before others, shrinks the sources that do not need its records themselves", () => {
  const { f, shrunkBy } = fixture();
  f.fork(A, 2, 1, 50);
  f.fork(A, 3, 1, 60);
  // The source reads all of it.
  expect(shrunkBy(trim(2, 10))).toEqual([2]);
  f.run(A, trim(1, 30));
  expect(shrunkBy(trim(2, 20))).toEqual([1, 2]);
  f.run(A, remove(1));
  expect(shrunkBy(trim(2, 40))).toEqual([1, 2]);
  expect(shrunkBy(remove(3))).toEqual([1, 3]);
});

test("an expired stream shrinks when it is removed, also by an acquire that is refused", () => {
  const { f, shrunkBy } = fixture();
  f.create(A, 2, "short", { ...PLAIN, ttlSeconds: 10n });
  f.run(A, { type: "release_stream", streamId: 2, deadlineMs: null, walNumber: 0 });
  f.atMs += 20_000;
  expect(shrunkBy({ type: "acquire_stream", streamId: 2 })).toEqual([2]);
  expect(f.state.streamById(2)).toBeNull();
});
