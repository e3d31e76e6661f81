/**
 * The rule for object keys: `/`-separated segments of `[A-Za-z0-9._-]`, at most 512 bytes in all, no
 * segment `.` or `..`. All of it is ASCII, so that a comparison of strings is a comparison of bytes.
 */
import { PicoError } from "../lib/errors.ts";
import { OBJECT_DELETE_KEYS_MAX, OBJECT_KEY_BYTES_MAX, OBJECT_LIST_LIMIT_MAX } from "../lib/limits.ts";

const SEGMENT = /^[A-Za-z0-9._-]+$/;
const PREFIX = /^[A-Za-z0-9._/-]*$/;

/** Whether `text` may stand between two slashes of a key. */
export function isKeySegment(text: string): boolean {
  return text !== "." && text !== ".." && SEGMENT.test(text);
}

export function isObjectKey(key: string): boolean {
  return key.length <= OBJECT_KEY_BYTES_MAX && key.split("/").every(isKeySegment);
}

/** Throws `storage_failed` unless `key` obeys the rule; nothing has happened then. */
export function checkObjectKey(operation: string, key: string): void {
  if (isObjectKey(key)) return;
  throw new PicoError(
    "storage_failed",
    `${operation} refused: ${JSON.stringify(key)} is not an object key (segments of A-Z a-z 0-9 . _ - with / between, at most ${OBJECT_KEY_BYTES_MAX} bytes)`,
    { operation, key },
  );
}

/** Throws `storage_failed` unless the arguments of a list are within the contract. */
export function checkListArguments(prefix: string, limit: number): void {
  const isValid =
    PREFIX.test(prefix) && prefix.length <= OBJECT_KEY_BYTES_MAX && Number.isInteger(limit) && limit >= 1 && limit <= OBJECT_LIST_LIMIT_MAX;
  if (isValid) return;
  throw new PicoError(
    "storage_failed",
    `list refused: prefix ${JSON.stringify(prefix)} or limit ${limit} is out of bounds (1 to ${OBJECT_LIST_LIMIT_MAX} keys a page)`,
    { operation: "list", key: prefix },
  );
}

/** Throws `storage_failed` unless every key obeys the rule and there are not too many of them. */
export function checkDeleteKeys(keys: readonly string[]): void {
  if (keys.length > OBJECT_DELETE_KEYS_MAX) {
    throw new PicoError("storage_failed", `delete refused: ${keys.length} keys, the limit is ${OBJECT_DELETE_KEYS_MAX}`, {
      operation: "delete",
      key: null,
    });
  }
  for (const key of keys) checkObjectKey("delete", key);
}

/** The part of `[start, end)` that lies inside an object of `sizeBytes`; empty where none does. */
export function clipRange(
  range: { readonly start: number; readonly end: number } | undefined,
  sizeBytes: number,
): { readonly start: number; readonly end: number } {
  if (range === undefined) return { start: 0, end: sizeBytes };
  const start = Math.min(Math.max(0, range.start), sizeBytes);
  return { start, end: Math.min(Math.max(start, range.end), sizeBytes) };
}
