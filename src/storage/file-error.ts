/**
 * What the file system refused, as the rest of the server understands it: `storage_full` where space or
 * quota ran out, `storage_failed` for everything else, with operation, path and errno as facts.
 */
import { messageOf, PicoError } from "../lib/errors.ts";

/** The errno name of a failed file call (`ENOENT`), or null where the error is of another kind. */
export function errnoOf(error: unknown): string | null {
  if (!(error instanceof Error) || !("code" in error)) return null;
  return typeof error.code === "string" ? error.code : null;
}

/** Whether the path names nothing: missing, or below something that is no folder. */
export function isAbsence(error: unknown): boolean {
  const errno = errnoOf(error);
  return errno === "ENOENT" || errno === "ENOTDIR";
}

/** The error of a call that certainly did not take effect. A `PicoError` is passed on as it is. */
export function fileError(operation: string, path: string, key: string | null, error: unknown): PicoError {
  if (error instanceof PicoError) return error;
  const errno = errnoOf(error);
  const isFull = errno === "ENOSPC" || errno === "EDQUOT";
  return new PicoError(
    isFull ? "storage_full" : "storage_failed",
    `${operation} failed at ${path}: ${messageOf(error)}${isFull ? "; free space or raise the quota" : rightsAdvice(errno)}`,
    { operation, path, key, errno },
    error,
  );
}

/** Runs calls of `node:fs` and gives their errors the codes of the server. */
export async function inFiles<T>(operation: string, path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw fileError(operation, path, null, error);
  }
}

function rightsAdvice(errno: string | null): string {
  return errno === "EACCES" || errno === "EROFS" ? "; give the node's user the right to write there, or name another place" : "";
}

/** The error of a call that may have taken effect. */
export function unknownFileOutcome(operation: string, path: string, key: string | null, error: unknown): PicoError {
  return new PicoError(
    "unknown_outcome",
    `${operation} at ${path} may have taken effect: ${messageOf(error)}`,
    { operation, path, key, errno: errnoOf(error) },
    error,
  );
}
