import { expect, test } from "bun:test";
import { STREAM_IDS_PER_RESERVATION } from "../../src/lib/limits.ts";
import { checkInvariants } from "../../src/metadata/invariants.ts";
import { nodeName, registerCommand, StateFixture, summaryOf, verdict } from "./state-fixture.ts";

test("a node that nobody knows registers and gets a block of stream ids", () => {
  const f = new StateFixture();
  const first = f.register(nodeName(1));
  const second = f.register(nodeName(2));
  expect(second.firstStreamId).toBe(first.firstStreamId + STREAM_IDS_PER_RESERVATION);
  expect(f.state.registration(nodeName(1))).toMatchObject({ state: "live", registeredAtMs: f.atMs, committedNumber: 0 });
  checkInvariants(f.state);
});

test("a register that names another predecessor than the current one is refused and fences nobody", () => {
  const f = new StateFixture();
  f.register(nodeName(1, 5));
  for (const replaces of [null, 4, 6])
    expect(verdict(f.run(nodeName(1, 9), registerCommand(nodeName(1, 9), replaces)))).toBe("epoch_conflict");
  expect(f.state.registration(nodeName(1, 5))?.state).toBe("live");
});

test("a register with an epoch that does not rise is refused", () => {
  const f = new StateFixture();
  f.register(nodeName(1, 5));
  expect(verdict(f.run(nodeName(1, 4), registerCommand(nodeName(1, 4), 5)))).toBe("epoch_conflict");
});

test("a register fences the predecessor that it names, in the same command", () => {
  const f = new StateFixture();
  f.register(nodeName(1, 1));
  const [objectId = 0] = f.prepare(nodeName(1, 1), 1);
  f.run(nodeName(1, 1), { type: "commit", wal: nodeName(1, 1), from: 0, to: 7, objects: [summaryOf(objectId)], closedStreams: [] });
  f.register(nodeName(1, 2), 1);
  expect(f.state.registration(nodeName(1, 1))).toMatchObject({ state: "fenced", fencedNumber: 7 });
});

test("a register of a program older than the log's command version is refused", () => {
  const f = new StateFixture();
  f.state.putCounters({ commandVersion: 2 });
  expect(verdict(f.run(nodeName(1), registerCommand(nodeName(1))))).toBe("stale_version");
  expect(f.state.registration(nodeName(1))).toBeNull();
});

test("a register in another's name is refused", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  expect(f.batch(nodeName(1), [registerCommand(nodeName(2))], 1).map(verdict)).toEqual(["proposer_dead"]);
});

test("every command of an unknown, fenced or ended proposer is refused and changes nothing", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  const dead = f.register(nodeName(2));
  f.create(nodeName(2), dead.firstStreamId, "a");
  f.run(nodeName(1), { type: "fence", victim: nodeName(2) });
  const before = f.state.streamById(dead.firstStreamId);
  for (const proposer of [nodeName(2), nodeName(3)]) {
    for (const command of [
      { type: "delete_stream", streamId: dead.firstStreamId },
      { type: "reserve_ids" },
      { type: "fence", victim: nodeName(1) },
      { type: "prepare_objects", randoms: ["0000000000000000"], expiresAtMs: 1 },
      { type: "commit", wal: nodeName(2), from: 0, to: 1, objects: [], closedStreams: [] },
    ] as const) {
      expect(verdict(f.run(proposer, command))).toBe("proposer_dead");
    }
  }
  f.run(nodeName(1), { type: "end", victim: nodeName(2), lastNumber: 0, heir: null });
  expect(verdict(f.run(nodeName(2), { type: "reserve_ids" }))).toBe("proposer_dead");
  expect(f.state.streamById(dead.firstStreamId)).toBe(before);
});

test("the rest of a batch is refused once it has ended its own proposer", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  const outcomes = f.batch(nodeName(1), [
    { type: "reserve_ids" },
    { type: "end", victim: nodeName(1), lastNumber: 0, heir: null },
    { type: "reserve_ids" },
  ]);
  expect(outcomes.map(verdict)).toEqual(["applied", "applied", "proposer_dead"]);
});

test("a fence of the fenced, the ended or the unknown is refused by name", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  f.register(nodeName(2));
  const fence = { type: "fence", victim: nodeName(2) } as const;
  expect(verdict(f.run(nodeName(1), fence))).toBe("applied");
  expect(verdict(f.run(nodeName(1), fence))).toBe("already_fenced");
  f.run(nodeName(1), { type: "end", victim: nodeName(2), lastNumber: 0, heir: null });
  expect(verdict(f.run(nodeName(1), fence))).toBe("already_ended");
  expect(verdict(f.run(nodeName(1), { type: "fence", victim: nodeName(9) }))).toBe("unknown_registration");
});

