/** Opens a WAL in Postgres. */
import type { WalStore } from "../engine/wal-store.ts";
import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import type { PostgresSegmentTable } from "../sql/postgres-segment-table.ts";
import type { StartSeams } from "./missing-database.ts";
import { awaitPostgres } from "./postgres-admission.ts";
import type { WalSettings } from "./settings.ts";

type PostgresWalSettings = Extract<WalSettings, { kind: "postgres" }>;

/** Waits for a server that is away. Throws `settings` for one that may lose what it committed, and as `awaitPostgres` does. */
export async function openPostgresWal(settings: PostgresWalSettings, clusterId: string, seams: StartSeams): Promise<WalStore> {
  const { PostgresWal } = await import("../engine/wal-store-postgres.ts");
  const table = await makeTable(settings, clusterId, seams.clock);
  try {
    await awaitPostgres("--wal", () => table.open(), seams);
    if (!table.isDurable && !settings.isUnsafeAllowed) {
      throw new PicoError(
        "settings",
        `--wal refused: ${table.description} runs with fsync = off, and a power cut would lose what was acknowledged; set it to on, or take the risk with allowUnsafe=true`,
        { flag: "--wal", isStartup: true },
      );
    }
    return new PostgresWal(table, clusterId, settings.parameters.inFlightMax);
  } catch (error) {
    await table.close();
    throw error;
  }
}

/** What a new database would have to know of; no table is made. */
export async function lookAtPostgresWal(
  settings: PostgresWalSettings,
  clusterId: string,
  clock: Clock,
): Promise<Pick<WalStore, "description" | "registrations">> {
  const table = await makeTable(settings, clusterId, clock);
  try {
    const found = (await table.isPrepared()) ? await table.registrations() : [];
    return { description: table.description, registrations: async () => found };
  } finally {
    await table.close();
  }
}

async function makeTable({ place }: PostgresWalSettings, clusterId: string, clock: Clock): Promise<PostgresSegmentTable> {
  const { PostgresSegmentTable } = await import("../sql/postgres-segment-table.ts");
  return new PostgresSegmentTable({ place, clusterId, clock });
}
