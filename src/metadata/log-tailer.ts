/**
 * The tailer: reads the command log and applies it, row by row.
 *
 * Invariants:
 * - Row n+1 is applied after row n. A row that is missing stops the tailer with an error, it is never
 *   stepped over (FAULTS L3).
 * - Rows are applied only while the log still holds the row applied last, with the same row id: a log
 *   that is shorter than, or different from, what was applied stops the tailer (FAULTS D1). Whoever uses
 *   the state must then stop too, and delete nothing.
 * - What throws while a row is decoded or applied stops the tailer for good: the state is not used again.
 */
import type { Clock } from "../lib/clock.ts";
import { messageOf, PicoError } from "../lib/errors.ts";
import { CATCH_UP_WAIT_MS, LOG_PAGE_ROWS, LOG_VERIFY_MS } from "../lib/limits.ts";
import type { LogPage, LogRow, SqlStore } from "../sql/sql-store.ts";
import { apply, type CommandRow, isRepeat } from "./apply.ts";
import type { Outcome } from "./command.ts";
import { decodeBatch } from "./command-format.ts";
import type { MetadataState } from "./state.ts";

export interface LogTailerOptions {
  readonly store: SqlStore;
  readonly state: MetadataState;
  readonly clock: Clock;
  /** Called after each applied row, before the next, except for one that repeats a batch. Must not throw. */
  readonly onApplied: (row: CommandRow, outcomes: readonly Outcome[]) => void;
  /** Called once, when the tailer has stopped for good. */
  readonly onFatal: (error: unknown) => void;
}

export class LogTailer {
  readonly #options: LogTailerOptions;
  /** The read under way, and the one that begins behind it for those who came later. */
  #current: Promise<void> | null = null;
  #next: Promise<void> | null = null;
  #verifiedMs: number;
  #isStopped = false;
  #span = { first: 1, head: 0 };

  constructor(options: LogTailerOptions) {
    this.#options = options;
    this.#verifiedMs = options.clock.monotonicMs();
  }

  /** Lowest and highest index in the log as last read. */
  get span(): { readonly first: number; readonly head: number } {
    return this.#span;
  }

