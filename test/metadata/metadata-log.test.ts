import { afterEach, beforeEach, expect, test } from "bun:test";
import { messageOf } from "../../src/lib/errors.ts";
import { CATCH_UP_WAIT_MS, DATABASE_CLOCK_STEADY_MS, LEASE_TTL_MS } from "../../src/lib/limits.ts";
import type { Command } from "../../src/metadata/command.ts";
import { COMMAND_VERSION, encodeBatch, encodeCommand } from "../../src/metadata/command-format.ts";
import { quiet } from "../support/manual-clock.ts";
import { A, B, createCommand, LogFixture, watch } from "./log-fixture.ts";
import { registerCommand } from "./state-fixture.ts";

let f: LogFixture;
beforeEach(() => {
  f = new LogFixture();
});
afterEach(async () => {
  await f.close();
});

/** Puts a row into the log as another program would. */
function insertRow(payload: Uint8Array, batch: number): void {
  f.database.statements.insertBatch({ rowId: `${batch}`.padStart(32, "a"), proposer: A, batch, payload, fences: [] });
}

test("a command of one node is seen by the others at the next poll, and at once after a catch-up", async () => {
  const a = await f.node(A);
  const b = await f.node(B);
  await a.log.propose(createCommand(1)).outcome;
  expect(b.log.view.streamByName("s/1")).toBeNull();
  await b.log.catchUp();
  expect(b.log.view.streamByName("s/1")?.streamId).toBe(1);
  await a.log.propose(createCommand(2)).outcome;
  await f.clock.advance(1000);
  expect(b.log.view.streamByName("s/2")?.streamId).toBe(2);
  expect(a.log.stateHash()).toEqual(b.log.stateHash());
});

test("catch-ups that wait share one read, and one that comes later gets a read of its own", async () => {
  const a = await f.node(A);
  a.store.calls.length = 0;
  const waits = [a.log.catchUp(), a.log.catchUp(), a.log.catchUp()];
  await Promise.all(waits);
  expect(a.store.calls.filter((method) => method === "readLog")).toHaveLength(2);
});

test("a catch-up sees what was in the log when it was called, also while an older read is under way", async () => {
  const a = await f.node(A);
  const b = await f.node(B);
  const early = b.log.catchUp();
  await a.log.propose(createCommand(1)).outcome;
  const late = b.log.catchUp();
  await Promise.all([early, late]);
  expect(b.log.view.streamByName("s/1")).not.toBeNull();
});

test("a catch-up is unavailable where the database refuses or does not answer", async () => {
  const { log, store } = await f.node(A);
  store.faultOf = (method) => (method === "readLog" ? "refuse" : null);
  await expect(log.catchUp()).rejects.toMatchObject({ code: "unavailable" });
  store.faultOf = (method) => (method === "readLog" ? "hang" : null);
  const waiting = log.catchUp().catch((error: { code: string }) => error.code);
  await f.clock.advance(CATCH_UP_WAIT_MS);
  expect(await waiting).toBe("unavailable");
});

test("a listener that throws stops neither the log nor the other listeners", async () => {
  const { log } = await f.node(A);
  const heard: Command["type"][] = [];
  log.onApplied(() => {
    throw new Error("observer");
  });
  const end = log.onApplied((commands) => heard.push(...commands.map((command) => command.type)));
  expect(await log.propose(createCommand(1)).outcome).toMatchObject({ applied: true });
  end();
  await log.propose(createCommand(2)).outcome;
  expect(heard).toEqual(["create_stream"]);
});

test("an outcome is settled before listeners run", async () => {
  const { log } = await f.node(A);
  const order: string[] = [];
  log.onApplied(() => queueMicrotask(() => order.push("listener")));
  await log.propose(createCommand(1)).outcome.then(() => order.push("outcome"));
  await quiet();
  expect(order[0]).toBe("outcome");
});

test("a repeated row is applied without telling listeners", async () => {
  const { log } = await f.node(A);
  await log.propose(createCommand(1)).outcome;
  const heard: unknown[] = [];
  log.onApplied((commands) => heard.push(...commands));
  const [row] = f.database.statements.readLog(1, 1).rows;
  if (row === undefined) throw new Error("no row");
  // As a delayed insert would, after its row was truncated.
  f.database.database.run("DELETE FROM log WHERE log_index = 2");
  f.database.statements.insertBatch({ ...row, rowId: "e".repeat(32), fences: [] });
  f.database.database.run("DELETE FROM log WHERE log_index < 2");
  await log.catchUp();
  expect(log.view.appliedIndex).toBe(3);
  expect(heard).toEqual([]);
});

