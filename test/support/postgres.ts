/** Real Postgres for tests. Without one they are skipped and the reason is printed, except where `CI` is set: there it is a failure. */
import { afterAll, beforeAll, describe, test } from "bun:test";
import { isPostgresThere, POSTGRES_MISSING, type PostgresServer, startPostgres } from "../../scripts/postgres.ts";

/** As `describe`, for tests of a Postgres that is started before the first of them and ended behind the last. */
export function describeOnPostgres(name: string, define: (server: () => PostgresServer) => void): void {
  if (!isPostgresThere() && process.env.CI !== undefined) {
    test(`${name}: a Postgres is there`, () => {
      throw new Error(POSTGRES_MISSING);
    });
    return;
  }
  if (!isPostgresThere()) console.log(`skipped: ${name}: ${POSTGRES_MISSING}`);
  describe.skipIf(!isPostgresThere())(name, () => {
    let server: PostgresServer | null = null;
    beforeAll(async () => {
      // Nothing here cuts the power, and databases are made sooner.
      server = await startPostgres(null, ["fsync=off"]);
    }, 90_000);
    afterAll(async () => {
      await server?.stop();
    }, 30_000);
    define(() => {
      if (server === null) throw new Error("Postgres runs during tests only");
      return server;
    });
  });
}
