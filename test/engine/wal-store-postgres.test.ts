import { expect, test } from "bun:test";
import { PostgresWal } from "../../src/engine/wal-store-postgres.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { PostgresSegmentTable } from "../../src/sql/postgres-segment-table.ts";
import { clearDatabase, testPlace } from "../sql/postgres-place.ts";
import { describeOnPostgres } from "../support/postgres.ts";
import { codeOf, OWNER, segmentBytes, tombstoneBytes } from "./wal-fixtures.ts";
import { describeWalStore } from "./wal-store-contract.ts";

describeOnPostgres("WAL in Postgres", (server) => {
  async function open(clusterId = "test"): Promise<PostgresWal> {
    const table = new PostgresSegmentTable({ place: testPlace(server()), clusterId, clock: systemClock });
    await table.open();
    return new PostgresWal(table, clusterId, 4);
  }

  describeWalStore(
    "WAL in a table of Postgres",
    async () => {
      await clearDatabase(server());
      return { open, dispose: async () => {} };
    },
    64 * 1024,
  );

  test("of an owner and a taker that race for a number one wins, and the other reads what it lost to", async () => {
    await clearDatabase(server());
    const [owner, taker] = [await open(), await open()];
    for (let number = 1; number <= 50; number++) {
      const [segment, tombstone] = [segmentBytes(number, "body"), tombstoneBytes(number)];
      const outcomes = await Promise.all([owner.create(OWNER, number, segment), taker.create(OWNER, number, tombstone)]);
      expect(outcomes.toSorted()).toEqual(["created", "exists"]);
      const winner = outcomes[0] === "created" ? segment : tombstone;
      for (const reader of [owner, taker]) expect(await reader.read(OWNER, number)).toEqual(winner);
    }
    await Promise.all([owner.close(), taker.close()]);
  });

  test("clusters of one database do not mix", async () => {
    await clearDatabase(server());
    const [one, other] = [await open("one"), await open("other")];
    await one.create(OWNER, 1, segmentBytes(1, "one"));
    expect(await other.registrations()).toEqual([]);
    expect(await other.create(OWNER, 1, segmentBytes(1, "other"))).toBe("created");
    expect(await one.read(OWNER, 1)).toEqual(segmentBytes(1, "one"));
    await Promise.all([one.close(), other.close()]);
  });

  test("many segments go, and while removal is held back none", async () => {
    await clearDatabase(server());
    const wal = await open();
    const numbers = Array.from({ length: 250 }, (_, at) => at + 1);
    await Promise.all(numbers.map((number) => wal.create(OWNER, number, segmentBytes(number, "body"))));
    expect(await wal.trim(OWNER, 240, async () => false)).toHaveLength(1);
    expect(await wal.list(OWNER, 0)).toHaveLength(250);
    expect(await wal.trim(OWNER, 240)).toEqual([]);
    expect(await wal.list(OWNER, 0)).toEqual(numbers.slice(240));
    await wal.close();
  });

  test("a server that is away is a store that failed, or an outcome that is not known, and no exception", async () => {
    await clearDatabase(server());
    const wal = await open();
    await wal.create(OWNER, 1, segmentBytes(1, "one"));
    await server().halt("SIGKILL");
    try {
      expect(["storage_failed", "unknown_outcome"]).toContain(await codeOf(wal.create(OWNER, 2, segmentBytes(2, "two"))));
      expect(await codeOf(wal.read(OWNER, 1))).toBe("storage_failed");
      expect(await wal.trim(OWNER, 1)).toHaveLength(1);
    } finally {
      await server().resume();
    }
    expect(await wal.read(OWNER, 1)).toEqual(segmentBytes(1, "one"));
    expect(await wal.create(OWNER, 2, segmentBytes(2, "two"))).toBe("created");
    await wal.close();
  });

  test("a create that a standby did not confirm is unknown, and says that the number exists only behind the standby", async () => {
    await clearDatabase(server());
    const wal = await open();
    const admin = server().client();
    const waitFor = async (standbys: string) => {
      await admin.unsafe(`ALTER SYSTEM SET synchronous_standby_names = '${standbys}'`);
      await admin`SELECT pg_reload_conf()`;
    };
    const cancelOne = async () => {
      while ((await admin`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`).length === 0)
        await Bun.sleep(10);
    };
    try {
      await waitFor("nobody");
      while ((await admin`SHOW synchronous_standby_names`)[0]?.synchronous_standby_names !== "nobody") await Bun.sleep(10);
      for (let tries = 0; tries < 2; tries++) {
        const outcome = codeOf(wal.create(OWNER, 1, segmentBytes(1, "one")));
        // An answer without a wait is seen below.
        await Promise.race([cancelOne(), outcome]);
        expect(await outcome).toBe("unknown_outcome");
      }
    } finally {
      await waitFor("");
      await wal.close();
    }
    const again = await open();
    expect(await again.create(OWNER, 1, segmentBytes(1, "one"))).toBe("exists");
    expect(await again.read(OWNER, 1)).toEqual(segmentBytes(1, "one"));
    await again.close();
    await admin.end();
  });
});