test("a log that is shorter than what was applied stops the node", async () => {
  const { log, fatal } = await f.node(A);
  await log.propose(createCommand(1)).outcome;
  f.loseRows(1);
  await f.clock.advance(1000);
  expect(fatal).toEqual([expect.objectContaining({ code: "corrupt" })]);
  await expect(log.catchUp()).rejects.toMatchObject({ code: "unavailable" });
  await expect(log.propose(createCommand(2)).outcome).rejects.toMatchObject({ code: "unavailable" });
  expect(log.view.streamByName("s/1")).not.toBeNull();
});

test("a log that was set back and has grown again stops the node, before a foreign row is applied", async () => {
  const a = await f.node(A);
  const b = await f.node(B);
  await a.log.propose(createCommand(1)).outcome;
  await b.log.catchUp();
  f.loseRows(1);
  for (const batch of [1, 2, 3]) insertRow(encodeBatch([encodeCommand(createCommand(batch + 10))]), batch);
  await f.clock.advance(1000);
  for (const node of [a, b]) {
    expect(node.fatal).toEqual([expect.objectContaining({ code: "corrupt" })]);
    expect([...node.log.view.streams()].map((entry) => entry.streamId)).toEqual([1]);
  }
});

test("a log that was set back and has grown to the same length is found without new rows", async () => {
  const { log, fatal } = await f.node(A);
  await log.propose(createCommand(1)).outcome;
  f.loseRows(1);
  insertRow(encodeBatch([encodeCommand(createCommand(7))]), 1);
  await f.clock.advance(6000);
  expect(fatal).toEqual([expect.objectContaining({ code: "corrupt" })]);
});

test("an insert that gets an index which was applied already stops the node", async () => {
  const { log, store, fatal } = await f.node(A);
  await log.propose(createCommand(1)).outcome;
  store.faultOf = (method) => (method === "readLog" ? "refuse" : null);
  f.loseRows(1);
  const watched = watch(log.propose(createCommand(2)).outcome);
  await quiet();
  expect(fatal).toEqual([expect.objectContaining({ code: "corrupt" })]);
  expect(watched.state).toBe("rejected unknown_outcome");
});

test("a hole in the log stops the node instead of being stepped over", async () => {
  const a = await f.node(A);
  const b = await f.node(B);
  b.store.faultOf = (method) => (method === "readLog" ? "refuse" : null);
  for (let id = 1; id <= 4; id++) await a.log.propose(createCommand(id)).outcome;
  const applied = b.log.view.appliedIndex;
  f.database.database.run(`DELETE FROM log WHERE log_index = ${applied + 2}`);
  b.store.faultOf = () => null;
  await f.clock.advance(1000);
  expect(b.log.view.appliedIndex).toBe(applied + 1);
  expect(b.fatal).toHaveLength(1);
});

test("a node whose next row is truncated stops and skips nothing", async () => {
  const a = await f.node(A);
  const b = await f.node(B);
  b.store.faultOf = (method) => (method === "readLog" ? "refuse" : null);
  for (let id = 1; id <= 4; id++) await a.log.propose(createCommand(id)).outcome;
  const applied = b.log.view.appliedIndex;
  f.database.database.run(`DELETE FROM log WHERE log_index <= ${applied + 2}`);
  b.store.faultOf = () => null;
  await f.clock.advance(1000);
  expect(b.log.view.appliedIndex).toBe(applied);
  expect(b.fatal).toEqual([expect.objectContaining({ code: "fenced_node" })]);
});

test("a row of an unknown command type, or a damaged one, stops every node", async () => {
  for (const payload of [new Uint8Array([1, 2, 3]), new Uint8Array(9)]) {
    const fixture = new LogFixture();
    const { log, fatal } = await fixture.node(A);
    fixture.database.statements.insertBatch({ rowId: "a".repeat(32), proposer: A, batch: 1, payload, fences: [] });
    await fixture.clock.advance(1000);
    expect(fatal).toHaveLength(1);
    expect(log.view.appliedIndex).toBe(1);
    await fixture.close();
  }
});

