import { afterEach, beforeEach, expect, test } from "bun:test";
import { COMMANDS_PER_BATCH_MAX, PROPOSALS_WAITING_MAX } from "../../src/lib/limits.ts";
import { decodeBatch } from "../../src/metadata/command-format.ts";
import { quiet } from "../support/manual-clock.ts";
import { A, B, createCommand, LogFixture, watch } from "./log-fixture.ts";
import type { Fault } from "./memory-sql-store.ts";
import { registerCommand } from "./state-fixture.ts";

let f: LogFixture;
beforeEach(() => {
  f = new LogFixture();
});
afterEach(async () => {
  await f.close();
});

function rowsOf(fixture: LogFixture): number[] {
  const { rows } = fixture.database.statements.readLog(0, 1000);
  return rows.map((row) => decodeBatch(row.payload, "row").commands.length);
}

test("a proposal is applied from the insert's answer, with no read of the log", async () => {
  const { log, store } = await f.node(A);
  store.calls.length = 0;
  const counted = log.figures.proposals.count;
  const watched = watch(log.propose(createCommand(1)).outcome);
  await quiet();
  expect(watched.state).toBe("applied");
  expect(log.figures).toMatchObject({ appliedIndex: log.view.appliedIndex, waitingCount: 0, unappliedCount: 0 });
  expect(log.figures.proposals.count).toBe(counted + 1);
  expect(store.calls).toEqual(["insertBatch"]);
  expect(log.view.streamByName("s/1")?.streamId).toBe(1);
});

test("a proposal is measured until its outcome, however long the database takes", async () => {
  const { log, store } = await f.node(A);
  const { sumMs } = log.figures.proposals;
  const insert = store.insertBatch.bind(store);
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  store.insertBatch = async (...parts) => {
    await gate;
    return insert(...parts);
  };
  const watched = watch(log.propose(createCommand(1)).outcome);
  await quiet();
  await f.clock.advance(70);
  open();
  await quiet();
  expect(watched.state).toBe("applied");
  expect(log.figures.proposals.sumMs - sumMs).toBe(70);
});

test("what is proposed in one turn, or while a batch is out, shares a batch", async () => {
  const { log } = await f.node(A);
  for (let id = 1; id <= 3; id++) log.propose(createCommand(id));
  await Promise.resolve();
  await Promise.resolve();
  for (let id = 4; id <= 4 + COMMANDS_PER_BATCH_MAX; id++) log.propose(createCommand(id));
  await quiet();
  expect(rowsOf(f)).toEqual([1, 3, COMMANDS_PER_BATCH_MAX, 1]);
  expect(log.view.streamCount).toBe(4 + COMMANDS_PER_BATCH_MAX);
});

for (const fault of ["lose_answer", "lose_request"] as const) {
  test(`a batch with ${fault} is repeated until it is settled, and takes effect once`, async () => {
    const { log, store } = await f.node(A);
    let faults = 3;
    store.faultOf = (method) => (method === "insertBatch" && faults-- > 0 ? fault : null);
    const proposal = log.propose({ type: "reserve_ids" });
    const watched = watch(proposal.outcome);
    await quiet();
    expect(proposal.isSent).toBe(true);
    expect(proposal.withdraw()).toBe(false);
    await f.clock.advance(10_000);
    expect(watched.state).toBe("applied");
    expect(rowsOf(f)).toEqual([1, 1]);
    expect(log.view.registration(A)?.streamIdBlocks).toHaveLength(2);
  });
}

test("a batch whose answers are all lost is settled by the tail", async () => {
  const { log, store } = await f.node(A);
  store.faultOf = (method) => (method === "insertBatch" ? "lose_answer" : null);
  const watched = watch(log.propose(createCommand(1)).outcome);
  await f.clock.advance(1000);
  expect(watched.state).toBe("applied");
});

test("a batch in doubt stays open however often the database then refuses", async () => {
  const { log, store } = await f.node(A);
  const faults: Fault[] = ["lose_request"];
  store.faultOf = (method) => (method === "insertBatch" ? (faults.shift() ?? "refuse") : null);
  const watched = watch(log.propose(createCommand(1)).outcome);
  await f.clock.advance(120_000);
  expect(watched.state).toBe("pending");
  expect(log.isAnswerOverdue).toBe(true);
  store.faultOf = () => null;
  await f.clock.advance(3000);
  expect(watched.state).toBe("applied");
  expect(log.isAnswerOverdue).toBe(false);
});

test("a batch that the database refuses for certain is unavailable, changes nothing, and its number is free again", async () => {
  const { log, store } = await f.node(A);
  store.faultOf = (method) => (method === "insertBatch" ? "refuse" : null);
  const watched = watch(log.propose(createCommand(1)).outcome);
  await f.clock.advance(5000);
  expect(watched.state).toBe("rejected unavailable");
  expect(log.view.streamCount).toBe(0);
  store.faultOf = () => null;
  expect(await log.propose(createCommand(1)).outcome).toMatchObject({ applied: true });
  expect(log.view.registration(A)?.lastBatch).toBe(1);
});

test("a proposal that is not sent can be withdrawn, and then never takes effect", async () => {
  const { log, store } = await f.node(A);
  store.faultOf = (method) => (method === "insertBatch" ? "hang" : null);
  log.propose(createCommand(1));
  await quiet();
  const second = log.propose(createCommand(2));
  const watched = watch(second.outcome);
  expect(second.isSent).toBe(false);
  expect(second.withdraw()).toBe(true);
  await quiet();
  expect(watched.state).toBe("rejected unavailable");
});

