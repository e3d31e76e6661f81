/**
 * The SQL seam: the rows that nodes share. Implementations: SQLite (in a worker thread) and Postgres;
 * one contract suite in `test/sql` runs against each, and the simulator runs the SQLite statements on
 * an in-memory database under its own clock.
 *
 * Contract:
 * - Log indexes are dense from 1 and totally ordered: once `readLog` returned a row, no row with a lower
 *   index will ever appear.
 * - Every method is one transaction. It resolves only when its effect would survive a power cut.
 * - `database_failed` (or `storage_full`) means that nothing happened; `unknown_outcome` that it may
 *   have. `insertBatch` is safe to repeat, so its unknown outcome is settled by repeating it.
 * - All times are the database's own clock, ms since 1970.
 */
import type { RegistrationName } from "../lib/registration.ts";

/** One row of the command log: a batch of commands of one registration. */
export interface LogRow {
  /** Place in the log, from 1. */
  readonly index: number;
  /** The database's time in the insert. May fall between rows if that clock steps. */
  readonly atMs: number;
  /** 32 hex digits chosen by the proposer; tells two batches with the same number apart. */
  readonly rowId: string;
  readonly proposer: RegistrationName;
  /** Number of the batch in its registration, from 0 (the registration's own `register`). */
  readonly batch: number;
  /** Encoded commands (`metadata/command-format.ts`). */
  readonly payload: Uint8Array;
}

export interface BatchInsert {
  readonly rowId: string;
  readonly proposer: RegistrationName;
  readonly batch: number;
  readonly payload: Uint8Array;
  /**
   * Registrations that this batch fences: in the same transaction their heartbeat rows are marked,
   * so that their next heartbeat is refused. `counter` is the one last seen, 0 where no row was seen (an
   * absent row counts as 0); null marks whatever it is (only for a proposer that holds a lock which
   * proves the death).
   */
  readonly fences: readonly { readonly victim: RegistrationName; readonly counter: number | null }[];
}

export type BatchOutcome =
  | { readonly inserted: true; readonly index: number; readonly atMs: number }
  /** (proposer, batch) is taken: by this very row (`rowId` equal: an earlier try), or by another process. */
  | { readonly inserted: false; readonly reason: "exists"; readonly index: number; readonly rowId: string }
  /** A victim's heartbeat moved, so the fence is not due; nothing was inserted. */
  | { readonly inserted: false; readonly reason: "victim_alive"; readonly victim: RegistrationName };

export interface LogPage {
  readonly rows: readonly LogRow[];
  /** Lowest index still in the log, or head + 1 where it is empty. A reader below `first` - 1 must reload a snapshot. */
  readonly first: number;
  /** Highest index ever inserted; 0 for an empty log. */
  readonly head: number;
}

/** Rows of the state, as stored: key and value are opaque here. Keys are unique. */
export interface SnapshotRow {
  readonly key: string;
  readonly value: Uint8Array;
}

export interface SnapshotHead {
  /** Applied index that the rows stand for; 0 before the first snapshot. */
  readonly index: number;
  /** Row id of the log row at `index`; empty for 0. */
  readonly rowId: string;
  readonly rowCount: number;
  /** Order-free sum of the rows' checksums, modulo 2^64 (`metadata/state-hash.ts`). */
  readonly rowSum: bigint;
}

export interface SnapshotWrite {
  /** Index of the snapshot that this one follows: compare-and-set. */
  readonly expectedIndex: number;
  readonly head: SnapshotHead;
  readonly upserts: readonly SnapshotRow[];
  readonly deletes: readonly string[];
}

export interface ImportPart {
  /** Keys not imported before. */
  readonly snapshotRows: readonly SnapshotRow[];
  /** With the last of the snapshot's rows; else null. */
  readonly snapshotHead: SnapshotHead | null;
  /** Ascending; the first of all may have any index. */
  readonly logRows: readonly LogRow[];
}

export interface Lease {
  /** Whether the caller holds it until `expiresAtMs` (database time). */
  readonly held: boolean;
  readonly holder: RegistrationName | null;
  /** Rises with each change of holder. */
  readonly term: number;
  readonly expiresAtMs: number;
}

export interface Heartbeat {
  readonly registration: RegistrationName;
  /** Rises with each heartbeat of the registration, from 1; 0 in the row of one that was fenced before its first. */
  readonly counter: number;
  readonly appliedIndex: number;
  /** Whom this node is recovering, if anybody. */
  readonly recovering: RegistrationName | null;
  /** Opaque figures for operators and the balancer, JSON, at most 4 KiB. */
  readonly load: string;
  /** A fence marked the row: its owner's next heartbeat is refused. */
  readonly isMarked: boolean;
}

export interface SqlStore {
  /** For messages, without secrets: `sqlite:data/meta.db`. */
  readonly description: string;

  /**
   * Creates or upgrades the schema. A fresh database gets `clusterIdentity` (32 hex digits); an older
   * one keeps its own, which is returned. Throws `incompatible` for a schema newer than this program's.
   */
  open(clusterIdentity: string): Promise<{ readonly clusterIdentity: string }>;

  /** The database's clock. */
  nowMs(): Promise<number>;

  /** Writes what is there already: tells a database that takes writes from one that only answers reads. */
  checkWrites(): Promise<void>;

  insertBatch(insert: BatchInsert): Promise<BatchOutcome>;

  /** Rows above `after`, ascending, at most `limit` rows and about 8 MiB. */
  readLog(after: number, limit: number): Promise<LogPage>;

  /** The row id at `index`, or null where the row is truncated or does not exist. */
  rowIdAt(index: number): Promise<string | null>;

  /** Head and every row, from one consistent read, in pages so that memory stays bounded: each is awaited before the next. */
  readSnapshot(onRows: (rows: readonly SnapshotRow[], head: SnapshotHead) => void | Promise<void>): Promise<SnapshotHead>;

  /** False where another snapshot came first (compare-and-set); nothing is written then. */
  writeSnapshot(write: SnapshotWrite): Promise<boolean>;

  /**
   * Puts a part of a restored log and snapshot into a database that no node has used: rows keep their indexes,
   * times and row ids, and follow what was imported before without a gap. Throws `corrupt` otherwise. Not atomic
   * over several parts: a database that is half imported is to be thrown away.
   */
  importPart(part: ImportPart): Promise<void>;

  /** Removes log rows with an index up to `upTo` that are older than `olderThanMs` (age). Returns how many. */
  truncateLog(upTo: number, olderThanMs: number): Promise<number>;

  /**
   * Takes or renews the lease if it is free, expired, already the caller's, or held by a registration that is over: its row
   * is marked by a fence, or a later life of its node has one. A caller that is over gets none.
   */
  acquireLease(holder: RegistrationName, ttlMs: number): Promise<Lease>;
  /** Gives the lease up if the caller holds it. */
  releaseLease(holder: RegistrationName): Promise<void>;

  /**
   * Stores the heartbeat. `refused`: the row is marked by a fence or was removed, or a later life of the
   * node has a row; nothing was stored.
   */
  heartbeat(beat: Omit<Heartbeat, "isMarked">): Promise<{ readonly refused: boolean; readonly nowMs: number }>;
  readHeartbeats(): Promise<readonly Heartbeat[]>;
  /** Removes the heartbeat row of a registration that has ended. A late heartbeat of it is refused for ever. */
  removeHeartbeat(registration: RegistrationName): Promise<void>;

  /**
   * Calls `wake` when rows may have been added by others; a hint that may be missing or spurious.
   * Returns a function that ends it.
   */
  onAppended(wake: () => void): () => void;

  close(): Promise<void>;
}