test("a start on a log with a damaged row is refused", async () => {
  await f.node(A);
  insertRow(new Uint8Array([1, 2, 3]), 1);
  await expect(f.open()).rejects.toMatchObject({ code: "corrupt" });
});

test("a start while the database refuses is refused, and changes nothing", async () => {
  const { log } = await f.node(A);
  const before = log.stateHash();
  await expect(
    f.open((other) => {
      other.faultOf = () => "refuse";
    }),
  ).rejects.toMatchObject({ code: "database_failed" });
  expect(log.stateHash()).toEqual(before);
});

test("heartbeats move a counter, and go on after the database was away", async () => {
  const { log, store } = await f.node(A);
  await f.clock.advance(3000);
  const counterOf = () => f.database.statements.readHeartbeats()[0]?.counter ?? 0;
  const before = counterOf();
  expect(before).toBeGreaterThanOrEqual(3);
  const sentAt = log.lastHeartbeat?.monotonicMs ?? 0;
  store.faultOf = () => "refuse";
  await f.clock.advance(5000);
  expect(counterOf()).toBe(before);
  expect(log.lastHeartbeat?.monotonicMs).toBe(sentAt);
  store.faultOf = () => null;
  await f.clock.advance(2000);
  expect(counterOf()).toBeGreaterThan(before);
  expect(log.lastHeartbeat?.monotonicMs).toBeGreaterThan(sentAt);
});

test("a node that replaces a predecessor refuses its heartbeats in the same transaction", async () => {
  const first = await f.node(A);
  first.store.faultOf = (method) => (method === "readLog" ? "refuse" : null);
  await f.node({ nodeId: 1, nodeEpoch: 11 }, 10);
  await f.clock.advance(1500);
  expect(first.fatal).toEqual([expect.objectContaining({ code: "fenced_node" })]);
});

test("the end of a fenced node names who took over, as far as that can be read, and the remedy", async () => {
  const words = async (isBlind: boolean, take: (f: LogFixture) => Promise<unknown>) => {
    const fixture = new LogFixture();
    const first = await fixture.node(A);
    // Only its heartbeat finds the fence: it is sent before the log is looked at again.
    if (isBlind) first.store.faultOf = (method) => (method === "readLog" ? "refuse" : null);
    await take(fixture);
    await fixture.clock.advance(1500);
    expect(first.fatal).toEqual([expect.objectContaining({ code: "fenced_node" })]);
    const text = messageOf(first.fatal[0]);
    await fixture.close();
    return text;
  };
  const replace = (fixture: LogFixture) => fixture.node({ nodeId: 1, nodeEpoch: 11 }, 10);
  const fence = async (fixture: LogFixture) => {
    const other = await fixture.node(B);
    await other.log.propose({ type: "fence", victim: A }, [{ victim: A, counter: null }]).outcome;
  };
  expect(await words(false, replace)).toBe(
    "a later process of node 1 (1@11) has taken over from 1@10, which is fenced and stops: the command log says so. " +
      "What was acknowledged is kept. Remedy: leave this process down; if it is meant to be another node, start it with a --node-id of its own",
  );
  expect(await words(false, fence)).toMatch(/^node 2 \(2@10\) has taken over from 1@10, .* Remedy: start this node again, unless /);
  expect(await words(true, replace)).toMatch(
    /^another process has taken over from 1@10, .*: the database refuses its heartbeats.* Remedy: /,
  );
});

test("a refused heartbeat ends the node before anything else is asked", async () => {
  const first = await f.node(A);
  const asked: string[] = [];
  let isRefused = false;
  first.store.faultOf = (method) => {
    if (isRefused && first.fatal.length === 0) asked.push(method);
    if (method === "heartbeat") isRefused = true;
    // The log's own row does not end it first.
    return method === "readLog" ? "refuse" : null;
  };
  await f.node({ nodeId: 1, nodeEpoch: 11 }, 10);
  while (first.fatal.length === 0) await f.clock.advance(100);
  expect(isRefused).toBe(true);
  expect(asked).toEqual([]);
});

