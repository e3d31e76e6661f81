/** What a restore is given, and what it tells on its way; its parts share both. */
import type { WalStore } from "../engine/wal-store.ts";
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import type { SqlStore } from "../sql/sql-store.ts";
import type { ObjectStore } from "../storage/object-store.ts";

export interface RestoreOptions {
  readonly store: ObjectStore;
  readonly wal: WalStore;
  /** A database without a byte in it; what an earlier call made is gone then. */
  readonly openDatabase: () => Promise<SqlStore>;
  readonly clusterId: string;
  readonly nodeId: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Finishes although something is missing for good. */
  readonly isForced: boolean;
  readonly onProgress: (progress: RestoreProgress) => void;
}

export interface RestoreProgress {
  readonly step: "snapshot" | "log" | "wal" | "objects" | "mirror";
  /** Rows, rows, bytes, objects, nothing. */
  readonly done: number;
}
