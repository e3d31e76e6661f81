/** A node waits at its start for a Postgres that is away, and refuses one that will not have it. */
import { backOffMs } from "../lib/back-off.ts";
import { sleep } from "../lib/clock.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { START_RETRY_MS_MAX, START_RETRY_MS_MIN } from "../lib/limits.ts";
import { isRefusedForGood } from "../sql/postgres-error.ts";
import type { PostgresStore } from "../sql/postgres-store.ts";
import type { StartSeams } from "./missing-database.ts";

/** Throws `settings` where the server refuses user, password or database; `incompatible` for an old server or a pooler; `unavailable` at a stop. */
export async function awaitPostgres(store: Pick<PostgresStore, "schemaVersion">, seams: StartSeams): Promise<void> {
  const { clock, random, log, stopping } = seams;
  for (let attempt = 1; ; attempt++) {
    try {
      await store.schemaVersion();
      return;
    } catch (error) {
      if (isRefusedForGood(error)) throw new PicoError("settings", messageOf(error), { flag: "--meta-url", isStartup: true }, error);
      if (!isPicoError(error, "database_failed")) throw error;
      if (attempt === 1) log.warn("the database cannot be reached yet; it is tried again", { error });
    }
    await sleep(clock, backOffMs(random, attempt, START_RETRY_MS_MIN, START_RETRY_MS_MAX), stopping);
    if (stopping.aborted) throw new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 });
  }
}
