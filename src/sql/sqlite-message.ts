/**
 * What the SQLite store and its worker thread say to each other. Values are structured clones.
 */
import type { ErrorCode, Facts } from "../lib/errors.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { BatchInsert, Heartbeat, ImportPart, SnapshotWrite } from "./sql-store.ts";

/** One call. All but the first are refused before `start` succeeded. */
export type SqliteCall =
  /** Opens the file, or a database in memory. Answer: a warning, or null. */
  | { readonly method: "start"; readonly path: string }
  | { readonly method: "open"; readonly clusterIdentity: string }
  | { readonly method: "nowMs" }
  | { readonly method: "checkWrites" }
  | { readonly method: "insertBatch"; readonly insert: BatchInsert }
  | { readonly method: "readLog"; readonly after: number; readonly limit: number }
  | { readonly method: "rowIdAt"; readonly index: number }
  /** Begins a read of the snapshot. Answer: `{cursor, head}`. */
  | { readonly method: "snapshotBegin" }
  /** Answer: the next rows, none at the end. */
  | { readonly method: "snapshotNext"; readonly cursor: number }
  | { readonly method: "snapshotEnd"; readonly cursor: number }
  | { readonly method: "writeSnapshot"; readonly write: SnapshotWrite }
  | { readonly method: "importPart"; readonly part: ImportPart }
  | { readonly method: "truncateLog"; readonly upTo: number; readonly olderThanMs: number }
  | { readonly method: "acquireLease"; readonly holder: RegistrationName; readonly ttlMs: number }
  | { readonly method: "releaseLease"; readonly holder: RegistrationName }
  | { readonly method: "heartbeat"; readonly beat: Omit<Heartbeat, "isMarked"> }
  | { readonly method: "readHeartbeats" }
  | { readonly method: "removeHeartbeat"; readonly registration: RegistrationName }
  /** Closes the database; nothing may follow. */
  | { readonly method: "stop" };

export interface SqliteRequest {
  /** Given by the store, rising; the answer repeats it. */
  readonly id: number;
  readonly call: SqliteCall;
}

export type SqliteAnswer =
  | { readonly id: number; readonly isError: false; readonly value: unknown }
  /** `code` is null for a broken invariant. */
  | { readonly id: number; readonly isError: true; readonly code: ErrorCode | null; readonly message: string; readonly facts: Facts };

/** Calls that change nothing: without an answer they simply failed. */
export function isReadOnly(call: SqliteCall): boolean {
  switch (call.method) {
    case "start":
    case "nowMs":
    case "readLog":
    case "rowIdAt":
    case "snapshotBegin":
    case "snapshotNext":
    case "snapshotEnd":
    case "readHeartbeats":
    case "stop":
      return true;
    case "open":
    case "checkWrites":
    case "insertBatch":
    case "writeSnapshot":
    case "importPart":
    case "truncateLog":
    case "acquireLease":
    case "releaseLease":
    case "heartbeat":
    case "removeHeartbeat":
      return false;
  }
}
