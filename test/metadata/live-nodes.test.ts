import { expect, test } from "bun:test";
import { HEARTBEAT_LIVE_MS } from "../../src/lib/limits.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import { LiveNodes } from "../../src/metadata/live-nodes.ts";
import type { Heartbeat } from "../../src/sql/sql-store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { nodeName, registerCommand, StateFixture } from "./state-fixture.ts";

const FIRST = nodeName(1);
const SECOND = nodeName(2);

function beat(registration: RegistrationName, counter: number, appliedIndex: number): Heartbeat {
  return { registration, counter, appliedIndex, recovering: null, load: "{}", isMarked: false };
}

/** Two nodes, and three rows in the log. */
function setUp() {
  const clock = new ManualClock();
  const fixture = new StateFixture();
  for (const name of [FIRST, SECOND]) fixture.batch(name, [registerCommand(name)]);
  fixture.batch(FIRST, [{ type: "reserve_ids" }]);
  return { clock, fixture, nodes: new LiveNodes(fixture.state, clock) };
}

test("the slowest live node decides", () => {
  const { nodes } = setUp();
  expect(nodes.appliedByAll([beat(FIRST, 1, 3), beat(SECOND, 1, 2)])).toBe(2);
  expect(nodes.appliedByAll([beat(FIRST, 2, 3), beat(SECOND, 2, 3)])).toBe(3);
});

test("a node that nobody has heard of yet may not have applied anything, for as long as it may still come", async () => {
  const { clock, nodes } = setUp();
  expect(nodes.appliedByAll([beat(FIRST, 1, 3)])).toBe(0);
  await clock.advance(HEARTBEAT_LIVE_MS - 1);
  expect(nodes.appliedByAll([beat(FIRST, 2, 3)])).toBe(0);
  await clock.advance(1);
  expect(nodes.appliedByAll([beat(FIRST, 3, 3)])).toBe(3);
  expect(nodes.appliedByAll([beat(FIRST, 4, 3), beat(SECOND, 1, 2)])).toBe(2);
});

test("a counter that stands still for a minute holds nobody back, one that moves again does", async () => {
  const { clock, nodes } = setUp();
  expect(nodes.appliedByAll([beat(FIRST, 1, 3), beat(SECOND, 7, 2)])).toBe(2);
  await clock.advance(HEARTBEAT_LIVE_MS);
  expect(nodes.appliedByAll([beat(FIRST, 2, 3), beat(SECOND, 7, 2)])).toBe(3);
  expect(nodes.appliedByAll([beat(FIRST, 3, 3), beat(SECOND, 8, 2)])).toBe(2);
});

test("the fenced and the ended hold nobody back", () => {
  const { fixture, nodes } = setUp();
  fixture.batch(FIRST, [{ type: "fence", victim: SECOND }]);
  expect(nodes.appliedByAll([beat(FIRST, 1, 4), beat(SECOND, 1, 2)])).toBe(4);
});
