/**
 * A database that is not there, or empty, beside stores that are not. A node that made a new one would know nothing of what
 * they hold, and refuses (`database-witness.ts`). A file that such a start has made would only be in the way of the one
 * that belongs there: so this is asked before any is made.
 */
import { backOffMs } from "../lib/back-off.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { START_RETRY_MS_MAX, START_RETRY_MS_MIN } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import { STORED_TRACES, type TracedStores } from "./stored-traces.ts";

export interface StoresBeside extends TracedStores {
  /** The node mirrors its log, and so refuses a mirror that is not its own. */
  readonly isMirrored: boolean;
}

/** What the stores hold of a cluster, and no new database knows. */
export interface StoredTrace {
  /** `s3://bucket holds picomq/data/…`. */
  readonly what: string;
  /** There is a mirror that a database can be built from. */
  readonly isRestorable: boolean;
}

/** The database that a start is to have. */
export interface SoughtDatabase {
  /** What is known where it is missing: `there is no database at data/meta.db`. */
  readonly lack: string;
  readonly isMissing: () => Promise<boolean>;
}

export interface StartSeams {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Ends the waiting. */
  readonly stopping: AbortSignal;
}

/**
 * Throws `corrupt` where there is no database and the stores need one; `unavailable` at a stop. Writes nothing, and
 * waits for stores that are away.
 */
export async function assertDatabaseNotMissing(database: SoughtDatabase, stores: StoresBeside, seams: StartSeams): Promise<void> {
  const { clock, random, log, stopping } = seams;
  const { lack, isMissing } = database;
  if (!(await isMissing())) return;
  for (let attempt = 1; ; attempt++) {
    try {
      const trace = await findTrace(stores);
      // Another process may have made it meanwhile, and its first objects with it.
      if (trace === null || !(await isMissing())) return;
      throw new PicoError("corrupt", `${describeMissing(lack, trace)}. Nothing was made or changed`, {
        where: "the database",
      });
    } catch (error) {
      if (!isPicoError(error, "storage_failed")) throw error;
      if (attempt === 1) log.warn("there is no database yet, and what the store holds cannot be found out; it is tried again", { error });
      await sleep(clock, backOffMs(random, attempt, START_RETRY_MS_MIN, START_RETRY_MS_MAX), stopping);
      if (stopping.aborted) throw new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 });
    }
  }
}

/** Null: a new database may begin here. Throws as the stores do. */
export async function findTrace(stores: StoresBeside): Promise<StoredTrace | null> {
  for (const [kind, find] of Object.entries(STORED_TRACES)) {
    // One that is not kept up is in nobody's way.
    if (kind === "mirror" && !stores.isMirrored) continue;
    const what = await find(stores);
    if (what !== null) return { what, isRestorable: (await STORED_TRACES.mirror(stores)) !== null };
  }
  return null;
}

/** `lack`: what is known of the database. */
export function describeMissing(lack: string, { what, isRestorable }: StoredTrace): string {
  const remedy = isRestorable
    ? "stop the old node, if it still runs somewhere, and build the database from there: pico restore with the same flags"
    : "put back the database, or restore a backup";
  return `${lack}, and ${what}, of which a new one would know nothing. If that is this node's, ${remedy}; else name other places with --data-dir, --meta-url, --storage or --cluster-id`;
}
