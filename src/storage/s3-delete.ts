/**
 * Deletes, with one outcome a key. Only a key of which the store says that it is deleted counts as such: answers come
 * with status 200 and errors inside, and some leave keys out (FAULTS G4). Where a store has no delete of many keys, or
 * wants it in a form that is not ours, each key goes by itself (FAULTS S5).
 */
import { DeleteObjectsCommand } from "@aws-sdk/client-s3";
import { isPicoError, type PicoError } from "../lib/errors.ts";
import { S3_DELETES_AT_ONCE } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { mapConcurrently } from "../lib/map-concurrently.ts";
import type { DeleteOutcome } from "./object-store.ts";
import type { S3Calls } from "./s3-calls.ts";
import type { S3Connection } from "./s3-connection.ts";
import { isRefusedAs, S3Error } from "./s3-failure.ts";

/** Refusals of the call as such, whatever the keys. */
const UNSUPPORTED_STATUSES: readonly (number | null)[] = [400, 405, 411, 415, 501];
/** Refusals with one of those statuses that another form of delete would not get past. */
const OTHER_CODES: readonly string[] = [
  "AuthorizationHeaderMalformed",
  "BadDigest",
  "ExpiredToken",
  "ExpiredTokenException",
  "IllegalLocationConstraintException",
  "InvalidBucketName",
  "InvalidToken",
  "RequestTimeout",
  "TokenRefreshRequired",
];

export class S3Deleter {
  readonly #calls: S3Calls;
  readonly #connection: S3Connection;
  readonly #log: Logger;
  #hasBatches = true;

  constructor(calls: S3Calls, connection: S3Connection, log: Logger) {
    this.#calls = calls;
    this.#connection = connection;
    this.#log = log;
  }

  /** At most 1000 keys, each once or more. Throws `storage_failed` or `unknown_outcome` where nothing is known of any. */
  async delete(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    const outcomes = new Map<string, DeleteOutcome>();
    const distinct = [...new Set(keys)];
    if (this.#hasBatches && distinct.length > 1)
      for (const outcome of await this.#deleteBatch(distinct)) outcomes.set(outcome.key, outcome);
    const left = distinct.filter((key) => !outcomes.has(key));
    for (const outcome of await this.#deleteSingly(left)) outcomes.set(outcome.key, outcome);
    return keys.map((key) => outcomes.get(key) ?? { key, deleted: false, code: "NoAnswer", message: "the store did not say" });
  }

  /** Outcomes of those keys that the answer names. */
  async #deleteBatch(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    const { place } = this.#connection;
    const command = { Bucket: place.bucket, Delete: { Objects: keys.map((key) => ({ Key: `${place.prefix}${key}` })), Quiet: false } };
    const call = { operation: "delete", key: keys[0] ?? null, isWrite: true, bytes: 0 };
    return this.#calls.run(call, async (abortSignal) => {
      try {
        const { Deleted: deleted = [], Errors: errors = [] } = await this.#connection.control((client) =>
          client.send(new DeleteObjectsCommand(command), { abortSignal }),
        );
        const outcomes = deleted.map(({ Key }): DeleteOutcome => ({ key: withoutPrefix(Key, place.prefix), deleted: true }));
        for (const { Key, Code = "Error", Message = "the store gave no reason" } of errors) {
          const key = withoutPrefix(Key, place.prefix);
          if (Code !== "NoSuchKey") outcomes.push({ key, deleted: false, code: Code, message: Message });
          else outcomes.push({ key, deleted: true });
        }
        return outcomes;
      } catch (error) {
        if (!isUnsupported(error)) throw error;
        this.#hasBatches = false;
        this.#log.info("the store takes no delete of many keys, each goes by itself", { bucket: place.bucket, code: error.failure.code });
        return [];
      }
    });
  }

  async #deleteSingly(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    const [only] = keys;
    if (keys.length === 1 && only !== undefined) return [await this.#deleteOne(only)];
    return mapConcurrently(keys, S3_DELETES_AT_ONCE, async (key): Promise<DeleteOutcome> => {
      try {
        return await this.#deleteOne(key);
      } catch (error) {
        if (!isPicoError(error)) throw error;
        return refusedOutcome(key, error);
      }
    });
  }

  async #deleteOne(key: string): Promise<DeleteOutcome> {
    const call = { operation: "delete", key, isWrite: true, bytes: 0 };
    try {
      await this.#calls.run(call, async (signal) => {
        try {
          await this.#connection.request({ method: "DELETE", key: `${this.#connection.place.prefix}${key}`, signal }, [200, 202, 204]);
        } catch (error) {
          if (!isRefusedAs(error, "NoSuchKey")) throw error;
        }
      });
      return { key, deleted: true };
    } catch (error) {
      // What is refused for this key alone is its outcome; anything else is an error of the call.
      if (isPicoError(error, "storage_failed") && error.facts.status === 403 && error.facts.code === "AccessDenied")
        return refusedOutcome(key, error);
      throw error;
    }
  }
}

function refusedOutcome(key: string, error: PicoError): DeleteOutcome {
  return { key, deleted: false, code: String(error.facts.code ?? error.code), message: error.message };
}

function isUnsupported(error: unknown): error is S3Error {
  if (!(error instanceof S3Error)) return false;
  const { status, code } = error.failure;
  return UNSUPPORTED_STATUSES.includes(status) && !OTHER_CODES.includes(code);
}

function withoutPrefix(key: string | undefined, prefix: string): string {
  return key?.startsWith(prefix) ? key.slice(prefix.length) : "";
}