test("a graceful end stops the loops, gives the lease up and is no failure", async () => {
  const { log, fatal } = await f.node(A);
  await f.clock.advance(1000);
  expect(log.isLeaseHeld).toBe(true);
  expect(await log.end(0)).toMatchObject({ applied: true });
  expect(log.view.registration(A)?.state).toBe("ended");
  expect(f.database.statements.readHeartbeats()).toEqual([]);
  const other = await f.node(B);
  expect(other.log.isLeaseHeld).toBe(true);
  await f.clock.advance(5000);
  expect(fatal).toEqual([]);
  await expect(log.propose({ type: "reserve_ids" }).outcome).rejects.toMatchObject({ code: "fenced_node" });
});

test("an end at another WAL number is refused and the node lives on", async () => {
  const { log, fatal } = await f.node(A);
  expect(await log.end(3)).toMatchObject({ applied: false, code: "wal_position" });
  expect(await log.propose({ type: "reserve_ids" }).outcome).toMatchObject({ applied: true });
  expect(fatal).toEqual([]);
});

test("one node holds the lease; after its silence another takes it", async () => {
  const a = await f.node(A);
  const b = await f.node(B);
  await f.clock.advance(30_000);
  expect([a.log.isLeaseHeld, b.log.isLeaseHeld]).toEqual([true, false]);
  a.store.faultOf = () => "refuse";
  await f.clock.advance(LEASE_TTL_MS * 2);
  expect([a.log.isLeaseHeld, b.log.isLeaseHeld]).toEqual([false, true]);
});

test("a lease whose renewals fail is trusted no longer than it lasts in the database", async () => {
  const { log, store } = await f.node(A);
  store.faultOf = (method) => (method === "acquireLease" ? "lose_answer" : null);
  await f.clock.advance(LEASE_TTL_MS - 1);
  expect(log.isLeaseHeld).toBe(true);
  await f.clock.advance(1);
  expect(log.isLeaseHeld).toBe(false);
});

test("a step of the database's clock is seen, and pauses trust in it", async () => {
  const { log } = await f.node(A);
  await f.clock.advance(2000);
  expect(log.isDatabaseClockSteady).toBe(true);
  expect(Math.abs(log.databaseNowMs() - f.clock.nowMs())).toBeLessThanOrEqual(1);
  f.database.clockOffsetMs = 3_600_000;
  await f.clock.advance(2000);
  expect(log.isDatabaseClockSteady).toBe(false);
  expect(Math.abs(log.databaseNowMs() - f.clock.nowMs() - 3_600_000)).toBeLessThanOrEqual(1);
  await f.clock.advance(DATABASE_CLOCK_STEADY_MS);
  expect(log.isDatabaseClockSteady).toBe(true);
});

test("a step of this node's wall clock changes no estimate", async () => {
  const { log } = await f.node(A);
  await f.clock.advance(2000);
  // The database shares the test's clock, so its reading is held where it was.
  f.clock.stepWall(86_400_000);
  f.database.clockOffsetMs = -86_400_000;
  await f.clock.advance(2000);
  expect(log.isDatabaseClockSteady).toBe(true);
});

test("every background loop works again after an error, and says when it last did", async () => {
  const { log, store } = await f.node(A);
  await f.clock.advance(61_000);
  store.faultOf = () => "refuse";
  await f.clock.advance(61_000);
  store.faultOf = () => null;
  const startMs = f.clock.monotonicMs();
  await f.clock.advance(61_000);
  expect(log.loops).toHaveLength(6);
  for (const loop of log.loops)
    expect({ name: loop.name, works: (loop.lastSuccessMs ?? 0) > startMs }).toEqual({ name: loop.name, works: true });
});

test("a refused register of a twin under the same epoch leaves the first one in peace", async () => {
  const { fatal } = await f.node(A);
  const twin = await f.open();
  await expect(twin.log.register(registerCommand(A, 10), null)).rejects.toBeDefined();
  await f.clock.advance(3000);
  expect(fatal).toEqual([]);
});

test("a newer command is not proposed while a live node cannot read it (FAULTS U1)", async () => {
  const older = await f.node(B);
  const { log, fatal } = await f.open();
  await log.register({ ...registerCommand(A), commandVersion: COMMAND_VERSION }, null);
  const hold = { type: "hold_removal", untilMs: null } as const;
  await expect(log.propose(hold).outcome).rejects.toMatchObject({ code: "unavailable" });
  expect(await older.log.end(0)).toMatchObject({ applied: true });
  await log.catchUp();
  expect(await log.propose(hold).outcome).toMatchObject({ applied: true });
  expect(fatal).toEqual([]);
});
