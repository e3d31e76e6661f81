/**
 * The WAL in a table of Postgres: milliseconds for an append without a local disk, and any node can take it over, by
 * creating the next number itself.
 *
 * Invariants:
 * - The only write is the insert of a number that is not there, the only delete a trim.
 * - A row says itself whether it is a tombstone, so a trim reads nothing and deletes none (FAULTS O1).
 */
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { PostgresSegmentTable } from "../sql/postgres-segment-table.ts";
import { isTombstone } from "./wal-segment-format.ts";
import type { WalStore } from "./wal-store.ts";

export class PostgresWal implements WalStore {
  readonly kind = "postgres";
  readonly description: string;
  readonly inFlightMax: number;
  readonly #table: PostgresSegmentTable;

  /** The table is open, and from here on this one's, to close. */
  constructor(table: PostgresSegmentTable, clusterId: string, inFlightMax: number) {
    this.#table = table;
    this.description = `${table.description}, cluster ${clusterId}`;
    this.inFlightMax = inFlightMax;
  }

  async begin(): Promise<void> {
    // Rows need no preparation.
  }

  async create(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    const isCreated = await inStore(this.#table.create(registration, number, bytes, isTombstone(bytes)));
    return isCreated ? "created" : "exists";
  }

  async registrations(): Promise<readonly RegistrationName[]> {
    const all = await inStore(this.#table.registrations());
    return all.map(({ nodeId, nodeEpoch }) => ({ nodeId, nodeEpoch }));
  }

  async registrationsWithSegments(): Promise<readonly RegistrationName[]> {
    const all = await inStore(this.#table.registrations());
    return all.filter(({ hasSegments }) => hasSegments).map(({ nodeId, nodeEpoch }) => ({ nodeId, nodeEpoch }));
  }

  list(registration: RegistrationName, above: number): Promise<readonly number[]> {
    return inStore(this.#table.list(registration, above));
  }

  read(registration: RegistrationName, number: number): Promise<Uint8Array | null> {
    return inStore(this.#table.read(registration, number));
  }

  async persist(): Promise<void> {
    // A row that is seen is committed.
  }

  async trim(
    registration: RegistrationName,
    upTo: number,
    mayDelete = async () => true,
  ): Promise<readonly { readonly number: number; readonly reason: string }[]> {
    try {
      for (let isMore = true; isMore; ) {
        if (!(await mayDelete())) return [{ number: upTo, reason: "removal is held back" }];
        isMore = await this.#table.trimSome(registration, upTo);
      }
      return [];
    } catch (error) {
      if (!isPicoError(error)) throw error;
      return [{ number: upTo, reason: messageOf(error) }];
    }
  }

  close(): Promise<void> {
    return this.#table.close();
  }
}

/** A database that holds a WAL is its store, and fails as one. */
async function inStore<Result>(call: Promise<Result>): Promise<Result> {
  try {
    return await call;
  } catch (error) {
    if (isPicoError(error, "database_failed")) throw new PicoError("storage_failed", error.message, error.facts, error);
    throw error;
  }
}
