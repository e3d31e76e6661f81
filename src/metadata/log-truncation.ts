/**
 * Truncation of the command log below the stored snapshot. Rows that are young, or that a live node has
 * not applied, stay, so that nobody who lives has to start again; beyond a hard cap they go too. The row
 * at the snapshot's own index always stays: it proves to a loader that log and snapshot belong together.
 */
import { LOG_KEEP_MS, LOG_ROWS_MAX } from "../lib/limits.ts";
import type { SqlStore } from "../sql/sql-store.ts";
import type { LiveNodes } from "./live-nodes.ts";

export class LogTruncation {
  readonly #store: SqlStore;
  readonly #nodes: LiveNodes;

  constructor(options: { readonly store: SqlStore; readonly nodes: LiveNodes }) {
    this.#store = options.store;
    this.#nodes = options.nodes;
  }

  /** Removes what may go; returns how many rows went. Only a snapshot that is certainly stored may be named. */
  async truncate(storedIndex: number, span: { readonly first: number; readonly head: number }): Promise<number> {
    const applied = this.#nodes.appliedByAll(await this.#store.readHeartbeats());
    const upTo = storedIndex - 1;
    if (upTo < span.first) return 0;
    if (span.head - span.first >= LOG_ROWS_MAX) return this.#store.truncateLog(upTo, 0);
    return this.#store.truncateLog(Math.min(upTo, applied), LOG_KEEP_MS);
  }
}
