import { systemClock } from "../../src/lib/clock.ts";
import { SQLITE_MEMORY_PATH } from "../../src/sql/sqlite-database.ts";
import { SqliteStore } from "../../src/sql/sqlite-store.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { CONTRACT_IDENTITY, describeSqlStore } from "./sql-store-contract.ts";

describeSqlStore("SQLite file", async () => {
  const folder = await makeTemporaryFolder();
  const options = { path: `${folder.path}/meta/meta.db`, clock: systemClock };
  const store = new SqliteStore(options);
  await store.open(CONTRACT_IDENTITY);
  const twin = new SqliteStore(options);
  await twin.open(CONTRACT_IDENTITY);
  return {
    store,
    twin,
    dispose: async () => {
      await store.close();
      await twin.close();
      await folder[Symbol.asyncDispose]();
    },
  };
});

describeSqlStore("SQLite in memory", async () => {
  const store = new SqliteStore({ path: SQLITE_MEMORY_PATH, clock: systemClock });
  await store.open(CONTRACT_IDENTITY);
  return { store, twin: store, dispose: () => store.close() };
});
