/** A node waits at its start for a Postgres that is away, and refuses one that will not have it. */
import { backOffMs } from "../lib/back-off.ts";
import { sleep } from "../lib/clock.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { START_RETRY_MS_MAX, START_RETRY_MS_MIN } from "../lib/limits.ts";
import { isRefusedForGood } from "../sql/postgres-error.ts";
import type { StartSeams } from "./missing-database.ts";

/** `look` is tried until it succeeds; `flag` names the database. Throws `settings` where the server refuses user, password or database; `incompatible` for an old server or a pooler; `unavailable` at a stop. */
export async function awaitPostgres(flag: string, look: () => Promise<unknown>, seams: StartSeams): Promise<void> {
  const { clock, random, log, stopping } = seams;
  for (let attempt = 1; ; attempt++) {
    try {
      await look();
      return;
    } catch (error) {
      if (isRefusedForGood(error)) throw new PicoError("settings", messageOf(error), { flag, isStartup: true }, error);
      if (!isPicoError(error, "database_failed") && !isPicoError(error, "unknown_outcome")) throw error;
      if (attempt === 1) log.warn("the database cannot be reached yet; it is tried again", { error });
    }
    await sleep(clock, backOffMs(random, attempt, START_RETRY_MS_MIN, START_RETRY_MS_MAX), stopping);
    if (stopping.aborted) throw new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 });
  }
}
