/**
 * The object store in a bucket that speaks S3: AWS, MinIO and other vendors.
 *
 * Two ways over the same credentials, each where it is the better one (figures in `docs/benchmarks.md`): objects are
 * created and read by requests that we sign and send by `fetch`, lists and deletes go through the vendor's SDK.
 *
 * Invariants:
 * - The only write is a conditional create. A store that ignores the condition is found out by the probe at the start
 *   of a node (`object-store-probe.ts`).
 * - Every call has a deadline, and so has each attempt of it; tries are bounded (`s3-calls.ts`).
 * - Answers are believed as far as they prove themselves: lengths, parts that must be there, keys that are named.
 */
import type { Clock } from "../lib/clock.ts";
import type { Logger } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import { checkDeleteKeys, checkListArguments, checkObjectKey } from "./object-key.ts";
import type { DeleteOutcome, ListPage, ObjectStore } from "./object-store.ts";
import { type BucketFacts, readBucketFacts } from "./s3-bucket-facts.ts";
import { S3Calls } from "./s3-calls.ts";
import { S3Connection } from "./s3-connection.ts";
import { createObject } from "./s3-create.ts";
import { S3Deleter } from "./s3-delete.ts";
import { S3Error, storeError } from "./s3-failure.ts";
import { S3Lister } from "./s3-list.ts";
import type { S3Place } from "./s3-place.ts";
import { readRange, readSize, readWhole } from "./s3-read.ts";

export interface S3ObjectStoreOptions {
  readonly place: S3Place;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export class S3ObjectStore implements ObjectStore {
  readonly description: string;
  readonly #random: Random;
  readonly #connection: S3Connection;
  readonly #calls: S3Calls;
  readonly #lister: S3Lister;
  readonly #deleter: S3Deleter;

  private constructor({ place, clock, random, log }: S3ObjectStoreOptions, connection: S3Connection) {
    this.#random = random;
    this.#connection = connection;
    this.#calls = new S3Calls({ ...place, endpoint: connection.origin }, clock, random);
    this.#lister = new S3Lister(this.#calls, connection, log);
    this.#deleter = new S3Deleter(this.#calls, connection, log);
    this.description = connection.description;
  }

  /** Asks the store nothing. Throws `storage_failed` where environment or profile cannot be used. */
  static async open(options: S3ObjectStoreOptions): Promise<S3ObjectStore> {
    const { place, clock } = options;
    try {
      return new S3ObjectStore(options, await S3Connection.open(place, clock));
    } catch (error) {
      if (!(error instanceof S3Error)) throw error;
      throw storeError({ operation: "open", place, key: null, isInDoubt: false, error });
    }
  }

  async create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    this.#check("create", key);
    return createObject({ calls: this.#calls, connection: this.#connection, random: this.#random }, key, this.#storeKey(key), bytes);
  }

  async read(key: string, range?: { readonly start: number; readonly end: number }): Promise<Uint8Array | null> {
    this.#check("read", key);
    const channel = { calls: this.#calls, connection: this.#connection };
    if (range === undefined) return readWhole(channel, key, this.#storeKey(key), null);
    const start = Math.max(0, range.start);
    if (range.end > start) return readRange(channel, key, this.#storeKey(key), { start, end: range.end });
    return (await readSize(channel, key, this.#storeKey(key))) === null ? null : new Uint8Array(0);
  }

  async size(key: string): Promise<number | null> {
    this.#check("size", key);
    return readSize({ calls: this.#calls, connection: this.#connection }, key, this.#storeKey(key));
  }

  async list(prefix: string, options: { readonly after: string | null; readonly limit: number }): Promise<ListPage> {
    this.#calls.checkOpen("list");
    checkListArguments(prefix, options.limit);
    return this.#lister.list(prefix, options.after, options.limit);
  }

  async delete(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    this.#calls.checkOpen("delete");
    checkDeleteKeys(keys);
    return keys.length === 0 ? [] : this.#deleter.delete(keys);
  }

  /** What the bucket's own settings will do to objects below `prefix`. Throws `storage_failed` as reads do. */
  bucketFacts(prefix: string): Promise<BucketFacts> {
    return readBucketFacts({ calls: this.#calls, connection: this.#connection }, this.#storeKey(prefix));
  }

  /** How far the store's clock is ahead of ours, in ms; null where it does not tell. */
  async clockSkewMs(): Promise<number | null> {
    return this.#calls.run({ operation: "ask the time", key: null, isWrite: false, bytes: 0 }, (signal) =>
      this.#connection.readSkewMs(signal),
    );
  }

  async close(): Promise<void> {
    this.#calls.close();
    this.#connection.close();
  }

  #check(operation: string, key: string): void {
    this.#calls.checkOpen(operation);
    checkObjectKey(operation, key);
  }

  #storeKey(key: string): string {
    return `${this.#connection.place.prefix}${key}`;
  }
}
