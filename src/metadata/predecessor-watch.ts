/**
 * Watches the registration that a starting node is to replace, where no lock proves that its process is dead:
 * only a heartbeat counter that stands still for the failover limit does (DESIGN 4). The registration then names
 * the counter, so that a process which wakes up in between keeps its place.
 *
 * What keeps a living process from its heartbeats must not count against it:
 * - A database that takes no writes. So each look writes before it reads, as a heartbeat would, and one that
 *   fails ends the watch.
 * - A database that is slow or stalls, and a pause of the whole host. Either makes a look slow, which begins the
 *   watch anew, and longer: for four times as long as that look took. A living process then has sent several, and a
 *   database that is slow all the time does not begin the watch anew for ever.
 */
import { type Clock, sleep } from "../lib/clock.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { PREDECESSOR_LOOK_MS, PREDECESSOR_WATCH_MS_MAX } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { formatRegistration, sameRegistration } from "../lib/registration.ts";
import type { SqlStore } from "../sql/sql-store.ts";
import type { RegistrationEntry } from "./entries.ts";

export interface PredecessorWatch {
  readonly sql: Pick<SqlStore, "checkWrites" | "readHeartbeats">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** A slow look is followed by a watch of this many times its length. */
const SLOW_LOOKS_WATCHED = 4;

/**
 * The counter that stood still; 0 where the registration never sent a heartbeat. Throws `locked`, naming its address,
 * once the counter moves; `unavailable` where the database fails, since that makes every counter stand still, and when
 * `signal` aborts.
 */
export async function awaitStandstill(victim: RegistrationEntry, { sql, clock, log, signal }: PredecessorWatch): Promise<number> {
  const counter = await lookAt(victim, sql);
  let neededMs = victim.failoverTimeoutMs;
  let sinceMs = clock.monotonicMs();
  let answeredMs = sinceMs;
  for (let standstillMs = 0; standstillMs < neededMs; ) {
    await sleep(clock, PREDECESSOR_LOOK_MS, signal);
    if (signal.aborted) throw new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 });
    const sentMs = clock.monotonicMs();
    if ((await lookAt(victim, sql)) !== counter) throw alive(victim);
    const lookMs = clock.monotonicMs() - answeredMs;
    answeredMs += lookMs;
    standstillMs = sentMs - sinceMs;
    if (lookMs <= neededMs / 2) continue;
    sinceMs = answeredMs;
    standstillMs = 0;
    neededMs = Math.max(neededMs, Math.min(PREDECESSOR_WATCH_MS_MAX, lookMs * SLOW_LOOKS_WATCHED));
    log.warn(
      "the database is too slow, or this process was paused, to tell whether another process of this node id lives; it is watched anew",
      {
        registration: formatRegistration(victim.name),
        lookMs: Math.round(lookMs),
        waitMs: Math.round(neededMs),
      },
    );
  }
  return counter;
}

/** The counter, as of a moment at which the database took a write. */
async function lookAt(victim: RegistrationEntry, sql: PredecessorWatch["sql"]): Promise<number> {
  try {
    await sql.checkWrites();
    return await counterOf(victim, sql);
  } catch (error) {
    if (!isPicoError(error, "database_failed") && !isPicoError(error, "unknown_outcome")) throw error;
    const reason = `whether ${formatRegistration(victim.name)} is alive cannot be told until the database takes writes: ${messageOf(error)}`;
    throw new PicoError("unavailable", reason, { retryAfterSeconds: 1 }, error);
  }
}

async function counterOf({ name }: RegistrationEntry, sql: PredecessorWatch["sql"]): Promise<number> {
  const beats = await sql.readHeartbeats();
  return beats.find(({ registration }) => sameRegistration(registration, name))?.counter ?? 0;
}

export function alive({ name, addresses }: RegistrationEntry): PicoError {
  const address = addresses.admin ?? addresses.pico ?? addresses.durableStreams;
  const where = address === null ? "" : ` at ${address}`;
  return new PicoError(
    "locked",
    `node ${name.nodeId} is alive${where} (${formatRegistration(name)} sends heartbeats): stop it first, or give this node another --node-id`,
    { nodeId: name.nodeId, address, isStartup: true },
  );
}
