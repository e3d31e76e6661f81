/**
 * Builds the state from the stored snapshot, and proves it: number and sum of the rows must be those of
 * the head, and the log must hold the very row that the head names. What does not fit throws `corrupt`
 * and nothing of it is used, so that a missing row is never taken for a deleted entry (FAULTS L2, D1).
 */
import { PicoError } from "../lib/errors.ts";
import type { SnapshotHead, SqlStore } from "../sql/sql-store.ts";
import { MetadataState } from "./state.ts";
import { decodeRow } from "./state-format.ts";
import { type HashedRows, RowSum } from "./state-hash.ts";

/** Reads of a snapshot that another node replaced, and truncated the log below, meanwhile. */
const READ_TRIES_MAX = 5;

/** The state at the snapshot's index; an empty one where there is no snapshot. Throws `corrupt` or `incompatible`. */
export async function loadState(store: SqlStore): Promise<MetadataState> {
  for (let tries = 1; ; tries++) {
    const state = new MetadataState();
    const head = await store.readSnapshot((rows) => {
      for (const { key, value } of rows) state.load(key, value, decodeRow(key, value));
    });
    assertWhole(store, head, state.hash());
    state.loaded(head.index, head.rowId);
    const rowId = head.index === 0 ? head.rowId : await store.rowIdAt(head.index);
    if (rowId === head.rowId) return state;
    // The row at the newest snapshot's index is never truncated.
    const isReplaced = rowId === null && (await store.readLog(head.index, 1)).first > head.index;
    if (!isReplaced || tries >= READ_TRIES_MAX) throw foreignLog(store, head, rowId);
  }
}

/** The head of the stored snapshot, once all its rows were read and found right. Throws `corrupt`. */
export async function verifySnapshot(store: SqlStore): Promise<SnapshotHead> {
  const sum = new RowSum();
  const head = await store.readSnapshot((rows) => {
    for (const { key, value } of rows) sum.add(key, value);
  });
  assertWhole(store, head, sum);
  return head;
}

function assertWhole(store: SqlStore, head: SnapshotHead, found: HashedRows): void {
  if (found.rowCount === head.rowCount && found.rowSum === head.rowSum) return;
  throw new PicoError(
    "corrupt",
    `the metadata snapshot in ${store.description} is damaged: ${head.rowCount} rows with sum ${head.rowSum.toString(16)} expected, ` +
      `${found.rowCount} with ${found.rowSum.toString(16)} found; restore the database from a backup`,
    { where: "metadata snapshot", expected: head.rowCount, found: found.rowCount },
  );
}

/** The log is another one than the snapshot was made from, or an older state of it. */
function foreignLog(store: SqlStore, head: SnapshotHead, rowId: string | null): PicoError {
  return new PicoError(
    "corrupt",
    `the command log in ${store.description} does not belong to its snapshot: row ${head.index} is ${rowId ?? "missing"}, ` +
      `${head.rowId} was applied; restore log and snapshot together`,
    { where: "command log", index: head.index },
  );
}
