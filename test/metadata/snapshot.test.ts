import { afterEach, beforeEach, expect, test } from "bun:test";
import { LOG_KEEP_MS, SNAPSHOT_EVERY_COMMANDS } from "../../src/lib/limits.ts";
import type { SnapshotWrite } from "../../src/sql/sql-store.ts";
import { A, B, createCommand, LogFixture, type TestNode } from "./log-fixture.ts";

let f: LogFixture;
beforeEach(() => {
  f = new LogFixture();
});
afterEach(async () => {
  await f.close();
});

/** Applies enough commands for a snapshot and waits until it is written. */
async function passSnapshot(node: TestNode): Promise<void> {
  for (let i = 0; i < SNAPSHOT_EVERY_COMMANDS; i++) node.log.propose({ type: "reserve_ids" });
  await f.clock.advance(100);
}

function storedHead() {
  return f.database.statements.readSnapshot(() => undefined);
}

async function codeOfOpen(): Promise<string> {
  return f.open().then(
    () => "opened",
    (error: { code: string }) => error.code,
  );
}

test("a snapshot follows after so many commands, and a start from it equals the running state", async () => {
  const a = await f.node(A);
  for (let id = 1; id <= 50; id++) a.log.propose(createCommand(id));
  await passSnapshot(a);
  expect(storedHead().index).toBeGreaterThan(1);
  await a.log.propose({ type: "delete_stream", streamId: 7 }).outcome;
  const b = await f.open();
  expect(b.log.stateHash()).toEqual(a.log.stateHash());
  expect(b.log.view.streamCount).toBe(49);
});

test("a second snapshot writes what changed since the first, deletions too", async () => {
  const a = await f.node(A);
  for (let id = 1; id <= 50; id++) a.log.propose(createCommand(id));
  await passSnapshot(a);
  let upserts = 0;
  let deletes: readonly string[] = [];
  const write = a.store.writeSnapshot.bind(a.store);
  a.store.writeSnapshot = (snapshot) => {
    upserts = snapshot.upserts.length;
    deletes = snapshot.deletes;
    return write(snapshot);
  };
  a.log.propose({ type: "delete_stream", streamId: 7 });
  a.log.propose({ type: "trim_stream", streamId: 8, startOffset: 4 });
  await passSnapshot(a);
  expect(deletes).toEqual(["s7"]);
  // The trimmed stream, the counters and the proposer.
  expect(upserts).toBe(3);
  expect((await f.open()).log.stateHash()).toEqual(a.log.stateHash());
});

test("commands that are applied while a snapshot is written are in the next one", async () => {
  const a = await f.node(A);
  let isFirst = true;
  a.store.afterCall = (method) => {
    if (method === "writeSnapshot" && isFirst) {
      isFirst = false;
      a.log.propose(createCommand(1));
    }
  };
  await passSnapshot(a);
  await passSnapshot(a);
  expect(f.database.database.query("SELECT count(*) AS n FROM snapshot_rows WHERE key = 's1'").get()).toEqual({ n: 1n });
  expect((await f.open()).log.stateHash()).toEqual(a.log.stateHash());
});

test("commands that are applied between two slices of a large snapshot are in none of its rows, and in what follows", async () => {
  const a = await f.node(A);
  const schedule = f.clock.schedule.bind(f.clock);
  let pauses = 0;
  f.clock.schedule = (delayMs, run) => {
    if (delayMs > 0) return schedule(delayMs, run);
    pauses += 1;
    // A row of the slice that is done, and one of the slice to come.
    const changes = [7, 1090].map((streamId) => a.log.propose({ type: "delete_stream", streamId }).outcome);
    return schedule(0, () => void Promise.all(changes).then(run));
  };
  for (let id = 1; id <= 1100; id++) a.log.propose(createCommand(id));
  await f.clock.advance(100);
  expect(pauses).toBe(1);
  expect(a.log.view.streamCount).toBe(1098);
  expect(storedHead().index).toBeGreaterThan(1);
  expect(storedHead().index).toBeLessThan(a.log.stateHash().index);
  expect((await f.open()).log.stateHash()).toEqual(a.log.stateHash());
});

for (const fault of ["refuse", "lose_answer", "lose_request"] as const) {
  test(`a snapshot write with ${fault} loses nothing`, async () => {
    const a = await f.node(A);
    for (let id = 1; id <= 20; id++) a.log.propose(createCommand(id));
    let faults = 2;
    a.store.faultOf = (method) => (method === "writeSnapshot" && faults-- > 0 ? fault : null);
    await passSnapshot(a);
    a.log.propose({ type: "delete_stream", streamId: 3 });
    await passSnapshot(a);
    await f.clock.advance(120_000);
    await passSnapshot(a);
    expect(storedHead().index).toBe(a.log.snapshotIndex);
    expect((await f.open()).log.stateHash()).toEqual(a.log.stateHash());
  });
}

