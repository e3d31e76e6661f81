/**
 * The WAL store seam: numbered, immutable segments of a registration. Implementations: local disk,
 * object store, Postgres table. One contract suite in `test/engine` runs against each.
 *
 * Contract:
 * - Numbers of a registration start at 1 and have no gaps as written; a number is created once,
 *   whatever its bytes (`exists` tells the loser), and its bytes never change.
 * - `create` resolves only when the bytes would survive a power cut. Several creates may be under way;
 *   they may end in any order. `unknown_outcome` means that the number may or may not be taken: settle
 *   it by reading back. `storage_failed` and `storage_full` mean that it is not taken.
 * - A local store whose sync failed is dead for good: that create and all later ones reject with
 *   `durability` (FAULTS W2).
 * - Tombstones are stored like segments, and `trim` never removes one.
 */

import type { RegistrationName } from "../lib/registration.ts";
import type { ObjectStore } from "../storage/object-store.ts";

/**
 * Given to a trim once the registration is ended, and its tombstone stands unless it ended itself: segments above the
 * end are void, and on local disk one of them would keep its whole file. Of the life that writes, nothing is written behind it.
 */
export const ALL_NUMBERS = Number.MAX_SAFE_INTEGER;

export interface WalStore {
  /** For messages: where the WAL is. */
  readonly description: string;
  /** Stored in the registration. `local` WALs are replayed only by a holder of the directory's lock. */
  readonly kind: "local" | "object" | "postgres";
  /** Where its segments are objects, below `<cluster>/wal/`: the store that holds them. */
  readonly objects?: ObjectStore;
  /** Creates that may be under way at once. */
  readonly inFlightMax: number;

  /**
   * Prepares for the creates of `registration`, whose life begins: makes room where the store needs it.
   * Changes nothing of other registrations.
   */
  begin(registration: RegistrationName): Promise<void>;

  create(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists">;

  /** Every registration of which anything is here, of whatever node and cluster age, in no particular order. */
  registrations(): Promise<readonly RegistrationName[]>;

  /** Those of them of which more than tombstones is here, as far as a list tells. */
  registrationsWithSegments(): Promise<readonly RegistrationName[]>;

  /** Numbers present above `above`, ascending; tombstones and damaged ones included, where a number can be told. */
  list(registration: RegistrationName, above: number): Promise<readonly number[]>;

  /** The stored bytes, unchecked; null where absent. The result is the caller's own. */
  read(registration: RegistrationName, number: number): Promise<Uint8Array | null>;

  /**
   * Resolves when everything that reads back of the registration would survive a power cut. For a reader that
   * shows segments before they are uploaded; none may be under way.
   */
  persist(registration: RegistrationName): Promise<void>;

  /**
   * Removes segments numbered up to `upTo` (tombstones stay). May leave any of them behind; calling it
   * again removes the rest. Returns the numbers it could not remove, with the store's reason. `mayDelete` is asked
   * before each request that deletes, where one trim takes many. @default always
   */
  trim(
    registration: RegistrationName,
    upTo: number,
    mayDelete?: () => Promise<boolean>,
  ): Promise<readonly { readonly number: number; readonly reason: string }[]>;

  close(): Promise<void>;
}
