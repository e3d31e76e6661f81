/**
 * Which destroyed objects to delete from the store now: a pure decision, from positive records only. An
 * object that is not listed as destroyed is never named, whatever the store holds.
 *
 * Two deletes of an object count. The first frees the space, a minute behind the destruction, when no reader
 * of an older view needs it any more. A create that the store took late, though its answer was a time-out, may
 * put the object back; so only a delete that begins when no such create can come any more is the last.
 */
import { LATE_WRITE_MS, REMOVAL_DELAY_MS } from "../lib/limits.ts";
import type { ObjectEntry } from "../metadata/entries.ts";

/** What this process knows of an object that it tried to delete. */
export interface RemovalTry {
  /** The store confirmed a delete that was not the last. */
  readonly isDeletedOnce: boolean;
  /** Deletes that the store refused, or did not answer, in a row. */
  readonly refusals: number;
  /** Monotonic time before which it is not asked again; 0: at once. */
  readonly notBeforeMs: number;
}

export interface RemovalFacts {
  /** The oldest destruction first. */
  readonly destroyed: Iterable<ObjectEntry>;
  /** Every live node has applied the log up to here. */
  readonly appliedByAll: number;
  readonly databaseNowMs: number;
  readonly monotonicMs: number;
  readonly tries: ReadonlyMap<number, RemovalTry>;
  readonly keysMax: number;
}

export interface RemovalPlan {
  /** To delete now. */
  readonly objects: readonly ObjectEntry[];
  /** Those of them whose confirmed delete is the last: they leave the metadata then. */
  readonly lastOf: ReadonlySet<number>;
  /** Index of the newest command that allows one of them. */
  readonly index: number;
}

export function planRemoval({ destroyed, appliedByAll, databaseNowMs, monotonicMs, tries, keysMax }: RemovalFacts): RemovalPlan {
  const objects: ObjectEntry[] = [];
  const lastOf = new Set<number>();
  let index = 0;
  for (const entry of destroyed) {
    if (objects.length >= keysMax) break;
    const { objectId, state, destroyedIndex, destroyedAtMs } = entry;
    if (state !== "destroyed" || destroyedIndex === null || destroyedAtMs === null) continue;
    if (destroyedIndex > appliedByAll) break;
    const ageMs = databaseNowMs - destroyedAtMs;
    if (ageMs < REMOVAL_DELAY_MS) continue;
    const isLast = ageMs >= LATE_WRITE_MS;
    const before = tries.get(objectId);
    if (before !== undefined && (monotonicMs < before.notBeforeMs || (before.isDeletedOnce && !isLast))) continue;
    objects.push(entry);
    if (isLast) lastOf.add(objectId);
    index = Math.max(index, destroyedIndex);
  }
  return { objects, lastOf, index };
}
