/** What only a server has: others who hold its locks, connections that are cut, backends that freeze, and restarts. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import net from "node:net";
import { join } from "node:path";
import type postgres from "postgres";
import { POSTGRES_DATABASE } from "../../scripts/postgres.ts";
import { type Clock, sleep, systemClock } from "../../src/lib/clock.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { FAILOVER_TIMEOUT_MS_DEFAULT, HEARTBEAT_INTERVAL_MS, POSTGRES_TRUNCATE_ROWS } from "../../src/lib/limits.ts";
import { silentLogger } from "../../src/lib/log.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { BackgroundLoop } from "../../src/metadata/background-loop.ts";
import { MetadataLog } from "../../src/metadata/metadata-log.ts";
import { awaitStandstill } from "../../src/metadata/predecessor-watch.ts";
import type { PostgresPlace } from "../../src/sql/postgres-place.ts";
import { PostgresStore } from "../../src/sql/postgres-store.ts";
import type { BatchInsert } from "../../src/sql/sql-store.ts";
import { createCommand } from "../metadata/log-fixture.ts";
import { nodeName, registerCommand, StateFixture } from "../metadata/state-fixture.ts";
import { HastyClock } from "../support/hasty-clock.ts";
import { describeOnPostgres } from "../support/postgres.ts";
import { startAnswerCutter } from "./answer-cutter.ts";
import { clearDatabase, testPlace } from "./postgres-place.ts";
import { startSilentWire } from "./silent-wire.ts";

const IDENTITY = "c".repeat(32);
const TEST_MS_MAX = 60_000;

let rowNumber = 0;
function batchOf(nodeId: number, batch: number): BatchInsert {
  rowNumber += 1;
  return {
    rowId: rowNumber.toString(16).padStart(32, "0"),
    proposer: { nodeId, nodeEpoch: 1 },
    batch,
    payload: new Uint8Array(100),
    fences: [],
  };
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return isPicoError(error) ? error.code : `not a PicoError: ${String(error)}`;
  }
  return "resolved";
}

/** Inserts as a proposer does: the same batch again until its outcome is known. Returns its index. */
async function insertUntilKnown(store: PostgresStore, insert: BatchInsert): Promise<number> {
  for (;;) {
    try {
      const outcome = await store.insertBatch(insert);
      if (outcome.inserted) return outcome.index;
      if (outcome.reason === "exists" && outcome.rowId === insert.rowId) return outcome.index;
      throw new Error(`batch ${insert.batch} is another's`);
    } catch (error) {
      if (!isPicoError(error, "unknown_outcome") && !isPicoError(error, "database_failed")) throw error;
    }
  }
}

