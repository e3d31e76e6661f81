/**
 * The object store in memory: for tests, simulations and servers whose data may go with the process.
 * Everything it holds is a copy, and so is everything it gives away.
 */

import type { Clock } from "../lib/clock.ts";
import { PicoError } from "../lib/errors.ts";
import { SortedMap } from "../lib/sorted-map.ts";
import { checkDeleteKeys, checkListArguments, checkObjectKey, clipRange } from "./object-key.ts";
import type { DeleteOutcome, ListedObject, ListPage, ObjectStore } from "./object-store.ts";

interface StoredObject {
  readonly bytes: Uint8Array;
  readonly modifiedMs: number;
}

export class MemoryObjectStore implements ObjectStore {
  readonly description = "memory:";
  readonly #clock: Clock;
  readonly #objects = new SortedMap<string, StoredObject>(undefined, compareKeys);
  #isClosed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  async create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    this.#checkOpen("create");
    checkObjectKey("create", key);
    if (this.#objects.has(key)) return "exists";
    this.#objects.set(key, { bytes: Uint8Array.from(bytes), modifiedMs: this.#clock.nowMs() });
    return "created";
  }

  async read(key: string, range?: { readonly start: number; readonly end: number }): Promise<Uint8Array | null> {
    this.#checkOpen("read");
    checkObjectKey("read", key);
    const stored = this.#objects.get(key);
    if (stored === undefined) return null;
    const { start, end } = clipRange(range, stored.bytes.length);
    return stored.bytes.slice(start, end);
  }

  async size(key: string): Promise<number | null> {
    this.#checkOpen("size");
    checkObjectKey("size", key);
    return this.#objects.get(key)?.bytes.length ?? null;
  }

  async list(prefix: string, options: { readonly after: string | null; readonly limit: number }): Promise<ListPage> {
    this.#checkOpen("list");
    checkListArguments(prefix, options.limit);
    const { after, limit } = options;
    const objects: ListedObject[] = [];
    const from = after !== null && after > prefix ? after : prefix;
    for (const [key, stored] of this.#objects.entries(from)) {
      if (!key.startsWith(prefix)) break;
      if (after !== null && key <= after) continue;
      if (objects.length === limit) return { objects, next: objects.at(-1)?.key ?? null };
      objects.push({ key, sizeBytes: stored.bytes.length, modifiedMs: stored.modifiedMs });
    }
    return { objects, next: null };
  }

  async delete(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    this.#checkOpen("delete");
    checkDeleteKeys(keys);
    for (const key of keys) this.#objects.delete(key);
    return keys.map((key) => ({ key, deleted: true }));
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  #checkOpen(operation: string): void {
    if (this.#isClosed) throw new PicoError("storage_failed", `${operation} refused: the store is closed`, { operation });
  }
}

function compareKeys(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
