import { expect, test } from "bun:test";
import { sleep } from "../../src/lib/clock.ts";
import type { RegistrationEntry } from "../../src/metadata/entries.ts";
import { awaitStandstill } from "../../src/metadata/predecessor-watch.ts";
import type { Heartbeat } from "../../src/sql/sql-store.ts";
import { codeOf } from "../support/code-of.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLog } from "../support/silent-log.ts";
import { MemoryDatabase, MemorySqlStore } from "./memory-sql-store.ts";
import { nodeName, StateFixture } from "./state-fixture.ts";

const VICTIM = nodeName(1);
const LIMIT_MS = 5000;
const BEAT_MS = 1000;

/** Of one process: each call is a while on its way, and takes effect at the end of it. */
class SlowSqlStore extends MemorySqlStore {
  callMs = 0;
  /** No call takes effect before. */
  stalledUntilMs = 0;

  constructor(
    database: MemoryDatabase,
    private readonly clock: ManualClock,
  ) {
    super(database);
  }

  override async checkWrites(): Promise<void> {
    await this.#pass();
    return super.checkWrites();
  }

  override async readHeartbeats(): Promise<readonly Heartbeat[]> {
    await this.#pass();
    return super.readHeartbeats();
  }

  override async heartbeat(beat: Omit<Heartbeat, "isMarked">): Promise<{ readonly refused: boolean; readonly nowMs: number }> {
    await this.#pass();
    return super.heartbeat(beat);
  }

  async #pass(): Promise<void> {
    if (this.callMs > 0) await sleep(this.clock, this.callMs);
    const leftMs = this.stalledUntilMs - this.clock.monotonicMs();
    if (leftMs > 0) await sleep(this.clock, leftMs);
  }
}

function victimEntry(): RegistrationEntry {
  const f = new StateFixture();
  f.register(VICTIM);
  const entry = f.state.registration(VICTIM);
  if (entry === null) throw new Error("the victim is registered");
  return { ...entry, failoverTimeoutMs: LIMIT_MS };
}

function makeHost() {
  const clock = new ManualClock();
  const database = new MemoryDatabase(clock);
  const [sql, victimSql] = [new SlowSqlStore(database, clock), new SlowSqlStore(database, clock)];
  database.statements.open("0".repeat(32));
  let counter = 0;
  let isAlive = true;
  const beat = () => victimSql.heartbeat({ registration: VICTIM, counter: ++counter, appliedIndex: 0, recovering: null, load: "{}" });
  /** The victim's loop: the next heartbeat comes a second behind the answer to the last one. */
  const live = async () => {
    while (isAlive) {
      await beat().catch(() => {});
      await sleep(clock, BEAT_MS);
    }
  };
  /** What the watch came to, as far as it did. */
  const watch = () => {
    const seen: { verdict: string | null } = { verdict: null };
    const signal = new AbortController().signal;
    const isOver = codeOf(() => awaitStandstill(victimEntry(), { sql, clock, log: silentLog, signal }));
    void isOver.then((code) => {
      seen.verdict = code ?? "still";
    });
    return seen;
  };
  const die = () => {
    isAlive = false;
  };
  return { clock, sql, victimSql, beat, live, die, watch };
}

test("a counter that stands still for the limit, and no shorter, is a standstill; one that moves is a life", async () => {
  const { clock, beat, watch } = makeHost();
  await beat();
  const still = watch();
  await clock.advance(LIMIT_MS - 500);
  expect(still.verdict).toBeNull();
  await clock.advance(1500);
  expect(still.verdict).toBe("still");
  const moved = watch();
  await clock.advance(LIMIT_MS - 500);
  await beat();
  await clock.advance(500);
  expect(moved.verdict).toBe("locked");
});

test("a database that is slow all the time delays the verdict and does not keep it away", async () => {
  for (const callMs of [700, 1300, 3000, 9000]) {
    const dead = makeHost();
    dead.sql.callMs = callMs;
    const verdict = dead.watch();
    await dead.clock.advance(LIMIT_MS + 20 * callMs);
    expect([callMs, verdict.verdict]).toEqual([callMs, "still"]);
    const living = makeHost();
    for (const sql of [living.sql, living.victimSql]) sql.callMs = callMs;
    void living.live();
    await living.clock.advance(20 * callMs);
    const found = living.watch();
    await living.clock.advance(LIMIT_MS + 20 * callMs);
    expect([callMs, found.verdict]).toEqual([callMs, "locked"]);
    living.die();
    await living.clock.advance(60_000);
  }
});

test("a database that stalls, or a host that sleeps, for longer than the limit is no standstill", async () => {
  for (const kind of ["stall", "sleep"]) {
    const { clock, sql, victimSql, live, die, watch } = makeHost();
    void live();
    await clock.advance(BEAT_MS + 100);
    const seen = watch();
    await clock.advance(BEAT_MS - 200);
    if (kind === "sleep") clock.stall(3_600_000);
    sql.stalledUntilMs = clock.monotonicMs() + 2 * LIMIT_MS;
    // Of all who wait the living one comes last.
    victimSql.stalledUntilMs = sql.stalledUntilMs + 600;
    await clock.advance(4 * LIMIT_MS);
    expect([kind, seen.verdict]).toEqual([kind, "locked"]);
    die();
    await clock.advance(BEAT_MS);
  }
});

test("while the database takes reads and no writes nothing is concluded, and the living one keeps its place when they return", async () => {
  const { clock, sql, victimSql, live, die, watch } = makeHost();
  void live();
  await clock.advance(3 * BEAT_MS);
  const refuse = (method: string) => (method === "readHeartbeats" ? null : "refuse");
  for (const each of [sql, victimSql]) each.faultOf = refuse;
  for (let tries = 0; tries < 3; tries++) {
    const seen = watch();
    await clock.advance(2 * LIMIT_MS);
    expect(seen.verdict).toBe("unavailable");
  }
  for (const each of [sql, victimSql]) each.faultOf = () => null;
  const seen = watch();
  await clock.advance(2 * LIMIT_MS);
  expect(seen.verdict).toBe("locked");
  die();
  await clock.advance(BEAT_MS);
});
