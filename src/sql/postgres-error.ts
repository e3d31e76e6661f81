/**
 * What an error of a Postgres connection means. What the server refused did not happen. What was cut off may have, where
 * it could have committed: the server commits before it answers.
 */
import { InvariantError } from "../lib/assert.ts";
import { messageOf, PicoError } from "../lib/errors.ts";

export interface PostgresOperation {
  /** The store's method, for messages. */
  readonly name: string;
  /** What is lost on the way may have taken effect. */
  readonly mayCommit: boolean;
}

/** Errors by which the server ends a session, whatever it was doing. */
const ENDING_SEVERITIES: readonly unknown[] = ["FATAL", "PANIC"];

/** SQLSTATE classes and codes (Appendix A of the Postgres manual). */
const DISK_FULL = "53100";
const DAMAGED = /^XX00[12]$/;
const ADVICE: readonly { readonly state: RegExp; readonly advice: string }[] = [
  { state: /^28/, advice: "check user and password of --meta-url, and the server's pg_hba.conf" },
  { state: /^3D000/, advice: "create the database, or name another one with --meta-url" },
  { state: /^42501/, advice: "give the user the right to create the schema pico in the database, or make it the owner of that schema" },
  { state: /^53300/, advice: "raise max_connections of the server, or lower max in --meta-url" },
  { state: /^25006/, advice: "it takes no writes: it is a standby, or set to read only; name the primary" },
  { state: /^55P03/, advice: "another session holds a lock on the rows" },
  { state: /^57014/, advice: "the server is too slow, or another session holds a lock" },
  {
    state: /^08P01/,
    advice: "if a connection pooler such as pgbouncer is between, connect to the server itself: sessions need their own time-outs",
  },
];
/** Nothing helps against these but another setting. */
const REFUSED_STATES = /^(28|3D000|42501|08P01)/;

/** The server answered with this error: `state` is its SQLSTATE. Null for what else went wrong. */
export function serverErrorOf(error: unknown): { readonly state: string; readonly endsSession: boolean } | null {
  if (!(error instanceof Error) || error.name !== "PostgresError") return null;
  const { code, severity } = error as { readonly code?: unknown; readonly severity?: unknown };
  return { state: typeof code === "string" ? code : "", endsSession: ENDING_SEVERITIES.includes(severity) };
}

/** Whether a session can go on behind this error. */
export function endsSession(error: unknown): boolean {
  if (error instanceof PicoError) return false;
  return serverErrorOf(error)?.endsSession ?? true;
}

/** The error of an operation: `database_failed`, `storage_full`, `corrupt`, or `unknown_outcome`. */
export function postgresError(operation: PostgresOperation, error: unknown, place: string): Error {
  if (error instanceof PicoError || error instanceof InvariantError) return error;
  const server = serverErrorOf(error);
  const facts = { operation: operation.name, sqlState: server?.state ?? null };
  if (server === null || server.endsSession) {
    if (operation.mayCommit) return unknownOutcome(operation, messageOf(error), facts, error);
  } else if (DAMAGED.test(server.state)) {
    return new PicoError(
      "corrupt",
      `${place} is damaged: ${messageOf(error)}; restore it from a backup`,
      { ...facts, where: place },
      error,
    );
  }
  const isFull = server?.state === DISK_FULL;
  const advice = isFull ? "free space on its disk" : ADVICE.find(({ state }) => state.test(server?.state ?? ""))?.advice;
  return new PicoError(
    isFull ? "storage_full" : "database_failed",
    `${operation.name} failed in ${place}: ${messageOf(error)}${advice === undefined ? "" : `; ${advice}`}`,
    facts,
    error,
  );
}

/** No answer came, for `reason`. */
export function noAnswer(operation: PostgresOperation, reason: string, place: string): PicoError {
  const facts = { operation: operation.name, sqlState: null };
  if (operation.mayCommit) return unknownOutcome(operation, `${reason} in ${place}`, facts);
  return new PicoError("database_failed", `${operation.name} failed in ${place}: ${reason}`, facts);
}

/** Whether waiting does not help: the server knows no such user, password or database, or lets it do too little. */
export function isRefusedForGood(error: unknown): boolean {
  if (!(error instanceof PicoError)) return false;
  const { sqlState } = error.facts;
  return typeof sqlState === "string" && REFUSED_STATES.test(sqlState);
}

function unknownOutcome(operation: PostgresOperation, reason: string, facts: PicoError["facts"], cause?: unknown): PicoError {
  return new PicoError("unknown_outcome", `${operation.name} may have taken effect: ${reason}`, facts, cause);
}
