import { expect, test } from "bun:test";
import { STREAM_IDS_PER_RESERVATION } from "../../src/lib/limits.ts";
import { checkInvariants } from "../../src/metadata/invariants.ts";
import { nodeName, registerCommand, StateFixture, verdict } from "./state-fixture.ts";

const A = nodeName(1);

function fixture(): StateFixture {
  const f = new StateFixture();
  f.run(A, registerCommand(A));
  return f;
}

test("a hold of removal stands until it is replaced or released", () => {
  const f = fixture();
  expect(f.state.removalHeldUntilMs).toBeNull();
  f.run(A, { type: "hold_removal", untilMs: f.atMs + 1000 });
  expect(f.state.removalHeldUntilMs).toBe(f.atMs + 1000);
  f.run(A, { type: "hold_removal", untilMs: f.atMs + 500 });
  expect(f.state.removalHeldUntilMs).toBe(f.atMs + 500);
  f.run(A, { type: "hold_removal", untilMs: null });
  expect(f.state.removalHeldUntilMs).toBeNull();
  checkInvariants(f.state);
});

test("raised ids are passed over by whoever takes the next ones, and never go back", () => {
  const f = fixture();
  f.run(A, { type: "raise_ids", nextStreamId: 2 ** 40, nextObjectId: 2 ** 33 });
  f.run(A, { type: "raise_ids", nextStreamId: 5, nextObjectId: 5 });
  expect(f.run(A, { type: "reserve_ids" }).facts).toEqual({ firstStreamId: 2 ** 40 });
  expect(f.state.counters.nextStreamId).toBe(2 ** 40 + STREAM_IDS_PER_RESERVATION);
  const prepare = { type: "prepare_objects", randoms: ["00ff00ff00ff00ff"], expiresAtMs: 1 } as const;
  expect(f.run(A, prepare).facts).toEqual({ firstObjectId: 2 ** 33 });
  checkInvariants(f.state);
});

test("once the log holds a newer command, a program that does not speak it cannot register", () => {
  const f = fixture();
  f.run(A, { type: "hold_removal", untilMs: null });
  const B = nodeName(2);
  expect(verdict(f.run(B, registerCommand(B)))).toBe("stale_version");
  expect(verdict(f.run(B, { ...registerCommand(B), commandVersion: 2 }))).toBe("applied");
});
