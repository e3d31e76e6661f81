/**
 * The thread that owns a node's SQLite connection, so that its syncs and its waits for other processes
 * never stop the event loop. Runs one call at a time, in the order in which they were sent.
 *
 * It is an entry of its own in a compiled executable; `sqlite-store.ts` says how it is found.
 */
import type { Database } from "bun:sqlite";
import { InvariantError } from "../lib/assert.ts";
import { messageOf, PicoError } from "../lib/errors.ts";
import type { SnapshotHead, SnapshotRow } from "./sql-store.ts";
import { openMemoryDatabase, openSqliteFile, openSqliteReader, SQLITE_MEMORY_PATH } from "./sqlite-database.ts";
import type { SqliteAnswer, SqliteCall, SqliteRequest } from "./sqlite-message.ts";
import { SqliteSnapshotCursor } from "./sqlite-snapshot.ts";
import { SqliteStatements } from "./sqlite-statements.ts";

declare const self: Worker;

/** Snapshot reads open at once; beyond, the oldest is one whose reader is gone. */
const SNAPSHOT_READS_MAX = 4;

interface OpenSnapshot {
  readonly next: () => readonly SnapshotRow[];
  readonly end: () => void;
}

/** What `start` made. */
interface Session {
  readonly path: string;
  readonly database: Database;
  readonly statements: SqliteStatements;
}

let session: Session | null = null;
const snapshots = new Map<number, OpenSnapshot>();
let lastCursor = 0;

self.onmessage = (event: MessageEvent<SqliteRequest>) => {
  self.postMessage(answer(event.data));
};

function answer(request: SqliteRequest): SqliteAnswer {
  try {
    return { id: request.id, isError: false, value: run(request.call) };
  } catch (error) {
    const isInvariant = error instanceof InvariantError;
    const code = error instanceof PicoError ? error.code : isInvariant ? null : "internal";
    return { id: request.id, isError: true, code, message: messageOf(error), facts: error instanceof PicoError ? error.facts : {} };
  }
}

function run(call: SqliteCall): unknown {
  if (call.method === "start") return start(call.path);
  if (session === null) throw new PicoError("database_failed", `${call.method} refused: the database is not open`);
  const { statements } = session;
  switch (call.method) {
    case "open":
      return statements.open(call.clusterIdentity);
    case "nowMs":
      return statements.nowMs();
    case "checkWrites":
      return statements.checkWrites();
    case "insertBatch":
      return statements.insertBatch(call.insert);
    case "readLog":
      return statements.readLog(call.after, call.limit);
    case "rowIdAt":
      return statements.rowIdAt(call.index);
    case "snapshotBegin":
      return beginSnapshot(session);
    case "snapshotNext":
      return openSnapshot(call.cursor).next();
    case "snapshotEnd":
      return endSnapshot(call.cursor);
    case "writeSnapshot":
      return statements.writeSnapshot(call.write);
    case "importPart":
      return statements.importPart(call.part);
    case "truncateLog":
      return statements.truncateLog(call.upTo, call.olderThanMs);
    case "acquireLease":
      return statements.acquireLease(call.holder, call.ttlMs);
    case "releaseLease":
      return statements.releaseLease(call.holder);
    case "heartbeat":
      return statements.heartbeat(call.beat);
    case "readHeartbeats":
      return statements.readHeartbeats();
    case "removeHeartbeat":
      return statements.removeHeartbeat(call.registration);
    case "stop":
      return stop(session);
  }
}

function start(path: string): string | null {
  const { database, warning } = path === SQLITE_MEMORY_PATH ? { database: openMemoryDatabase(), warning: null } : openSqliteFile(path);
  session = { path, database, statements: new SqliteStatements(database, () => Date.now()) };
  return warning;
}

function stop(open: Session): void {
  for (const cursor of [...snapshots.keys()]) endSnapshot(cursor);
  session = null;
  open.database.close();
}

function beginSnapshot(open: Session): { readonly cursor: number; readonly head: SnapshotHead } {
  for (const cursor of [...snapshots.keys()].slice(0, Math.max(0, snapshots.size - SNAPSHOT_READS_MAX + 1))) endSnapshot(cursor);
  const { head, snapshot } = open.path === SQLITE_MEMORY_PATH ? copySnapshot(open.database) : readSnapshotBeside(open.path);
  lastCursor += 1;
  snapshots.set(lastCursor, snapshot);
  return { cursor: lastCursor, head };
}

/** Reads through a connection of its own, so that other calls go on between the pages. */
function readSnapshotBeside(path: string): { readonly head: SnapshotHead; readonly snapshot: OpenSnapshot } {
  const reader = openSqliteReader(path);
  try {
    const cursor = new SqliteSnapshotCursor(reader);
    const end = () => {
      cursor.close();
      reader.close();
    };
    return { head: cursor.head, snapshot: { next: () => cursor.next(), end } };
  } catch (error) {
    reader.close();
    throw error;
  }
}

/** A database in memory has one connection only; its rows are in memory as it is. */
function copySnapshot(database: Database): { readonly head: SnapshotHead; readonly snapshot: OpenSnapshot } {
  const cursor = new SqliteSnapshotCursor(database);
  try {
    const pages: (readonly SnapshotRow[])[] = [];
    for (let rows = cursor.next(); rows.length > 0; rows = cursor.next()) pages.push(rows);
    return { head: cursor.head, snapshot: { next: () => pages.shift() ?? [], end: () => undefined } };
  } finally {
    cursor.close();
  }
}

function openSnapshot(cursor: number): OpenSnapshot {
  const snapshot = snapshots.get(cursor);
  if (snapshot === undefined) throw new PicoError("database_failed", `the snapshot read ${cursor} is not open`);
  return snapshot;
}

function endSnapshot(cursor: number): void {
  const snapshot = snapshots.get(cursor);
  snapshots.delete(cursor);
  snapshot?.end();
}
