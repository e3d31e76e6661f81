/**
 * Lists, as the contract wants them, from stores of every kind:
 *
 * - A page that says that it is the last is believed only after one more question behind its last key: there are
 *   stores that cut lists and do not say so (FAULTS W9).
 * - Where keys come in no order (directory buckets, some vendors) every page is the walk of the whole prefix, of which
 *   the least keys are kept.
 * - An answer without the parts that every list has is an error, not an empty list (FAULTS S4).
 */
import { ListObjectsV2Command, type ListObjectsV2CommandOutput } from "@aws-sdk/client-s3";
import type { PicoError } from "../lib/errors.ts";
import { OBJECT_LIST_LIMIT_MAX, S3_LIST_PAGES_MAX } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import { isObjectKey } from "./object-key.ts";
import type { ListedObject, ListPage } from "./object-store.ts";
import type { S3Calls } from "./s3-calls.ts";
import type { S3Connection } from "./s3-connection.ts";
import { badAnswer, refusalOf, storeError } from "./s3-failure.ts";

/** Least keys of a page that is asked for: in one of a single key no order would show. */
const PAGE_KEYS_MIN = 32;

interface RawPage {
  /** As they came, with all keys of the store that begin with the prefix. */
  readonly objects: readonly ListedObject[];
  /** Where to go on; null where the store says that this is the end. */
  readonly token: string | null;
}

interface Question {
  readonly prefix: string;
  readonly after: string | null;
  readonly token: string | null;
  readonly limit: number;
}

export class S3Lister {
  readonly #calls: S3Calls;
  readonly #connection: S3Connection;
  readonly #log: Logger;
  #isOrdered: boolean;
  #isCutTold = false;

  constructor(calls: S3Calls, connection: S3Connection, log: Logger) {
    this.#calls = calls;
    this.#connection = connection;
    this.#log = log;
    this.#isOrdered = !connection.place.isExpress;
  }

  async list(prefix: string, after: string | null, limit: number): Promise<ListPage> {
    if (this.#isOrdered) {
      const page = await this.#listOrdered(prefix, after, limit);
      if (page !== null) return page;
      this.#isOrdered = false;
      this.#log.warn("the store lists keys in no order, so that each page of a list is a walk over all of them", {
        bucket: this.#connection.place.bucket,
      });
    }
    return this.#listUnordered(prefix, after, limit);
  }

  /** Null where the keys are not in order. */
  async #listOrdered(prefix: string, after: string | null, limit: number): Promise<ListPage | null> {
    let token: string | null = null;
    for (let pages = 0; pages < S3_LIST_PAGES_MAX; pages++) {
      const question: Question = { prefix, after, token, limit: Math.max(limit, PAGE_KEYS_MIN) };
      const page: RawPage = await this.#ask(question);
      if (!isInOrder(page.objects, prefix, after)) return null;
      const last = page.objects.at(-1)?.key ?? null;
      if (last === null) {
        if (page.token === null) return { objects: [], next: null };
        // A page of what is no longer there.
        token = page.token;
        continue;
      }
      const kept = page.objects.slice(0, limit);
      const isMore = kept.length < page.objects.length || page.token !== null || (await this.#isMoreBehind(question, last));
      return { objects: kept.filter(({ key }) => isObjectKey(key)), next: isMore ? (kept.at(-1)?.key ?? null) : null };
    }
    throw this.#endless(prefix, "the store has more and more pages without a key");
  }

  async #isMoreBehind(question: Question, last: string): Promise<boolean> {
    const { objects } = await this.#ask({ prefix: question.prefix, after: last, token: null, limit: 1 });
    const isMore = objects.some(({ key }) => key > last);
    if (isMore && !this.#isCutTold) await this.#tellCut(question, last);
    return isMore;
  }

  /** A key behind the end may have come since; a page that still ends there, and says that it is the last, was cut. */
  async #tellCut(question: Question, last: string): Promise<void> {
    const { objects, token } = await this.#ask(question);
    if (token !== null || objects.at(-1)?.key !== last) return;
    this.#isCutTold = true;
    this.#log.warn("the store cuts lists without saying so; they are asked for until nothing more comes", {
      bucket: this.#connection.place.bucket,
    });
  }

  async #listUnordered(prefix: string, after: string | null, limit: number): Promise<ListPage> {
    // Directory buckets take whole folders only.
    const folder = prefix.slice(0, prefix.lastIndexOf("/") + 1);
    let least: ListedObject[] = [];
    let token: string | null = null;
    for (let pages = 0; pages < S3_LIST_PAGES_MAX; pages++) {
      const page: RawPage = await this.#ask({ prefix: folder, after: null, token, limit: OBJECT_LIST_LIMIT_MAX });
      const wanted = page.objects.filter(({ key }) => key.startsWith(prefix) && (after === null || key > after) && isObjectKey(key));
      least = [...least, ...wanted].sort(byKey).slice(0, limit + 1);
      if (page.token === null)
        return { objects: least.slice(0, limit), next: least.length > limit ? (least[limit - 1]?.key ?? null) : null };
      if (page.token === token) throw this.#endless(prefix, "the store answers the same page again and again");
      token = page.token;
    }
    throw this.#endless(prefix, `the list has more than ${S3_LIST_PAGES_MAX} pages`);
  }

  #endless(prefix: string, why: string): PicoError {
    const error = refusalOf(200, "EndlessList", why);
    return storeError({ operation: "list", place: this.#connection.place, key: prefix, isInDoubt: false, error });
  }

  #ask({ prefix, after, token, limit }: Question): Promise<RawPage> {
    const { place } = this.#connection;
    const command = {
      Bucket: place.bucket,
      Prefix: `${place.prefix}${prefix}`,
      MaxKeys: limit,
      ...(token === null ? {} : { ContinuationToken: token }),
      ...(after === null || token !== null ? {} : { StartAfter: `${place.prefix}${after}` }),
    };
    return this.#calls.run({ operation: "list", key: prefix, isWrite: false, bytes: 0 }, async (abortSignal) => {
      const output = await this.#connection.control((client) => client.send(new ListObjectsV2Command(command), { abortSignal }));
      return readPage(output, place.prefix);
    });
  }
}

function readPage(output: ListObjectsV2CommandOutput, storePrefix: string): RawPage {
  const { Contents: contents = [], IsTruncated: isTruncated, KeyCount: count, NextContinuationToken: token } = output;
  if (typeof isTruncated !== "boolean") throw badAnswer(200, "what the store answered is no list");
  if (count !== undefined && count !== contents.length) throw badAnswer(200, `the list has ${contents.length} keys, and says ${count}`);
  if (isTruncated && (token === undefined || token === "")) throw badAnswer(200, "the list goes on, and does not say where");
  const objects = contents.map(({ Key: key, Size: size, LastModified: modified }): ListedObject => {
    if (key === undefined || size === undefined || modified === undefined || !key.startsWith(storePrefix)) {
      throw badAnswer(200, "the list has an object without key, size or time, or one that was not asked for");
    }
    return { key: key.slice(storePrefix.length), sizeBytes: size, modifiedMs: modified.getTime() };
  });
  return { objects, token: isTruncated ? (token ?? null) : null };
}

function isInOrder(objects: readonly ListedObject[], prefix: string, after: string | null): boolean {
  let before = after;
  for (const { key } of objects) {
    if (!key.startsWith(prefix) || (before !== null && key <= before)) return false;
    before = key;
  }
  return true;
}

function byKey(left: ListedObject, right: ListedObject): number {
  return left.key < right.key ? -1 : left.key > right.key ? 1 : 0;
}