describeOnPostgres("Postgres in trouble", (server) => {
  const stores: PostgresStore[] = [];
  let admin: postgres.Sql;
  beforeEach(async () => {
    await clearDatabase(server());
    admin = server().client();
  });
  afterEach(async () => {
    await Promise.all(stores.splice(0).map((store) => store.close()));
    await admin.end({ timeout: 1 });
  });

  function storeAt(place: PostgresPlace, clock: Clock = systemClock): PostgresStore {
    const store = new PostgresStore({ place, clock, random: systemRandom });
    stores.push(store);
    return store;
  }

  async function openStore(changes: Partial<PostgresPlace> = {}, clock: Clock = systemClock): Promise<PostgresStore> {
    const store = storeAt(testPlace(server(), changes), clock);
    await store.open(IDENTITY);
    return store;
  }

  /** Processes of the server that work for these clients. */
  async function backendsOf(applicationName: string, query = "%"): Promise<number[]> {
    const rows = await admin<{ pid: number }[]>`
      SELECT pid FROM pg_stat_activity WHERE application_name = ${applicationName} AND query LIKE ${query} ORDER BY backend_start`;
    return rows.map(({ pid }) => pid);
  }

  async function untilThereIsA(find: () => Promise<readonly number[]>): Promise<number> {
    for (;;) {
      const [first] = await find();
      if (first !== undefined) return first;
      await Bun.sleep(10);
    }
  }

  /** Holds the row that orders all inserts, or what else is named, until it is let go of. */
  async function lock(statement = "SELECT head FROM pico.log_head FOR UPDATE"): Promise<(end?: "COMMIT" | "ROLLBACK") => Promise<void>> {
    const client = server().client();
    await client`BEGIN`;
    await client.unsafe(statement);
    return async (end = "ROLLBACK") => {
      await client.unsafe(end);
      await client.end();
    };
  }

  test(
    "of many proposers whose connections are killed at random each batch comes once, and a reader never sees a gap",
    async () => {
      const proposers = await Promise.all(
        Array.from({ length: 6 }, (_, i) => openStore({ applicationName: "proposer", connectionsMax: 2 + (i % 2) })),
      );
      const reader = await openStore();
      let isDone = false;
      const killing = (async () => {
        let kills = 0;
        while (!isDone) {
          const pids = await backendsOf("proposer", "%insert_batch%");
          const pid = pids[kills % pids.length];
          if (pid !== undefined) {
            await admin`SELECT pg_terminate_backend(${pid})`;
            kills += 1;
          }
          await Bun.sleep(15);
        }
        return kills;
      })();
      const seen: number[] = [];
      const reading = (async () => {
        for (let isLast = false; !isLast; ) {
          isLast = isDone;
          const page = await reader.readLog(seen.at(-1) ?? 0, 7);
          seen.push(...page.rows.map(({ index }) => index));
          if (page.rows.length > 0) isLast = false;
        }
      })();
      const indexes = await Promise.all(
        proposers.map(async (store, nodeId) => {
          const own: number[] = [];
          for (let batch = 0; batch < 40; batch++) own.push(await insertUntilKnown(store, batchOf(nodeId, batch)));
          return own;
        }),
      );
      isDone = true;
      expect(await killing).toBeGreaterThan(0);
      await reading;
      for (const own of indexes) expect(own).toEqual(own.toSorted((a, b) => a - b));
      const dense = Array.from({ length: 240 }, (_, i) => i + 1);
      expect(indexes.flat().sort((a, b) => a - b)).toEqual(dense);
      expect(seen).toEqual(dense);
    },
    TEST_MS_MAX,
  );

  test(
    "an insert whose connection is killed is an unknown outcome, a read a certain failure, and the repeat is inserted",
    async () => {
      const store = await openStore({ applicationName: "victim" });
      const release = await lock();
      const insert = batchOf(1, 0);
      const outcome = codeOf(store.insertBatch(insert));
      const pid = await untilThereIsA(() => backendsOf("victim", "%insert_batch%"));
      await admin`SELECT pg_terminate_backend(${pid})`;
      expect(await outcome).toBe("unknown_outcome");
      await release();
      expect(await store.insertBatch(insert)).toMatchObject({ inserted: true, index: 1 });
      const releaseLog = await lock("LOCK TABLE pico.log");
      const read = codeOf(store.readLog(0, 1));
      const reading = await untilThereIsA(() => backendsOf("victim", "%WITH bounds%"));
      await admin`SELECT pg_terminate_backend(${reading})`;
      expect(await read).toBe("database_failed");
      await releaseLog();
      expect((await store.readLog(0, 1)).head).toBe(1);
    },
    TEST_MS_MAX,
  );

  test("an insert whose answer is lost is an unknown outcome, and is found under its number", async () => {
    const wire = await startAnswerCutter(server().port);
    try {
      const store = await openStore({ hosts: [{ host: "127.0.0.1", port: wire.port }] });
      // Its connection knows the statement then, so that the next bytes are the answer.
      await store.insertBatch(batchOf(1, 0));
      const insert = batchOf(1, 1);
      wire.cutNext();
      expect(await codeOf(store.insertBatch(insert))).toBe("unknown_outcome");
      expect(await store.insertBatch(insert)).toEqual({ inserted: false, reason: "exists", index: 2, rowId: insert.rowId });
    } finally {
      await Promise.all(stores.splice(0).map((store) => store.close()));
      wire.close();
    }
  });

  test(
    "a node that freezes in a transaction does not hold the head row: the server gives the transaction up",
    async () => {
      const store = await openStore();
      const frozen = Bun.spawn(
        [process.execPath, join(import.meta.dir, "postgres-frozen-client.ts"), JSON.stringify(testPlace(server()))],
        {
          stdio: ["ignore", "pipe", "inherit"],
        },
      );
      try {
        for await (const chunk of frozen.stdout) if (new TextDecoder().decode(chunk).includes("locked")) break;
        frozen.kill("SIGSTOP");
        const beats = await store.heartbeat({
          registration: { nodeId: 1, nodeEpoch: 1 },
          counter: 1,
          appliedIndex: 0,
          recovering: null,
          load: "{}",
        });
        expect(beats.refused).toBe(false);
        expect(await store.insertBatch(batchOf(1, 0))).toMatchObject({ inserted: true, index: 1 });
      } finally {
        frozen.kill("SIGKILL");
        await frozen.exited;
      }
    },
    TEST_MS_MAX,
  );

  test(
    "a lock that somebody else keeps makes inserts fail for certain; heartbeats and reads go on",
    async () => {
      const store = await openStore();
      const release = await lock();
      const refused = codeOf(store.insertBatch(batchOf(1, 0)));
      expect((await store.readLog(0, 1)).head).toBe(0);
      expect((await store.acquireLease({ nodeId: 1, nodeEpoch: 1 }, 60_000)).held).toBe(true);
      expect(await refused).toBe("database_failed");
      await release();
      expect(await store.insertBatch(batchOf(1, 0))).toMatchObject({ inserted: true, index: 1 });
    },
    TEST_MS_MAX,
  );

  test(
    "a backend that freezes costs the calls on it: unknown for a write, failed for a read; the others go on",
    async () => {
      const store = await openStore({ applicationName: "freezing", connectionsMax: 2 }, new HastyClock({ haste: 10 }));
      const [pid = 0] = await backendsOf("freezing");
      process.kill(pid, "SIGSTOP");
      try {
        expect(await codeOf(store.insertBatch(batchOf(1, 0)))).toBe("unknown_outcome");
        expect(await store.insertBatch(batchOf(1, 1))).toMatchObject({ inserted: true, index: 1 });
      } finally {
        process.kill(pid, "SIGCONT");
      }
      const [next = 0] = (await backendsOf("freezing")).filter((other) => other !== pid);
      process.kill(next, "SIGSTOP");
      try {
        expect(await codeOf(store.readLog(0, 1))).toBe("database_failed");
        expect((await store.readLog(0, 1)).head).toBeGreaterThan(0);
      } finally {
        process.kill(next, "SIGCONT");
      }
    },
    TEST_MS_MAX,
  );

  test(
    "nodes that tail the log go on by themselves when the server was restarted, and when it crashed",
    async () => {
      const fatal: unknown[] = [];
      const open = async () =>
        MetadataLog.open({
          store: storeAt(testPlace(server())),
          clock: systemClock,
          random: systemRandom,
          logger: silentLogger,
          onFatal: (error) => fatal.push(error),
        });
      const [writer, follower] = [await open(), await open()];
      try {
        await writer.register(registerCommand(nodeName(1, 10)), null);
        await follower.register(registerCommand(nodeName(2, 10)), null);
        for (const log of [writer, follower]) log.start({ recovering: () => null, load: () => "{}" });
        for (const [at, signal] of (["SIGINT", "SIGKILL"] as const).entries()) {
          await server().halt(signal);
          const created = writer.propose(createCommand(at + 1)).outcome;
          await server().resume();
          // Refused for certain while nobody listens, or applied behind the restart.
          const code = await codeOf(created);
          expect(["resolved", "unavailable"]).toContain(code);
          if (code === "unavailable") expect((await writer.propose(createCommand(at + 1)).outcome).applied).toBe(true);
          while (follower.view.streamCount < at + 1) await Bun.sleep(20);
        }
        expect(fatal).toEqual([]);
      } finally {
        await Promise.all([writer.stop(), follower.stop()]);
        await admin.end({ timeout: 0 });
        admin = server().client();
      }
    },
    TEST_MS_MAX,
  );

  test(
    "a connection that listens and is lost comes back and wakes, for what was said meanwhile too",
    async () => {
      const store = await openStore({ applicationName: "listening" });
      const other = await openStore();
      const wakes = { count: 0, next: Promise.withResolvers<void>() };
      store.onAppended(() => {
        wakes.count += 1;
        wakes.next.resolve();
      });
      const nextWake = async (act: () => Promise<unknown>) => {
        wakes.next = Promise.withResolvers();
        await act();
        await wakes.next.promise;
      };
      await wakes.next.promise;
      await nextWake(() => other.insertBatch(batchOf(1, 0)));
      const pid = await untilThereIsA(() => backendsOf("listening", "LISTEN%"));
      await nextWake(async () => {
        await admin`SELECT pg_terminate_backend(${pid})`;
        await other.insertBatch(batchOf(1, 1));
      });
      await untilThereIsA(async () => (await backendsOf("listening", "LISTEN%")).filter((found) => found !== pid));
      await nextWake(() => other.insertBatch(batchOf(1, 2)));
    },
    TEST_MS_MAX,
  );

  test(
    "a node whose notifications are lost without a word polls, and asks the connection whether it lives",
    async () => {
      const clock = new HastyClock({ haste: 20 });
      const store = storeAt(testPlace(server(), { applicationName: "deaf" }), clock);
      const other = await openStore();
      const log = await MetadataLog.open({ store, clock: systemClock, random: systemRandom, logger: silentLogger, onFatal: () => {} });
      const pid = await untilThereIsA(() => backendsOf("deaf", "LISTEN%"));
      process.kill(pid, "SIGSTOP");
      try {
        const writer = await MetadataLog.open({
          store: other,
          clock: systemClock,
          random: systemRandom,
          logger: silentLogger,
          onFatal: () => {},
        });
        await log.register(registerCommand(nodeName(2, 10)), null);
        log.start({ recovering: () => null, load: () => "{}" });
        await writer.register(registerCommand(nodeName(1, 10)), null);
        while (log.view.node(1) === null) await Bun.sleep(20);
        await writer.stop();
        // Another one has taken its place.
        await untilThereIsA(async () => (await backendsOf("deaf", "LISTEN%")).filter((found) => found !== pid));
      } finally {
        process.kill(pid, "SIGCONT");
        await log.stop();
      }
    },
    TEST_MS_MAX,
  );

  test("a long log is truncated in parts, to the same end", async () => {
    const store = await openStore();
    const count = 2 * POSTGRES_TRUNCATE_ROWS + 100;
    await admin`INSERT INTO pico.log SELECT g, 0, md5(g::text), 1, 1, g, '' FROM generate_series(1, ${count}::bigint) AS g`;
    await admin`UPDATE pico.log_head SET head = ${count}`;
    expect(await store.truncateLog(count - 7, 60_000)).toBe(count - 7);
    expect(await store.readLog(0, 1)).toMatchObject({ first: count - 6, head: count });
    expect(await store.truncateLog(count, 60_000)).toBe(7);
    expect(await store.truncateLog(count, 60_000)).toBe(0);
  });

  test("nodes that start together on an empty database make one schema, of one identity", async () => {
    const identities = await Promise.all(Array.from({ length: 6 }, (_, i) => storeAt(testPlace(server())).open(String(i).repeat(32))));
    expect(new Set(identities.map(({ clusterIdentity }) => clusterIdentity)).size).toBe(1);
  });

  test("a schema of a later program is refused by name, and not touched", async () => {
    const store = await openStore();
    await admin`UPDATE pico.pico_schema SET version = 2`;
    expect(await codeOf(store.open(IDENTITY))).toBe("incompatible");
    expect(await admin`SELECT version, cluster_identity FROM pico.pico_schema`).toMatchObject([{ version: 2, cluster_identity: IDENTITY }]);
  });

  test("what the server refuses is named without a secret", async () => {
    const place = testPlace(server());
    const wrong: Record<string, Partial<PostgresPlace>> = {
      "28P01": { password: "wrong-secret" },
      "3D000": { database: "nowhere" },
    };
    for (const [state, changes] of Object.entries(wrong)) {
      const error = await storeAt({ ...place, ...changes })
        .nowMs()
        .catch((caught: unknown) => caught);
      expect(error).toMatchObject({ code: "database_failed", facts: { sqlState: state } });
      expect(JSON.stringify(error) + String(error) + Bun.inspect(error)).not.toContain("secret");
    }
    expect(await codeOf(storeAt({ ...place, hosts: [{ host: "127.0.0.1", port: 1 }] }).insertBatch(batchOf(1, 0)))).toBe("database_failed");
  });

  test("of several hosts the first that answers is taken", async () => {
    const store = await openStore({
      hosts: [
        { host: "127.0.0.1", port: 1 },
        { host: "127.0.0.1", port: server().port },
      ],
    });
    expect(await store.insertBatch(batchOf(1, 0))).toMatchObject({ inserted: true });
  });

  test(
    "a host that is switched off leaves time for the next one",
    async () => {
      const silent = net.createServer(() => undefined);
      await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
      try {
        const { port } = silent.address() as net.AddressInfo;
        const hosts = [port, server().port].map((of) => ({ host: "127.0.0.1", port: of }));
        const store = await openStore({ hosts, connectTimeoutMs: 4000 });
        expect(await store.insertBatch(batchOf(1, 0))).toMatchObject({ inserted: true });
      } finally {
        silent.close();
      }
    },
    TEST_MS_MAX,
  );

  test("a heartbeat does not wait behind calls that hold all connections", async () => {
    const store = await openStore({ connectionsMax: 2 });
    const release = await lock();
    let isReleased = false;
    const inserts = [0, 1].map((batch) => store.insertBatch(batchOf(1, batch)));
    const beat = { registration: { nodeId: 1, nodeEpoch: 1 }, counter: 1, appliedIndex: 0, recovering: null, load: "{}" };
    const answer = store.heartbeat(beat).then(({ refused }) => ({ refused, isReleased }));
    await Promise.race([answer, Promise.allSettled(inserts)]);
    isReleased = true;
    await release();
    expect(await answer).toEqual({ refused: false, isReleased: false });
    await Promise.allSettled(inserts);
  });

  test(
    "a node whose connections die silently is not taken for dead: its heartbeats come over another one in time",
    async () => {
      const wire = await startSilentWire(server().port);
      const watcher = await openStore();
      const store = storeAt(testPlace(server(), { hosts: [{ host: "127.0.0.1", port: wire.port }] }));
      const registration = { nodeId: 1, nodeEpoch: 1 };
      let counter = 0;
      const beating = new BackgroundLoop({
        name: "heartbeat",
        task: "the heartbeat",
        intervalMs: HEARTBEAT_INTERVAL_MS,
        clock: systemClock,
        logger: silentLogger,
        round: async () => {
          counter += 1;
          await store.heartbeat({ registration, counter, appliedIndex: 0, recovering: null, load: "{}" });
        },
        onFatal: (error) => {
          throw error;
        },
      });
      beating.start();
      try {
        while ((await watcher.readHeartbeats()).length === 0) await Bun.sleep(10);
        wire.silence();
        const fixture = new StateFixture();
        fixture.register(registration);
        const entry = fixture.state.registration(registration);
        if (entry === null) throw new Error("the fixture registers");
        const victim = { ...entry, failoverTimeoutMs: FAILOVER_TIMEOUT_MS_DEFAULT };
        const watch = { sql: watcher, clock: systemClock, log: silentLogger, signal: new AbortController().signal };
        expect(await codeOf(awaitStandstill(victim, watch))).toBe("locked");
      } finally {
        await beating.stop();
        await Promise.all(stores.splice(0).map((open) => open.close()));
        wire.close();
      }
    },
    TEST_MS_MAX,
  );

  test(
    "a fence is not kept waiting by connections that died silently, idle ones included",
    async () => {
      const wire = await startSilentWire(server().port);
      try {
        const store = await openStore({ hosts: [{ host: "127.0.0.1", port: wire.port }] });
        await Promise.all([0, 1, 2, 3].map((batch) => store.insertBatch(batchOf(1, batch))));
        wire.silence();
        const insert = { ...batchOf(2, 0), fences: [{ victim: { nodeId: 1, nodeEpoch: 1 }, counter: 0 }] };
        const over = new AbortController();
        const limit = sleep(systemClock, FAILOVER_TIMEOUT_MS_DEFAULT, over.signal).then(() => "too late");
        expect(await Promise.race([insertUntilKnown(store, insert), limit])).toBe(5);
        over.abort();
      } finally {
        await Promise.all(stores.splice(0).map((open) => open.close()));
        wire.close();
      }
    },
    TEST_MS_MAX,
  );

  test("settings of the database do not change what a session sees", async () => {
    await admin.unsafe(`ALTER DATABASE ${POSTGRES_DATABASE} SET default_transaction_isolation = 'serializable'`);
    await admin.unsafe(`ALTER DATABASE ${POSTGRES_DATABASE} SET bytea_output = 'escape'`);
    try {
      const store = await openStore();
      const insert = { ...batchOf(1, 0), payload: new TextEncoder().encode("a\\b") };
      const release = await lock("UPDATE pico.log_head SET head = head + 0");
      const outcome = codeOf(store.insertBatch(insert));
      await untilThereIsA(() => backendsOf("pico", "%insert_batch%"));
      await release("COMMIT");
      expect(await outcome).toBe("resolved");
      expect((await store.readLog(0, 1)).rows[0]?.payload).toEqual(insert.payload);
    } finally {
      await admin.unsafe(`ALTER DATABASE ${POSTGRES_DATABASE} RESET ALL`);
    }
  });

  test(
    "a commit whose wait for a standby is cancelled is an unknown outcome, and asked again it waits again",
    async () => {
      const store = await openStore({ applicationName: "waiting" });
      const waitFor = async (standbys: string) => {
        await admin.unsafe(`ALTER SYSTEM SET synchronous_standby_names = '${standbys}'`);
        await admin`SELECT pg_reload_conf()`;
        // The process that writes in the background says when the others are to wait.
        while ((await admin`SHOW synchronous_standby_names`)[0]?.synchronous_standby_names !== standbys) await Bun.sleep(10);
      };
      const waiting = async () => {
        const rows = await admin<{ pid: number }[]>`
          SELECT pid FROM pg_stat_activity WHERE application_name = 'waiting' AND wait_event = 'SyncRep'`;
        return rows.map(({ pid }) => pid);
      };
      const insert = batchOf(1, 0);
      await waitFor("nobody");
      try {
        for (let tries = 0; tries < 2; tries++) {
          const outcome = codeOf(store.insertBatch(insert));
          await admin`SELECT pg_cancel_backend(${await untilThereIsA(waiting)})`;
          expect(await outcome).toBe("unknown_outcome");
        }
      } finally {
        await waitFor("");
      }
      expect(await store.insertBatch(insert)).toMatchObject({ inserted: false, reason: "exists", rowId: insert.rowId });
    },
    TEST_MS_MAX,
  );
});
