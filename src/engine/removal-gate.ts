/**
 * What every delete in the store asks first, WAL trims of every kind included. It lets a delete pass that
 * the command at an index allows, once nothing that happens to the database can make it a mistake: the
 * removal is not held, the mirror of the log (where there is one) reaches that index, and a marker at or
 * above it is stored (DESIGN 3, "the log proves itself").
 *
 * Invariants:
 * - `allow` answers true only behind a positive record: a marker that the store confirmed to this process,
 *   or that was read back, with the row id that this process itself has applied.
 * - A lower marker is deleted only when a higher one is certainly stored. None is above the mirror.
 * - It asks the store for nothing unless somebody wants to delete.
 */
import { assert } from "../lib/assert.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { OBJECT_DELETE_KEYS_MAX, PROBLEM_CHARACTERS_MAX } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { boundedText } from "../lib/plain-text.ts";
import type { Metadata } from "../metadata/metadata.ts";
import { isRemovalHeld } from "../metadata/removal-hold.ts";
import type { DeleteRefusal, ObjectStore } from "../storage/object-store.ts";
import { encodeMarker, listMarkers, markerKey, readMarker, type StoreMarker } from "./store-marker.ts";

export interface RemovalGateOptions {
  readonly store: ObjectStore;
  readonly clusterId: string;
  /** Of the database, 32 hex digits. */
  readonly clusterIdentity: string;
  readonly metadata: Metadata;
  readonly log: Logger;
  /** Resolves with true once a copy of the command log up to `index` is where a restore would look for it. Absent: there is no such copy. */
  readonly cover?: (index: number) => Promise<boolean>;
}

export class RemovalGate {
  readonly #options: RemovalGateOptions;
  /** Index of the highest marker that is certainly stored; 0 before the first of this process. */
  #markedIndex = 0;
  /** The one write under way, for all who wait for a marker. */
  #marking: Promise<boolean> | null = null;
  /** Lower markers of which nobody here knows may be in the store: of earlier lives, or whose delete failed. */
  #hasUnknownOlder = true;
  /** The last deletes of older markers were refused. */
  #isRefused = false;
  #isClosed = false;

  constructor(options: RemovalGateOptions) {
    this.#options = options;
  }

  /** Index of the highest marker that this process knows to be stored; 0: none yet. */
  get markedIndex(): number {
    return this.#markedIndex;
  }

  /**
   * Whether what the command at `index` allows may be deleted now; `index` is applied here. False, or a
   * rejection as the store or the mirror makes it: delete nothing, and ask again later. Throws `corrupt`
   * where the marker that the store has at this index is that of another database.
   */
  async allow(index: number): Promise<boolean> {
    const { metadata, cover } = this.#options;
    assert(index <= metadata.view.appliedIndex, "what allows a delete is applied here");
    if (this.#isHeld) return false;
    if (cover !== undefined && !(await cover(index))) return false;
    while (this.#markedIndex < index) {
      if (this.#isHeld) return false;
      this.#marking ??= this.#mark().finally(() => {
        this.#marking = null;
      });
      if (!(await this.#marking)) return false;
    }
    // Asked again: a hold, or the end of this node, may have come meanwhile.
    return !this.#isHeld;
  }

  /** Nothing passes any more: the node gives up. */
  close(): void {
    this.#isClosed = true;
  }

  get #isHeld(): boolean {
    return this.#isClosed || isRemovalHeld(this.#options.metadata);
  }

  /** Stores a marker at the applied index, which serves all who ask meanwhile. False where the mirror does not reach that. */
  async #mark(): Promise<boolean> {
    const { store, clusterId, clusterIdentity, metadata, cover } = this.#options;
    const { appliedIndex: index, appliedRowId: rowId } = metadata.view;
    // A marker above the mirror would refuse the very database that a restore makes of it.
    if (cover !== undefined && !(await cover(index))) return false;
    const marker: StoreMarker = { index, rowId, clusterIdentity, clusterId };
    await this.#create(store, marker);
    const before = this.#markedIndex;
    this.#markedIndex = index;
    await this.#removeOlder(before, index);
    return true;
  }

  /** Resolves when exactly this marker is in the store. */
  async #create(store: ObjectStore, marker: StoreMarker): Promise<void> {
    try {
      if ((await store.create(markerKey(marker.clusterId, marker.index), encodeMarker(marker))) === "created") return;
    } catch (error) {
      if (!isPicoError(error, "unknown_outcome")) throw error;
      await this.#readBack(store, marker, error);
      return;
    }
    // Another node, or an earlier try of this one, came first.
    await this.#readBack(store, marker, null);
  }

  async #readBack(store: ObjectStore, marker: StoreMarker, doubt: unknown): Promise<void> {
    const key = markerKey(marker.clusterId, marker.index);
    const found = await readMarker(store, marker.clusterId, marker.index);
    if (found === null) {
      throw new PicoError("storage_failed", `marker ${key} may not have been stored, so that nothing is deleted yet`, { key }, doubt);
    }
    if (found.rowId !== marker.rowId || found.clusterIdentity !== marker.clusterIdentity) {
      throw new PicoError(
        "corrupt",
        `marker ${key} was written beside another database: it holds row ${found.rowId} of ${found.clusterIdentity}, this one has ${marker.rowId} of ${marker.clusterIdentity}. ` +
          "Two databases use one bucket, or this one was set back; nothing was deleted. Go on with the newest database only",
        { where: `marker ${key}` },
      );
    }
  }

  /** A failure leaves markers that nobody needs: they are looked for with the next one. */
  async #removeOlder(before: number, index: number): Promise<void> {
    const { store, clusterId, log } = this.#options;
    try {
      const older = this.#hasUnknownOlder ? await listMarkers(store, clusterId) : before > 0 ? [before] : [];
      this.#hasUnknownOlder = true;
      const refusal = await this.#delete(older.filter((other) => other < index).map((other) => markerKey(clusterId, other)));
      this.#hasUnknownOlder = refusal !== null;
      this.#tell(refusal);
    } catch (error) {
      this.#hasUnknownOlder = true;
      log.debug("older markers stay in the store for now", { reason: messageOf(error) });
    }
  }

  /** The first refusal; null where all are gone. */
  async #delete(keys: readonly string[]): Promise<DeleteRefusal | null> {
    let refusal: DeleteRefusal | null = null;
    for (let at = 0; at < keys.length; at += OBJECT_DELETE_KEYS_MAX) {
      const outcomes = await this.#options.store.delete(keys.slice(at, at + OBJECT_DELETE_KEYS_MAX));
      for (const outcome of outcomes) if (!outcome.deleted) refusal ??= outcome;
    }
    return refusal;
  }

  /** Once a change: each marker to come tries again. */
  #tell(refusal: DeleteRefusal | null): void {
    const { log } = this.#options;
    if (refusal !== null && !this.#isRefused) {
      const { key, code, message } = refusal;
      log.warn("the store refuses to delete older markers, which stay and are tried again: check the right to delete objects", {
        key,
        code,
        reason: boundedText(message, PROBLEM_CHARACTERS_MAX),
      });
    } else if (refusal === null && this.#isRefused) log.info("the store takes deletes of markers again");
    this.#isRefused = refusal !== null;
  }
}