test("a snapshot that comes second loses, resurrects nothing, and the loser's next one is right", async () => {
  const a = await f.node(A);
  const b = await f.node(B);
  for (let id = 1; id <= 20; id++) a.log.propose(createCommand(id));
  await passSnapshot(a);
  a.log.propose({ type: "delete_stream", streamId: 3 });
  await passSnapshot(a);
  await a.log.stop();
  // The lease passes to B, which knows neither snapshot.
  await f.clock.advance(30_000);
  expect(b.log.isLeaseHeld).toBe(true);
  await passSnapshot(b);
  await passSnapshot(b);
  expect(storedHead().index).toBe(b.log.snapshotIndex);
  const c = await f.open();
  expect(c.log.stateHash()).toEqual(b.log.stateHash());
  expect(c.log.view.streamById(3)).toBeNull();
});

test("only the lease holder writes snapshots", async () => {
  await f.node(A);
  const b = await f.node(B);
  for (let i = 0; i < SNAPSHOT_EVERY_COMMANDS * 2; i++) b.log.propose({ type: "reserve_ids" });
  await f.clock.advance(100);
  expect(b.store.calls).not.toContain("writeSnapshot");
});

for (const [damage, sql] of [
  ["a row that is missing", "DELETE FROM snapshot_rows WHERE key = 's3'"],
  ["a row too many", "INSERT INTO snapshot_rows (key, value) SELECT 's99', value FROM snapshot_rows WHERE key = 's3'"],
  ["a row under another key", "UPDATE snapshot_rows SET key = 's99' WHERE key = 's3'"],
  ["no rows at all", "DELETE FROM snapshot_rows"],
  ["a row cut short", "UPDATE snapshot_rows SET value = substr(value, 1, 5) WHERE key = 's3'"],
] as const) {
  test(`a start on a snapshot with ${damage} is refused as corrupt`, async () => {
    const a = await f.node(A);
    for (let id = 1; id <= 5; id++) a.log.propose(createCommand(id));
    await passSnapshot(a);
    f.database.database.run(sql);
    expect(await codeOfOpen()).toBe("corrupt");
  });
}

test("a start on a snapshot with any flipped bit of a row is refused", async () => {
  const a = await f.node(A);
  a.log.propose(createCommand(1));
  await passSnapshot(a);
  const row = f.database.database.query<{ value: Uint8Array }, []>("SELECT value FROM snapshot_rows WHERE key = 's1'").get();
  if (row === null) throw new Error("no row");
  for (let bit = 0; bit < row.value.length * 8; bit += 5) {
    const damaged = row.value.slice();
    damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    f.database.database.run("UPDATE snapshot_rows SET value = ? WHERE key = 's1'", [damaged]);
    expect(["corrupt", "incompatible"]).toContain(await codeOfOpen());
  }
});

test("a start on a log that lost the snapshot's own row, or has another there, is refused", async () => {
  const a = await f.node(A);
  await passSnapshot(a);
  const { index } = storedHead();
  f.database.database.run(`UPDATE log SET row_id = '${"0".repeat(32)}' WHERE log_index = ${index}`);
  expect(await codeOfOpen()).toBe("corrupt");
  f.database.database.run(`DELETE FROM log WHERE log_index >= ${index}`);
  f.database.database.run(`UPDATE log_head SET head = ${index - 1}`);
  expect(await codeOfOpen()).toBe("corrupt");
});

test("the log is truncated below the snapshot once it is old enough, and its row at the snapshot stays", async () => {
  const a = await f.node(A);
  await passSnapshot(a);
  const { index } = storedHead();
  await f.clock.advance(LOG_KEEP_MS - 60_000);
  expect(f.database.statements.readLog(0, 1).first).toBe(1);
  await f.clock.advance(180_000);
  expect(f.database.statements.readLog(0, 1).first).toBe(index);
  expect((await f.open()).log.stateHash()).toEqual(a.log.stateHash());
});

test("rows that a live node has not applied are kept, and go once it is silent for a minute", async () => {
  const a = await f.node(A);
  const b = await f.node(B);
  b.store.faultOf = (method) => (method === "readLog" ? "refuse" : null);
  await passSnapshot(a);
  const applied = b.log.view.appliedIndex;
  await f.clock.advance(LOG_KEEP_MS + 180_000);
  expect(f.database.statements.readLog(0, 1).first).toBe(applied + 1);
  b.store.faultOf = () => "refuse";
  await f.clock.advance(240_000);
  expect(f.database.statements.readLog(0, 1).first).toBe(storedHead().index);
});

for (const moment of ["readSnapshot", "rowIdAt"] as const) {
  test(`a snapshot that is replaced, and the log truncated below it, right after ${moment} of a start is loaded anew`, async () => {
    const a = await f.node(A);
    await passSnapshot(a);
    const held: SnapshotWrite[] = [];
    a.store.writeSnapshot = async (write) => {
      held.push(write);
      return false;
    };
    a.log.propose(createCommand(1));
    await passSnapshot(a);
    const [second] = held;
    if (second === undefined) throw new Error("no second snapshot");
    const { statements } = f.database;
    let tries = 0;
    const c = await f.open((store) => {
      store.afterCall = (method) => {
        if (method !== moment || tries++ > 0) return;
        expect(statements.writeSnapshot(second)).toBe(true);
        f.database.database.run(`DELETE FROM log WHERE log_index < ${second.head.index}`);
      };
    });
    expect(tries).toBeGreaterThan(1);
    expect(c.log.stateHash()).toEqual(a.log.stateHash());
  });
}
