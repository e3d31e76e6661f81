import { systemClock } from "../../src/lib/clock.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { PostgresStore } from "../../src/sql/postgres-store.ts";
import { describeOnPostgres } from "../support/postgres.ts";
import { clearDatabase, testPlace } from "./postgres-place.ts";
import { CONTRACT_IDENTITY, describeSqlStore } from "./sql-store-contract.ts";

describeOnPostgres("Postgres", (server) => {
  describeSqlStore("Postgres", async () => {
    await clearDatabase(server());
    const options = { place: testPlace(server()), clock: systemClock, random: systemRandom };
    const store = new PostgresStore(options);
    await store.open(CONTRACT_IDENTITY);
    const twin = new PostgresStore(options);
    await twin.open(CONTRACT_IDENTITY);
    return {
      store,
      twin,
      dispose: async () => {
        await store.close();
        await twin.close();
      },
    };
  });
});
