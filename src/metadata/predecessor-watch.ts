/**
 * Watches the registration that a starting node is to replace, where no lock proves that its process is dead:
 * only a heartbeat counter that stands still for the failover limit does (DESIGN 4). The registration then names
 * the counter, so that a process which wakes up in between keeps its place.
 */
import { type Clock, sleep } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { PREDECESSOR_LOOK_MS } from "../lib/limits.ts";
import { formatRegistration, sameRegistration } from "../lib/registration.ts";
import type { SqlStore } from "../sql/sql-store.ts";
import type { RegistrationEntry } from "./entries.ts";

/**
 * The counter that stood still; 0 where the registration never sent a heartbeat. Throws `locked`, naming its address,
 * once the counter moves; `unavailable` when `signal` aborts; and as the database does, since a database that is away
 * makes every counter stand still.
 */
export async function awaitStandstill(
  victim: RegistrationEntry,
  { sql, clock, signal }: { readonly sql: SqlStore; readonly clock: Clock; readonly signal: AbortSignal },
): Promise<number> {
  const counter = await counterOf(victim, sql);
  // Each look that is answered: what lies between two of them is at most a look and a call.
  let sinceMs = clock.monotonicMs();
  let lastLookMs = sinceMs;
  while (lastLookMs - sinceMs < victim.failoverTimeoutMs) {
    await sleep(clock, PREDECESSOR_LOOK_MS, signal);
    if (signal.aborted) throw new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 });
    const sentMs = clock.monotonicMs();
    // A pause of this process says nothing of the other one.
    if (sentMs - lastLookMs > victim.failoverTimeoutMs / 2) sinceMs = sentMs;
    if ((await counterOf(victim, sql)) !== counter) throw alive(victim);
    lastLookMs = sentMs;
  }
  return counter;
}

async function counterOf({ name }: RegistrationEntry, sql: SqlStore): Promise<number> {
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
