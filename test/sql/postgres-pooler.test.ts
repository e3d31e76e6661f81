/** A real pgbouncer between: refused by name, whether it says so or keeps quiet. */
import { expect, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { isRefusedForGood } from "../../src/sql/postgres-error.ts";
import { PostgresStore } from "../../src/sql/postgres-store.ts";
import { PGBOUNCER_MISSING, PGBOUNCER_PATH, startPgbouncer } from "../support/pgbouncer.ts";
import { describeOnPostgres } from "../support/postgres.ts";
import { clearDatabase, testPlace } from "./postgres-place.ts";

const IDENTITY = "d".repeat(32);
/** What it is told to take without a word, and drops. */
const IGNORED =
  "ignore_startup_parameters = client_min_messages, statement_timeout, lock_timeout, idle_in_transaction_session_timeout, default_transaction_isolation, bytea_output, synchronous_commit";

const isSkipped = PGBOUNCER_PATH === null && process.env.CI === undefined;
if (isSkipped) console.log(`skipped: Postgres behind a pooler: ${PGBOUNCER_MISSING}`);

describeOnPostgres("Postgres behind a pooler", (server) => {
  for (const mode of ["transaction", "session"]) {
    for (const isQuiet of [false, true]) {
      test.skipIf(isSkipped)(
        `in ${mode} mode that ${isQuiet ? "drops" : "refuses"} the time-outs of a session is refused by name`,
        async () => {
          await clearDatabase(server());
          const pooler = await startPgbouncer(server(), [`pool_mode = ${mode}`, ...(isQuiet ? [IGNORED] : [])]);
          const place = testPlace(server(), { hosts: [{ host: "127.0.0.1", port: pooler.port }] });
          const store = new PostgresStore({ place, clock: systemClock, random: systemRandom });
          try {
            const error: unknown = await store.open(IDENTITY).catch((caught: unknown) => caught);
            expect(error).toMatchObject({ message: expect.stringContaining("connect to the server itself") });
            expect(isQuiet ? error : isRefusedForGood(error)).toEqual(isQuiet ? expect.objectContaining({ code: "incompatible" }) : true);
            const client = server().client();
            expect(await client`SELECT to_regnamespace('pico') IS NULL AS is_untouched`).toMatchObject([{ is_untouched: true }]);
            await client.end();
          } finally {
            await store.close();
            await pooler.stop();
          }
        },
      );
    }
  }
});
