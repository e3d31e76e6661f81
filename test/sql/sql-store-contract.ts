/**
 * What every SQL store must do, as test cases. Each implementation registers them with a factory that
 * makes a fresh, opened database; `twin` is a second client of it, as another node would be.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { isPicoError } from "../../src/lib/errors.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import type { BatchInsert, BatchOutcome, Heartbeat, SnapshotHead, SnapshotRow, SqlStore } from "../../src/sql/sql-store.ts";

export const CONTRACT_IDENTITY = "0123456789abcdef0123456789abcdef";

export interface SqlStoreFixture {
  /** Opened with `CONTRACT_IDENTITY`. */
  readonly store: SqlStore;
  /** Another client of the same database, opened; the store itself where there can be only one. */
  readonly twin: SqlStore;
  readonly dispose: () => Promise<void>;
}

const node1: RegistrationName = { nodeId: 1, nodeEpoch: 1_760_000_000_000 };
const node2: RegistrationName = { nodeId: -2_147_483_648, nodeEpoch: Number.MAX_SAFE_INTEGER };
const node3: RegistrationName = { nodeId: 2_147_483_647, nodeEpoch: 1 };

let rowNumber = 0;
function batchOf(proposer: RegistrationName, batch: number, changes: Partial<BatchInsert> = {}): BatchInsert {
  rowNumber += 1;
  return { rowId: rowNumber.toString(16).padStart(32, "0"), proposer, batch, payload: Uint8Array.of(1, 2, 3), fences: [], ...changes };
}

function beatOf(registration: RegistrationName, counter: number, changes: Partial<Heartbeat> = {}): Omit<Heartbeat, "isMarked"> {
  return { registration, counter, appliedIndex: 0, recovering: null, load: "{}", ...changes };
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return isPicoError(error) ? error.code : `not a PicoError: ${String(error)}`;
  }
  return "resolved";
}

