/**
 * Writes snapshots of the state while it goes on changing. A snapshot is the rows that changed since the
 * stored one, in one transaction that also names the new index, so its cost follows what changed.
 *
 * Invariants:
 * - The dirty rows hold every row touched above the stored index, whichever node wrote that snapshot;
 *   they are forgotten only up to an index that is certainly stored.
 * - Rows, count and sum are taken in one synchronous step, at one index. Entries are immutable, so they
 *   can be encoded later.
 * - A write whose answer was lost is taken for one that did not happen. If it did, the next one loses the
 *   compare-and-set, like one that another node came before; then the stored snapshot is read, whole and
 *   verified, before the next one is built on it (FAULTS L4).
 */
import { type Clock, sleep } from "../lib/clock.ts";
import { SNAPSHOT_EVERY_COMMANDS } from "../lib/limits.ts";
import type { SnapshotHead, SnapshotRow, SqlStore } from "../sql/sql-store.ts";
import { verifySnapshot } from "./snapshot-loader.ts";
import type { MetadataState } from "./state.ts";
import { encodeRowValue, type StateRow } from "./state-format.ts";

/** Rows encoded without a pause. */
const ENCODE_ROWS_MAX = 1000;

export interface SnapshotterOptions {
  readonly store: SqlStore;
  readonly state: MetadataState;
  readonly clock: Clock;
}

interface Capture {
  readonly head: SnapshotHead;
  readonly rows: readonly (readonly [string, StateRow | null])[];
}

/** What became of this node's snapshots; for operators. */
export interface SnapshotFigures {
  /** Index of the stored snapshot, as far as this node knows. */
  readonly lastAppliedIndex: number;
  /** Bytes of the rows that the last one changed, and how long it took to write. */
  readonly lastBytes: number;
  readonly lastDurationMs: number;
  /** Wall clock of its end; 0 before the first. */
  readonly lastAtMs: number;
  readonly taken: number;
  readonly failed: number;
}

export class Snapshotter {
  readonly #options: SnapshotterOptions;
  /** At or below the index that is stored: behind it where another node wrote one, or an answer was lost. */
  #storedIndex: number;
  /** Commands applied since the last snapshot, or try at one. */
  #unsavedCommands = 0;

  #last = { lastBytes: 0, lastDurationMs: 0, lastAtMs: 0, taken: 0, failed: 0 };

  /** `storedIndex`: of the snapshot that the state was loaded from. */
  constructor(options: SnapshotterOptions, storedIndex: number) {
    this.#options = options;
    this.#storedIndex = storedIndex;
  }

  /** Index of the stored snapshot, as far as this node knows. */
  get storedIndex(): number {
    return this.#storedIndex;
  }

  get figures(): SnapshotFigures {
    return { lastAppliedIndex: this.storedIndex, ...this.#last };
  }

  /** Whether enough was applied to make a snapshot worth its cost. */
  get isDue(): boolean {
    return this.#unsavedCommands >= SNAPSHOT_EVERY_COMMANDS;
  }

  noteApplied(commandCount: number): void {
    this.#unsavedCommands += commandCount;
  }

  /** The log begins at `first`: what lay below it was truncated, hence is in the stored snapshot, whoever wrote that. */
  noteTruncation(first: number): void {
    this.#options.state.dirtyRows.forgetUpTo(first - 1);
  }

  /** Writes a snapshot of the present state. False where there is nothing to write, or another one came first. */
  async write(): Promise<boolean> {
    const commandsBefore = this.#unsavedCommands;
    const isWritten = await this.#tryWrite();
    // Also where another node's came first: it holds about the same commands.
    this.#unsavedCommands -= commandsBefore;
    return isWritten;
  }

  async #tryWrite(): Promise<boolean> {
    const { store, state, clock } = this.#options;
    const startedMs = clock.monotonicMs();
    const expectedIndex = this.#storedIndex;
    if (state.appliedIndex <= expectedIndex) return false;
    const capture = this.#capture();
    const changes = await this.#encode(capture);
    if (await store.writeSnapshot({ expectedIndex, head: capture.head, ...changes })) {
      this.#setStored(capture.head.index);
      const lastBytes = changes.upserts.reduce((sum, row) => sum + row.key.length + row.value.length, 0);
      const lastDurationMs = clock.monotonicMs() - startedMs;
      this.#last = { ...this.#last, lastBytes, lastDurationMs, lastAtMs: clock.nowMs(), taken: this.#last.taken + 1 };
      return true;
    }
    this.#last = { ...this.#last, failed: this.#last.failed + 1 };
    this.#setStored((await verifySnapshot(store)).index);
    return false;
  }

  #capture(): Capture {
    const { state } = this.#options;
    const rows = state.dirtyRows.keys().map((key) => [key, state.row(key)] as const);
    return { head: { index: state.appliedIndex, rowId: state.appliedRowId, ...state.hash() }, rows };
  }

  async #encode(capture: Capture): Promise<{ upserts: SnapshotRow[]; deletes: string[] }> {
    const upserts: SnapshotRow[] = [];
    const deletes: string[] = [];
    for (const [position, [key, row]] of capture.rows.entries()) {
      if (position > 0 && position % ENCODE_ROWS_MAX === 0) await sleep(this.#options.clock, 0);
      if (row === null) deletes.push(key);
      else upserts.push({ key, value: encodeRowValue(row) });
    }
    return { upserts, deletes };
  }

  #setStored(index: number): void {
    this.#storedIndex = index;
    this.#options.state.dirtyRows.forgetUpTo(index);
  }
}
