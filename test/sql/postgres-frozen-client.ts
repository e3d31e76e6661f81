/** Run as a process of its own, and stopped by a signal: a node that freezes in a transaction with the head row locked. */
import { systemClock } from "../../src/lib/clock.ts";
import type { PostgresPlace } from "../../src/sql/postgres-place.ts";
import { PostgresSession } from "../../src/sql/postgres-session.ts";

const place = JSON.parse(process.argv[2] ?? "") as PostgresPlace;
const session = await PostgresSession.open({ place, clock: systemClock });
await session.transaction({ name: "freezing", mayCommit: true }, "write", async (transaction) => {
  await transaction.query("SELECT head FROM pico.log_head FOR UPDATE");
  console.log("locked");
  await new Promise(() => {});
});