export function describeSqlStore(name: string, makeFixture: () => Promise<SqlStoreFixture>): void {
  describe(`SQL store contract: ${name}`, () => {
    let fixture: SqlStoreFixture;
    let store: SqlStore;
    let twin: SqlStore;
    beforeEach(async () => {
      fixture = await makeFixture();
      store = fixture.store;
      twin = fixture.twin;
    });
    afterEach(async () => {
      await fixture.dispose();
    });

    /** Inserts `count` batches of node 1 and returns their row ids. */
    async function fillLog(count: number, from = 0): Promise<string[]> {
      const rowIds: string[] = [];
      for (let batch = from; batch < from + count; batch++) {
        const insert = batchOf(node1, batch);
        rowIds.push(insert.rowId);
        await store.insertBatch(insert);
      }
      return rowIds;
    }

    describe("open", () => {
      test("a database keeps the identity that it was made with", async () => {
        expect(await store.open("f".repeat(32))).toEqual({ clusterIdentity: CONTRACT_IDENTITY });
        expect(await twin.open("e".repeat(32))).toEqual({ clusterIdentity: CONTRACT_IDENTITY });
      });

      test("the clock gives whole milliseconds", async () => {
        const first = await store.nowMs();
        expect(Number.isInteger(first)).toBe(true);
        expect(first).toBeGreaterThan(1_600_000_000_000);
      });
    });

    describe("log", () => {
      test("an empty log has head 0 and first 1", async () => {
        expect(await store.readLog(0, 10)).toEqual({ rows: [], first: 1, head: 0 });
        expect(await store.rowIdAt(1)).toBeNull();
      });

      test("a row reads back as inserted, with the database's time", async () => {
        const payload = Uint8Array.from({ length: 256 }, (_, i) => i);
        const insert = batchOf(node2, 0, { payload });
        const beforeMs = await store.nowMs();
        const outcome = await store.insertBatch(insert);
        const afterMs = await store.nowMs();
        if (!outcome.inserted) throw new Error("the batch was not inserted");
        expect(outcome.index).toBe(1);
        expect(outcome.atMs).toBeGreaterThanOrEqual(beforeMs);
        expect(outcome.atMs).toBeLessThanOrEqual(afterMs);
        const page = await twin.readLog(0, 10);
        expect(page.rows.map((row) => ({ ...row, payload: new Uint8Array(row.payload) }))).toEqual([
          { index: 1, atMs: outcome.atMs, rowId: insert.rowId, proposer: node2, batch: 0, payload },
        ]);
        expect(page.first).toBe(1);
        expect(page.head).toBe(1);
        expect(await twin.rowIdAt(1)).toBe(insert.rowId);
      });

      test("a payload that is a view, and an empty one, are stored exactly", async () => {
        const whole = Uint8Array.from({ length: 100 }, (_, i) => i);
        await store.insertBatch(batchOf(node1, 0, { payload: whole.subarray(10, 20) }));
        await store.insertBatch(batchOf(node1, 1, { payload: new Uint8Array(0) }));
        const { rows } = await store.readLog(0, 10);
        expect(rows.map((row) => new Uint8Array(row.payload))).toEqual([whole.slice(10, 20), new Uint8Array(0)]);
      });

      test("indexes of two racing clients are dense, each once, in the order that readers see", async () => {
        const seen: number[] = [];
        let isDone = false;
        const tail = (async () => {
          while (!isDone || seen.length < 200) {
            const page = await twin.readLog(seen.at(-1) ?? 0, 50);
            seen.push(...page.rows.map((row) => row.index));
          }
        })();
        const outcomes = await Promise.all(
          Array.from({ length: 200 }, (_, i) => (i % 2 === 0 ? store : twin).insertBatch(batchOf(i % 2 === 0 ? node1 : node2, i))),
        );
        isDone = true;
        await tail;
        const indexes = outcomes.map((outcome) => (outcome.inserted ? outcome.index : 0)).sort((a, b) => a - b);
        expect(indexes).toEqual(Array.from({ length: 200 }, (_, i) => i + 1));
        expect(seen).toEqual(indexes);
      }, 30_000);

      test("a repeated batch is found by its number, with the row id that came first", async () => {
        const insert = batchOf(node1, 7);
        await store.insertBatch(batchOf(node2, 7));
        expect((await store.insertBatch(insert)).inserted).toBe(true);
        const found: BatchOutcome = { inserted: false, reason: "exists", index: 2, rowId: insert.rowId };
        expect(await store.insertBatch(insert)).toEqual(found);
        expect(await twin.insertBatch(batchOf(node1, 7))).toEqual(found);
        expect((await store.readLog(0, 10)).head).toBe(2);
      });

      test("of racing inserts of one batch number one is inserted, the others name its row", async () => {
        const inserts = Array.from({ length: 8 }, () => batchOf(node1, 0));
        const outcomes = await Promise.all(inserts.map((insert, i) => (i % 2 === 0 ? store : twin).insertBatch(insert)));
        const winners = outcomes.flatMap((outcome, i) => (outcome.inserted ? [i] : []));
        expect(winners).toHaveLength(1);
        const winner = inserts[winners[0] ?? -1];
        for (const outcome of outcomes)
          if (!outcome.inserted && outcome.reason === "exists") expect(outcome.rowId).toBe(winner?.rowId ?? "");
        expect((await store.readLog(0, 10)).rows).toHaveLength(1);
      });

      test("pages go on behind `after` and hold at most `limit` rows", async () => {
        await fillLog(10);
        expect((await store.readLog(0, 4)).rows.map((row) => row.index)).toEqual([1, 2, 3, 4]);
        expect((await store.readLog(4, 4)).rows.map((row) => row.index)).toEqual([5, 6, 7, 8]);
        expect((await store.readLog(8, 4)).rows.map((row) => row.index)).toEqual([9, 10]);
        expect(await store.readLog(10, 4)).toEqual({ rows: [], first: 1, head: 10 });
        expect((await store.readLog(99, 4)).rows).toEqual([]);
      });

      test("a page of large rows ends at about 8 MiB, and one row always comes", async () => {
        const payload = new Uint8Array(3 * 1024 * 1024);
        for (let batch = 0; batch < 4; batch++) await store.insertBatch(batchOf(node1, batch, { payload }));
        await store.insertBatch(batchOf(node1, 4, { payload: new Uint8Array(9 * 1024 * 1024) }));
        const first = await store.readLog(0, 100);
        expect(first.rows.length).toBeGreaterThanOrEqual(1);
        expect(first.rows.length).toBeLessThanOrEqual(3);
        expect((await store.readLog(4, 100)).rows.map((row) => row.index)).toEqual([5]);
      }, 30_000);

      test("truncation removes a prefix, keeps the head, and no index comes twice", async () => {
        const rowIds = await fillLog(6);
        expect(await store.truncateLog(4, -60_000)).toBe(4);
        const page = await twin.readLog(0, 10);
        expect(page.rows.map((row) => row.index)).toEqual([5, 6]);
        expect(page.first).toBe(5);
        expect(page.head).toBe(6);
        expect(await store.rowIdAt(4)).toBeNull();
        expect(await store.rowIdAt(5)).toBe(rowIds[4] ?? "");
        expect(await store.truncateLog(100, -60_000)).toBe(2);
        expect(await store.readLog(0, 10)).toEqual({ rows: [], first: 7, head: 6 });
        const next = await store.insertBatch(batchOf(node1, 6));
        expect(next.inserted && next.index).toBe(7);
      });

      test("truncation keeps rows younger than the age", async () => {
        await fillLog(3);
        expect(await store.truncateLog(3, 3_600_000)).toBe(0);
        expect((await store.readLog(0, 10)).rows).toHaveLength(3);
      });

      test("a listener is woken by an insert, and no more once it ended", async () => {
        let wakes = 0;
        let onWake = () => {};
        const woken = new Promise<void>((resolve) => {
          onWake = resolve;
        });
        const end = store.onAppended(() => {
          wakes += 1;
          onWake();
        });
        await store.insertBatch(batchOf(node1, 0));
        await woken;
        end();
        const before = wakes;
        await store.insertBatch(batchOf(node1, 1));
        await store.nowMs();
        expect(wakes).toBe(before);
      });
    });

    describe("heartbeats and fences", () => {
      test("heartbeats read back, the last of each registration", async () => {
        expect(await store.readHeartbeats()).toEqual([]);
        await store.heartbeat(beatOf(node1, 1));
        const beat = beatOf(node1, 2, { appliedIndex: 77, recovering: node2, load: `{"a":"ä"}` });
        const outcome = await store.heartbeat(beat);
        expect(outcome.refused).toBe(false);
        expect(outcome.nowMs).toBeLessThanOrEqual(await store.nowMs());
        await twin.heartbeat(beatOf(node3, 5));
        expect(await twin.readHeartbeats()).toEqual([
          { ...beat, isMarked: false },
          { ...beatOf(node3, 5), isMarked: false },
        ]);
      });

      test("a fence with the counter last seen marks the row and refuses later heartbeats", async () => {
        await twin.heartbeat(beatOf(node2, 4, { appliedIndex: 3 }));
        const outcome = await store.insertBatch(batchOf(node1, 0, { fences: [{ victim: node2, counter: 4 }] }));
        expect(outcome.inserted).toBe(true);
        expect((await twin.heartbeat(beatOf(node2, 5))).refused).toBe(true);
        expect(await store.readHeartbeats()).toEqual([{ ...beatOf(node2, 4, { appliedIndex: 3 }), isMarked: true }]);
      });

      test("a fence whose victim moved inserts nothing and marks nobody", async () => {
        await twin.heartbeat(beatOf(node2, 5));
        await twin.heartbeat(beatOf(node3, 1));
        const fences = [
          { victim: node3, counter: 1 },
          { victim: node2, counter: 4 },
        ];
        expect(await store.insertBatch(batchOf(node1, 0, { fences }))).toEqual({ inserted: false, reason: "victim_alive", victim: node2 });
        expect((await store.readLog(0, 10)).head).toBe(0);
        expect((await twin.heartbeat(beatOf(node3, 2))).refused).toBe(false);
        expect((await twin.heartbeat(beatOf(node2, 6))).refused).toBe(false);
        const next = await store.insertBatch(batchOf(node1, 0));
        expect(next.inserted && next.index).toBe(1);
      });

      test("a fence with no counter marks whatever is there", async () => {
        await twin.heartbeat(beatOf(node2, 9));
        expect((await store.insertBatch(batchOf(node1, 0, { fences: [{ victim: node2, counter: null }] }))).inserted).toBe(true);
        expect((await twin.heartbeat(beatOf(node2, 10))).refused).toBe(true);
      });

      test("a victim that never had a heartbeat counts as 0, and its first one is refused", async () => {
        const refused = await store.insertBatch(batchOf(node1, 0, { fences: [{ victim: node2, counter: 3 }] }));
        expect(refused.inserted).toBe(false);
        expect((await store.insertBatch(batchOf(node1, 0, { fences: [{ victim: node2, counter: 0 }] }))).inserted).toBe(true);
        expect((await twin.heartbeat(beatOf(node2, 1))).refused).toBe(true);
        expect((await store.insertBatch(batchOf(node1, 1, { fences: [{ victim: node3, counter: null }] }))).inserted).toBe(true);
        expect((await twin.heartbeat(beatOf(node3, 1))).refused).toBe(true);
      });

      test("a repeated fence batch is found, though the victim is marked by then", async () => {
        await twin.heartbeat(beatOf(node2, 4));
        const insert = batchOf(node1, 0, { fences: [{ victim: node2, counter: 4 }] });
        await store.insertBatch(insert);
        expect(await store.insertBatch(insert)).toEqual({ inserted: false, reason: "exists", index: 1, rowId: insert.rowId });
      });

      test("a heartbeat and a fence that race exclude each other", async () => {
        for (let round = 0; round < 20; round++) {
          const victim = { nodeId: 50, nodeEpoch: round + 1 };
          await twin.heartbeat(beatOf(victim, 1));
          const [beat, fence] = await Promise.all([
            twin.heartbeat(beatOf(victim, 2)),
            store.insertBatch(batchOf(node1, round, { fences: [{ victim, counter: 1 }] })),
          ]);
          expect(beat.refused).toBe(fence.inserted);
        }
      });

      test("a removed row is gone from the list, and a late heartbeat is refused", async () => {
        await store.heartbeat(beatOf(node1, 1));
        await store.heartbeat(beatOf(node3, 1));
        await store.removeHeartbeat(node1);
        expect((await twin.readHeartbeats()).map((beat) => beat.registration)).toEqual([node3]);
        expect((await twin.heartbeat(beatOf(node1, 2))).refused).toBe(true);
        expect((await twin.readHeartbeats()).map((beat) => beat.registration)).toEqual([node3]);
      });

      test("the next life of a node beats, and its former ones are refused, removed or not", async () => {
        const lives = [1, 2, 3].map((nodeEpoch) => ({ nodeId: 8, nodeEpoch }));
        const [first, second, third] = lives as [RegistrationName, RegistrationName, RegistrationName];
        await store.heartbeat(beatOf(first, 1));
        await store.removeHeartbeat(first);
        expect((await store.heartbeat(beatOf(second, 1))).refused).toBe(false);
        expect((await store.heartbeat(beatOf(third, 1))).refused).toBe(false);
        await store.removeHeartbeat(second);
        for (const life of [first, second]) expect((await twin.heartbeat(beatOf(life, 9))).refused).toBe(true);
        expect((await twin.heartbeat(beatOf(third, 2))).refused).toBe(false);
        expect((await store.readHeartbeats()).map((beat) => beat.registration)).toEqual([third]);
      });
    });

    describe("lease", () => {
      test("one holds it, renews it without a new term, and gives it up", async () => {
        const first = await store.acquireLease(node1, 60_000);
        expect(first).toMatchObject({ held: true, holder: node1, term: 1 });
        expect(first.expiresAtMs - (await store.nowMs())).toBeGreaterThan(50_000);
        expect(await twin.acquireLease(node2, 60_000)).toEqual({ ...first, held: false });
        expect(await store.acquireLease(node1, 60_000)).toMatchObject({ held: true, holder: node1, term: 1 });
        await twin.releaseLease(node2);
        expect((await twin.acquireLease(node2, 60_000)).held).toBe(false);
        await store.releaseLease(node1);
        expect(await twin.acquireLease(node2, 60_000)).toMatchObject({ held: true, holder: node2, term: 2 });
      });

      test("an expired lease goes to whoever asks, under a new term", async () => {
        const first = await store.acquireLease(node1, 0);
        expect(first.held).toBe(true);
        expect(await twin.acquireLease(node2, 60_000)).toMatchObject({ held: true, holder: node2, term: first.term + 1 });
        expect((await store.acquireLease(node1, 60_000)).held).toBe(false);
      });

      test("a check of writes leaves it as it is, and is no use of the database", async () => {
        await store.checkWrites();
        await twin.importPart({ snapshotRows: [], snapshotHead: null, logRows: [] });
        const lease = await store.acquireLease(node1, 60_000);
        await twin.checkWrites();
        expect(await store.acquireLease(node2, 60_000)).toEqual({ ...lease, held: false });
      });

      test("a holder that is over loses it at once, and gets it no more", async () => {
        const [fenced, outlived, successor] = [5, 6, 6].map((nodeId, at) => ({ nodeId, nodeEpoch: at + 1 })) as [
          RegistrationName,
          RegistrationName,
          RegistrationName,
        ];
        await store.acquireLease(fenced, 60_000);
        await store.insertBatch(batchOf(node1, 0, { fences: [{ victim: fenced, counter: null }] }));
        expect(await twin.acquireLease(outlived, 60_000)).toMatchObject({ held: true, holder: outlived, term: 2 });
        expect(await store.acquireLease(fenced, 60_000)).toMatchObject({ held: false, holder: outlived });

        await store.heartbeat(beatOf(successor, 1));
        expect(await store.acquireLease(outlived, 60_000)).toMatchObject({ held: false, holder: outlived });
        expect(await twin.acquireLease(successor, 60_000)).toMatchObject({ held: true, holder: successor, term: 3 });
      });

      test("of racing nodes one holds it", async () => {
        const nodes = Array.from({ length: 8 }, (_, i) => ({ nodeId: i, nodeEpoch: 1 }));
        const leases = await Promise.all(nodes.map((node, i) => (i % 2 === 0 ? store : twin).acquireLease(node, 60_000)));
        expect(leases.filter((lease) => lease.held)).toHaveLength(1);
        expect(new Set(leases.map((lease) => JSON.stringify(lease.holder))).size).toBe(1);
      });
    });

    describe("snapshot", () => {
      const rowOf = (key: string, ...value: number[]): SnapshotRow => ({ key, value: Uint8Array.from(value) });
      const headOf = (index: number, rowCount: number, rowSum = 0n) => ({
        index,
        rowId: index === 0 ? "" : "ab".repeat(16),
        rowCount,
        rowSum,
      });
      async function readAll(from: SqlStore): Promise<{ head: SnapshotHead; rows: SnapshotRow[] }> {
        const rows: SnapshotRow[] = [];
        const head = await from.readSnapshot((page) => {
          rows.push(...page);
        });
        rows.sort((left, right) => (left.key < right.key ? -1 : 1));
        return { head, rows: rows.map((row) => ({ key: row.key, value: new Uint8Array(row.value) })) };
      }

      test("before the first one the head is at 0, with no rows", async () => {
        expect(await readAll(store)).toEqual({ head: headOf(0, 0), rows: [] });
      });

      test("rows are inserted, replaced and deleted together with the head", async () => {
        const first = {
          expectedIndex: 0,
          head: headOf(10, 3, 2n ** 64n - 1n),
          upserts: [rowOf("a", 1), rowOf("b", 2), rowOf("ü/c")],
          deletes: [],
        };
        expect(await store.writeSnapshot(first)).toBe(true);
        expect(await readAll(twin)).toEqual({ head: first.head, rows: [rowOf("a", 1), rowOf("b", 2), rowOf("ü/c")] });
        const second = {
          expectedIndex: 10,
          head: headOf(20, 2, 5n),
          upserts: [rowOf("b", 9, 9), rowOf("d", 4)],
          deletes: ["a", "ü/c", "never"],
        };
        expect(await twin.writeSnapshot(second)).toBe(true);
        expect(await readAll(store)).toEqual({ head: second.head, rows: [rowOf("b", 9, 9), rowOf("d", 4)] });
      });

      test("one that follows another index than the present one writes nothing", async () => {
        await store.writeSnapshot({ expectedIndex: 0, head: headOf(10, 1), upserts: [rowOf("a", 1)], deletes: [] });
        for (const expectedIndex of [0, 9, 11]) {
          const late = { expectedIndex, head: headOf(30, 1), upserts: [rowOf("z", 1)], deletes: ["a"] };
          expect(await twin.writeSnapshot(late)).toBe(false);
        }
        expect(await readAll(store)).toEqual({ head: headOf(10, 1), rows: [rowOf("a", 1)] });
      });

      test("of two that follow one index, one is written whole", async () => {
        const writes = [1, 2].map((n) => ({ expectedIndex: 0, head: headOf(n, 1), upserts: [rowOf(`from ${n}`, n)], deletes: [] }));
        const done = await Promise.all(writes.map((write, i) => (i === 0 ? store : twin).writeSnapshot(write)));
        expect(done.filter((isWritten) => isWritten)).toHaveLength(1);
        const winner = done.indexOf(true) + 1;
        expect(await readAll(store)).toEqual({ head: headOf(winner, 1), rows: [rowOf(`from ${winner}`, winner)] });
      });

      test("2,500 rows come in pages, each once", async () => {
        const upserts = Array.from({ length: 2500 }, (_, i) => rowOf(String(i).padStart(6, "0"), i % 256));
        await store.writeSnapshot({ expectedIndex: 0, head: headOf(1, 2500), upserts, deletes: [] });
        let pages = 0;
        await store.readSnapshot(() => {
          pages += 1;
        });
        expect(pages).toBeGreaterThan(1);
        expect(await readAll(twin)).toEqual({ head: headOf(1, 2500), rows: upserts });
      }, 30_000);

      test("a snapshot written while another client reads does not mix into what it reads", async () => {
        const upserts = Array.from({ length: 2500 }, (_, i) => rowOf(String(i).padStart(6, "0"), 1));
        await store.writeSnapshot({ expectedIndex: 0, head: headOf(1, 2500), upserts, deletes: [] });
        let writing: Promise<boolean> | null = null;
        const values = new Set<number>();
        const head = await twin.readSnapshot((rows) => {
          for (const row of rows) values.add(row.value[0] ?? -1);
          writing ??= store.writeSnapshot({
            expectedIndex: 1,
            head: headOf(2, 2500),
            upserts: upserts.map((row) => rowOf(row.key, 2)),
            deletes: [],
          });
        });
        expect(await (writing ?? Promise.resolve(false))).toBe(true);
        expect(head.index).toBe(1);
        expect([...values]).toEqual([1]);
        expect((await readAll(twin)).head.index).toBe(2);
      }, 30_000);

      test("calls go on while a snapshot is read", async () => {
        const upserts = Array.from({ length: 2500 }, (_, i) => rowOf(String(i).padStart(6, "0"), 1));
        await store.writeSnapshot({ expectedIndex: 0, head: headOf(1, 2500), upserts, deletes: [] });
        const calls: Promise<unknown>[] = [];
        await store.readSnapshot(() => {
          calls.push(
            store.insertBatch(batchOf(node1, calls.length)),
            store.heartbeat(beatOf(node1, calls.length + 1)),
            store.readLog(0, 10),
          );
        });
        await Promise.all(calls);
        expect((await store.readLog(0, 10)).head).toBeGreaterThan(1);
      }, 30_000);

      test("a reader that throws ends the read, and the next one works", async () => {
        await store.writeSnapshot({ expectedIndex: 0, head: headOf(1, 1), upserts: [rowOf("a", 1)], deletes: [] });
        const failure = store.readSnapshot(() => {
          throw new Error("reader failed");
        });
        expect(await failure.catch((error: Error) => error.message)).toBe("reader failed");
        expect((await readAll(store)).rows).toHaveLength(1);
        expect(await store.writeSnapshot({ expectedIndex: 1, head: headOf(2, 0), upserts: [], deletes: ["a"] })).toBe(true);
      });
    });

    describe("import", () => {
      const rowAt = (index: number, batch: number) => ({
        index,
        atMs: 1000 + index,
        rowId: index.toString(16).padStart(32, "0"),
        proposer: node1,
        batch,
        payload: Uint8Array.of(index),
      });
      const head = { index: 7, rowId: "7".padStart(32, "0"), rowCount: 2, rowSum: 2n ** 64n - 2n };

      test("rows keep their indexes, times and row ids, and the log goes on behind them", async () => {
        const rows = [
          { key: "a", value: Uint8Array.of(1) },
          { key: "b", value: Uint8Array.of(2) },
        ];
        await store.importPart({ snapshotRows: rows.slice(0, 1), snapshotHead: null, logRows: [] });
        await store.importPart({ snapshotRows: rows.slice(1), snapshotHead: head, logRows: [rowAt(7, 3), rowAt(8, 4)] });
        await store.importPart({ snapshotRows: [], snapshotHead: null, logRows: [rowAt(9, 5)] });
        const found: string[] = [];
        expect(
          await twin.readSnapshot((page, early) => {
            expect(early).toEqual(head);
            found.push(...page.map(({ key }) => key));
          }),
        ).toEqual(head);
        expect(found).toEqual(["a", "b"]);
        const page = await twin.readLog(0, 10);
        expect(page).toMatchObject({ first: 7, head: 9, rows: [rowAt(7, 3), rowAt(8, 4), rowAt(9, 5)] });
        expect(await store.insertBatch(batchOf(node1, 4))).toMatchObject({ inserted: false, reason: "exists", index: 8 });
        expect(await store.insertBatch(batchOf(node1, 6))).toMatchObject({ inserted: true, index: 10 });
      });

      test("a gap is refused, and so is a database that a node has used", async () => {
        await store.importPart({ snapshotRows: [], snapshotHead: null, logRows: [rowAt(1, 0)] });
        const gap = { snapshotRows: [], snapshotHead: null, logRows: [rowAt(2, 1), rowAt(4, 2)] };
        expect(await codeOf(store.importPart(gap))).toBe("corrupt");
        expect((await store.readLog(0, 10)).head).toBe(1);
        await store.acquireLease(node1, 1000);
        expect(await codeOf(store.importPart({ ...gap, logRows: [rowAt(2, 1)] }))).toBe("corrupt");
      });
    });

    test("after close every call rejects", async () => {
      await store.close();
      await store.close();
      expect(await codeOf(store.nowMs())).toBe("database_failed");
      expect(await codeOf(store.insertBatch(batchOf(node1, 0)))).toBe("database_failed");
      expect(await codeOf(store.readLog(0, 1))).toBe("database_failed");
      expect(await codeOf(store.readSnapshot(() => {}))).toBe("database_failed");
    });
  });
}