  /** Applies whatever is in the log when the read begins, which is after this call. Rejects as the database does. */
  read(): Promise<void> {
    if (this.#next !== null) return this.#next;
    if (this.#current === null) return this.#begin();
    const begin = () => {
      this.#next = null;
      return this.#begin();
    };
    this.#next = this.#current.then(begin, begin);
    return this.#next;
  }

  /** `read` with a bound: rejects with `unavailable` where the database fails or does not answer in time. */
  async catchUp(): Promise<void> {
    if (this.#isStopped) throw new PicoError("unavailable", "the metadata log has stopped", { retryAfterSeconds: 1 });
    const { clock } = this.#options;
    await new Promise<void>((resolve, reject) => {
      const fail = (reason: string, cause?: unknown) =>
        reject(new PicoError("unavailable", `cannot read the head of the metadata log: ${reason}`, { retryAfterSeconds: 1 }, cause));
      const timer = clock.schedule(CATCH_UP_WAIT_MS, () => fail(`the database did not answer within ${CATCH_UP_WAIT_MS} ms`));
      this.read()
        .then(resolve, (error) => fail(messageOf(error), error))
        .finally(() => timer.cancel());
    });
    if (this.#isStopped) throw new PicoError("unavailable", "the metadata log has stopped", { retryAfterSeconds: 1 });
  }

  /**
   * Takes a row that this node has just inserted. In the common case it is the next one and is applied
   * without a read; else a read brings what lies before it, and it.
   */
  offer(row: LogRow): void {
    if (this.#isStopped) return;
    const { state } = this.#options;
    if (row.index === state.appliedIndex + 1) this.#applyRow(row);
    else if (row.index <= state.appliedIndex)
      this.#stop(lostHistory(this.#options.store, row.index, "has been applied with another row id"));
    // A failed read is repeated by the poll.
    else this.read().catch(() => undefined);
  }

  stop(): void {
    this.#isStopped = true;
  }

  #begin(): Promise<void> {
    const current = this.#readToHead().finally(() => {
      if (this.#current === current) this.#current = null;
    });
    this.#current = current;
    return current;
  }

  async #readToHead(): Promise<void> {
    const { store, state } = this.#options;
    for (let isMore = true; isMore && !this.#isStopped; ) {
      const after = state.appliedIndex;
      const afterRowId = state.appliedRowId;
      const page = await store.readLog(after, LOG_PAGE_ROWS);
      if (page.head < after) return this.#stop(lostHistory(store, after, `is missing: the log ends at ${page.head}`));
      if (page.first > after + 1) return this.#stop(truncatedTooFar(after, page));
      this.#span = { first: page.first, head: page.head };
      if (page.rows.length > 0 || this.#isVerifyDue()) {
        const fault = await this.#faultAt(after, afterRowId);
        if (fault !== null) return this.#stop(lostHistory(store, after, fault));
      }
      for (const row of page.rows) if (!this.#isStopped) this.#takeRow(row);
      isMore = page.rows.length > 0 && state.appliedIndex < page.head;
    }
  }

  #isVerifyDue(): boolean {
    return this.#options.clock.monotonicMs() - this.#verifiedMs >= LOG_VERIFY_MS;
  }

  /** How the log's row differs from the one that was applied there; null where it does not, or has been truncated. */
  async #faultAt(index: number, rowId: string): Promise<string | null> {
    const { store, clock } = this.#options;
    if (index > 0) {
      const found = await store.rowIdAt(index);
      if (found !== null && found !== rowId) return `is now ${found}, ${rowId} was applied`;
      if (found === null && (await store.readLog(index, 1)).first <= index) return "is missing";
    }
    this.#verifiedMs = clock.monotonicMs();
    return null;
  }

  #takeRow(row: LogRow): void {
    const { store, state } = this.#options;
    // Applied by an offer while the page was on its way.
    if (row.index < state.appliedIndex) return;
    if (row.index === state.appliedIndex) {
      if (row.rowId !== state.appliedRowId)
        this.#stop(lostHistory(store, row.index, `is now ${row.rowId}, ${state.appliedRowId} was applied`));
      return;
    }
    if (row.index !== state.appliedIndex + 1) {
      this.#stop(
        new PicoError("corrupt", `the command log in ${store.description} has no row ${state.appliedIndex + 1}`, { where: "command log" }),
      );
    } else {
      this.#applyRow(row);
    }
  }

  #applyRow(row: LogRow): void {
    const { state, onApplied } = this.#options;
    try {
      const batch = decodeBatch(row.payload, `command log row ${row.index}`);
      const { index, atMs, rowId, proposer } = row;
      const commandRow = { index, atMs, rowId, proposer, batch: row.batch, ...batch };
      const isRepeated = isRepeat(state, commandRow);
      const outcomes = apply(state, commandRow);
      if (!isRepeated) onApplied(commandRow, outcomes);
    } catch (error) {
      this.#stop(error);
    }
  }

  #stop(error: unknown): void {
    if (this.#isStopped) return;
    this.#isStopped = true;
    this.#options.onFatal(error);
  }
}

function lostHistory(store: SqlStore, index: number, fault: string): PicoError {
  return new PicoError(
    "corrupt",
    `the command log in ${store.description} is not the one that was applied: row ${index} ${fault}. ` +
      "The database was set back or replaced; nothing was deleted. Bring back its newest state, then start again",
    { where: "command log", index },
  );
}

function truncatedTooFar(applied: number, page: LogPage): PicoError {
  return new PicoError(
    "fenced_node",
    `this node fell behind the command log: row ${applied + 1} is truncated, the first kept one is ${page.first}; it must start again from the snapshot`,
    { applied, first: page.first },
  );
}
