import type { PostgresStore, PostgresStoreOptions } from "./postgres-store.ts";

/** Opens a store on Postgres. The package is loaded by the first call: other starts of the program do without. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { PostgresStore } = await import("./postgres-store.ts");
  return new PostgresStore(options);
}