test("an end is refused while the victim lives, above or below its committed position, and twice", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  f.register(nodeName(2));
  const end = { type: "end", victim: nodeName(2), lastNumber: 0, heir: null } as const;
  expect(verdict(f.run(nodeName(1), end))).toBe("not_fenced");
  f.run(nodeName(1), { type: "fence", victim: nodeName(2) });
  expect(verdict(f.run(nodeName(1), { ...end, lastNumber: 1 }))).toBe("wal_position");
  expect(verdict(f.run(nodeName(1), end))).toBe("applied");
  expect(verdict(f.run(nodeName(1), end))).toBe("already_ended");
});

test("an end is refused with an heir that is unknown, dead, or the victim itself", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  f.register(nodeName(2));
  f.register(nodeName(3));
  for (const nodeId of [2, 3]) f.run(nodeName(1), { type: "fence", victim: nodeName(nodeId) });
  for (const heir of [nodeName(2), nodeName(3), nodeName(9)]) {
    expect(verdict(f.run(nodeName(1), { type: "end", victim: nodeName(2), lastNumber: 0, heir }))).toBe("unknown_registration");
  }
});

test("heirs own along a chain of restarts, with no stream touched", () => {
  const f = new StateFixture();
  const { firstStreamId } = f.register(nodeName(1, 1));
  const entry = f.create(nodeName(1, 1), firstStreamId, "a");
  for (let epoch = 2; epoch <= 50; epoch++) {
    f.register(nodeName(1, epoch), epoch - 1);
    expect(f.state.ownerOf(entry)).toMatchObject({ recovering: true });
    f.run(nodeName(1, epoch), { type: "end", victim: nodeName(1, epoch - 1), lastNumber: 0, heir: nodeName(1, epoch) });
    expect(f.state.ownerOf(entry)).toMatchObject({ recovering: false, owner: { name: nodeName(1, epoch) } });
  }
  expect(f.state.streamById(firstStreamId)).toBe(entry);
  f.run(nodeName(1, 50), { type: "end", victim: nodeName(1, 50), lastNumber: 0, heir: null });
  expect(f.state.ownerOf(entry)).toBeNull();
  checkInvariants(f.state);
});

test("a node is removed only when all its registrations have ended, and keeps its epoch", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  f.register(nodeName(2, 5));
  const remove = { type: "remove_node", nodeId: 2 } as const;
  expect(verdict(f.run(nodeName(1), remove))).toBe("node_alive");
  f.run(nodeName(1), { type: "fence", victim: nodeName(2, 5) });
  expect(verdict(f.run(nodeName(1), remove))).toBe("node_alive");
  f.run(nodeName(1), { type: "end", victim: nodeName(2, 5), lastNumber: 0, heir: null });
  expect(verdict(f.run(nodeName(1), remove))).toBe("applied");
  expect([...f.state.nodes()].map((node) => node.nodeId)).toEqual([1]);
  expect(verdict(f.run(nodeName(1), remove))).toBe("unknown_node");
  expect(verdict(f.run(nodeName(1), { type: "resize", nodeId: 2, slots: 3 }))).toBe("unknown_node");
  f.register(nodeName(2, 6), 5);
  expect([...f.state.nodes()]).toHaveLength(2);
});

test("a resize changes the node's slots", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  f.run(nodeName(1), { type: "resize", nodeId: 1, slots: 42 });
  expect(f.state.node(1)?.slots).toBe(42);
});

test("a repeated batch changes nothing and gets the same outcomes", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  const commands = [{ type: "reserve_ids" }, { type: "delete_stream", streamId: 3 }] as const;
  const outcomes = f.batch(nodeName(1), commands);
  const counters = f.state.counters;
  const entry = f.state.registration(nodeName(1));
  expect(f.batch(nodeName(1), commands, 1)).toEqual(outcomes);
  expect(f.state.counters).toEqual(counters);
  expect(f.state.registration(nodeName(1))).toBe(entry);
});

test("a late repeat of an older batch, or one behind a gap, is refused", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  f.run(nodeName(1), { type: "reserve_ids" });
  f.run(nodeName(1), { type: "reserve_ids" });
  for (const batch of [1, 4]) expect(f.batch(nodeName(1), [{ type: "reserve_ids" }], batch).map(verdict)).toEqual(["batch_order"]);
});

test("the last batch of a registration is answered alike after its fence", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  f.register(nodeName(2));
  const outcomes = f.batch(nodeName(2), [{ type: "reserve_ids" }]);
  f.run(nodeName(1), { type: "fence", victim: nodeName(2) });
  expect(f.batch(nodeName(2), [{ type: "reserve_ids" }], 1)).toEqual(outcomes);
});

test("late batches of the dead leave no trace in their registration", () => {
  const f = new StateFixture();
  f.register(nodeName(1));
  f.register(nodeName(2));
  f.run(nodeName(1), { type: "fence", victim: nodeName(2) });
  const entry = f.state.registration(nodeName(2));
  for (const batch of [1, 5]) expect(f.batch(nodeName(2), [{ type: "reserve_ids" }], batch).map(verdict)).toEqual(["proposer_dead"]);
  expect(f.state.registration(nodeName(2))).toBe(entry);
});