test("proposals beyond the waiting bound are unavailable at once", async () => {
  const { log, store } = await f.node(A);
  store.faultOf = (method) => (method === "insertBatch" ? "hang" : null);
  log.propose(createCommand(1));
  await quiet();
  for (let i = 0; i < PROPOSALS_WAITING_MAX; i++) log.propose({ type: "reserve_ids" });
  const watched = watch(log.propose({ type: "reserve_ids" }).outcome);
  await quiet();
  expect(watched.state).toBe("rejected unavailable");
});

test("a fence of a node whose heartbeat moved is refused as node_alive and leaves the number free", async () => {
  const { log } = await f.node(A);
  await f.node(B);
  await f.clock.advance(3000);
  const fence = { type: "fence", victim: B } as const;
  expect(await log.propose(fence, [{ victim: B, counter: 1 }]).outcome).toMatchObject({ applied: false, code: "node_alive" });
  expect(await log.propose({ type: "reserve_ids" }).outcome).toMatchObject({ applied: true });
  expect(log.view.registration(B)?.state).toBe("live");
});

test("a fence travels alone, so that its refusal keeps nothing else out", async () => {
  const { log } = await f.node(A);
  await f.node(B);
  await f.clock.advance(3000);
  const outcomes = [
    log.propose(createCommand(1)),
    log.propose({ type: "fence", victim: B }, [{ victim: B, counter: 1 }]),
    log.propose(createCommand(2)),
  ].map((proposal) => watch(proposal.outcome));
  await f.clock.advance(1000);
  expect(outcomes.map((watched) => watched.state)).toEqual(["applied", "node_alive", "applied"]);
});

test("a fenced node's proposals are rejected, what is out too, and the node is told to stop", async () => {
  const a = await f.node(A);
  const b = await f.node(B);
  b.store.faultOf = (method) => (method === "insertBatch" ? "lose_request" : null);
  const out = watch(b.log.propose({ type: "reserve_ids" }).outcome);
  await quiet();
  const waiting = watch(b.log.propose({ type: "reserve_ids" }).outcome);
  await a.log.propose({ type: "fence", victim: B }, [{ victim: B, counter: null }]).outcome;
  await f.clock.advance(1500);
  expect([out.state, waiting.state]).toEqual(["rejected fenced_node", "rejected fenced_node"]);
  expect(b.fatal).toEqual([expect.objectContaining({ code: "fenced_node" })]);
  expect(watch(b.log.propose({ type: "reserve_ids" }).outcome)).toMatchObject({ state: "pending" });
  await expect(b.log.propose({ type: "reserve_ids" }).outcome).rejects.toMatchObject({ code: "fenced_node" });
});

test("a heartbeat refused before the fence is applied leaves what is out unknown", async () => {
  const a = await f.node(A);
  const b = await f.node(B);
  b.store.faultOf = (method) => (method === "readLog" ? "refuse" : method === "insertBatch" ? "hang" : null);
  const out = watch(b.log.propose({ type: "reserve_ids" }).outcome);
  await a.log.propose({ type: "fence", victim: B }, [{ victim: B, counter: null }]).outcome;
  await f.clock.advance(2000);
  expect(b.fatal).toEqual([expect.objectContaining({ code: "fenced_node" })]);
  expect(out.state).toBe("rejected unknown_outcome");
});

test("a second process under the same registration is found by its row id, and stops", async () => {
  const { log } = await f.node(A);
  f.database.statements.insertBatch({
    rowId: "f".repeat(32),
    proposer: A,
    batch: 1,
    payload: f.database.statements.readLog(0, 1).rows[0]?.payload ?? new Uint8Array(),
    fences: [],
  });
  const other = await f.open();
  expect(other.log.view.appliedIndex).toBe(2);
  const watched = watch(log.propose({ type: "reserve_ids" }).outcome);
  await quiet();
  expect(watched.state).toBe("rejected unknown_outcome");
});

test("a stop rejects what waits as unavailable and what is out as unknown", async () => {
  const { log, store } = await f.node(A);
  store.faultOf = (method) => (method === "insertBatch" ? "lose_request" : null);
  const out = watch(log.propose(createCommand(1)).outcome);
  await quiet();
  const waiting = watch(log.propose(createCommand(2)).outcome);
  const stopped = log.stop();
  await quiet();
  expect([out.state, waiting.state]).toEqual(["rejected unknown_outcome", "rejected unavailable"]);
  await stopped;
});

test("a node that is not registered proposes nothing", async () => {
  const { log } = await f.open();
  await expect(log.propose({ type: "reserve_ids" }).outcome).rejects.toMatchObject({ code: "unavailable" });
});

test("a refused register leaves the node unregistered, and another epoch may be tried", async () => {
  await f.node(A);
  const { log } = await f.open();
  expect(await log.register(registerCommand({ ...A, nodeEpoch: 11 }, null), null)).toMatchObject({
    applied: false,
    code: "epoch_conflict",
  });
  expect(log.registration).toBeNull();
  expect(await log.register(registerCommand({ ...A, nodeEpoch: 12 }, 10), null)).toMatchObject({ applied: true });
  expect(log.registration).toEqual({ nodeId: 1, nodeEpoch: 12 });
});
