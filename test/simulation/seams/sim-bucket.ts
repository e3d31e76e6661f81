/**
 * The simulated bucket: what is stored, whoever asks. `SimObjectStore` is the way of one process to it.
 *
 * A checker can watch it for what no caller may do, whatever it means to: create a key that was deleted
 * with other bytes, or delete what is still needed.
 */

import { checksum64 } from "../../../src/lib/checksum.ts";
import { PicoError } from "../../../src/lib/errors.ts";
import { checkDeleteKeys, checkListArguments, checkObjectKey, clipRange } from "../../../src/storage/object-key.ts";
import type { DeleteOutcome, ListPage } from "../../../src/storage/object-store.ts";
import { WALL_ORIGIN_MS } from "../world/sim-clock.ts";
import type { World } from "../world/world.ts";

interface StoredObject {
  readonly bytes: Uint8Array;
  readonly modifiedMs: number;
}

export class SimBucket {
  readonly #objects = new Map<string, StoredObject>();
  /** Checksums of every key ever created. */
  readonly #created = new Map<string, bigint>();
  #sortedKeys: readonly string[] | null = null;
  /** Refuses creates for lack of space while true. */
  isFull = false;
  /** Called when a key came into the bucket. */
  onCreate: (key: string, bytes: Uint8Array) => void = () => {};
  /** Refuses creates below this prefix; null: none. */
  refusedPrefix: string | null = null;
  /** Called before a key leaves the bucket; fails the run where it must not. */
  onDelete: (key: string, bytes: Uint8Array) => void = () => {};

  /** Called when a key that was deleted is created again with other bytes. */
  onReuse: (key: string, bytes: Uint8Array) => void = () => {};

  constructor(private readonly world: World) {}

  keys(): readonly string[] {
    this.#sortedKeys ??= [...this.#objects.keys()].sort();
    return this.#sortedKeys;
  }

  /** The stored bytes, for checkers: not a copy. */
  peek(key: string): Uint8Array | null {
    return this.#objects.get(key)?.bytes ?? null;
  }

  isRefused(key: string): boolean {
    return this.refusedPrefix !== null && key.startsWith(this.refusedPrefix);
  }

  create(key: string, bytes: Uint8Array): "created" | "exists" {
    checkObjectKey("create", key);
    if (this.isFull) {
      this.world.trace.count("fault store full");
      throw new PicoError("storage_full", `store: no space for ${key}`);
    }
    if (this.isRefused(key)) {
      throw new PicoError("storage_failed", `store: ${key} is refused`);
    }
    if (this.#objects.has(key)) return "exists";
    const checksum = checksum64(bytes);
    const before = this.#created.get(key);
    if (before !== undefined && before !== checksum) this.onReuse(key, bytes);
    // A request that was on its way while its caller gave it up, and the key was cleaned.
    if (before !== undefined) this.world.trace.count(`fault store ${key.split("/")[1]} created late, behind its delete`);
    this.#created.set(key, checksum);
    this.#objects.set(key, { bytes: bytes.slice(), modifiedMs: Math.floor(WALL_ORIGIN_MS + this.world.nowMs) });
    this.#sortedKeys = null;
    this.onCreate(key, bytes);
    return "created";
  }

  read(key: string, range: { readonly start: number; readonly end: number } | undefined): Uint8Array | null {
    checkObjectKey("read", key);
    const object = this.#objects.get(key);
    if (object === undefined) return null;
    const { start, end } = clipRange(range, object.bytes.length);
    return object.bytes.slice(start, end);
  }

  size(key: string): number | null {
    checkObjectKey("size", key);
    return this.#objects.get(key)?.bytes.length ?? null;
  }

  list(prefix: string, after: string | null, limit: number): ListPage {
    checkListArguments(prefix, limit);
    const matching = this.keys().filter((key) => key.startsWith(prefix) && (after === null || key > after));
    const keys = matching.slice(0, limit);
    const objects = keys.map((key) => {
      const object = this.#objects.get(key);
      return { key, sizeBytes: object?.bytes.length ?? 0, modifiedMs: object?.modifiedMs ?? 0 };
    });
    return { objects, next: matching.length > limit ? (keys[keys.length - 1] ?? null) : null };
  }

  /** Takes everything under a prefix away behind everybody's back. */
  wipe(prefix: string): void {
    for (const key of this.keys()) if (key.startsWith(prefix)) this.#objects.delete(key);
    // What a dead process has still under way may arrive after the wipe.
    for (const key of [...this.#created.keys()]) if (key.startsWith(prefix)) this.#created.delete(key);
    this.#sortedKeys = null;
  }

  /** `isRefused` decides for each key whether the store keeps it. */
  delete(keys: readonly string[], isRefused: (key: string) => boolean): readonly DeleteOutcome[] {
    checkDeleteKeys(keys);
    return keys.map((key): DeleteOutcome => {
      if (isRefused(key)) {
        this.world.trace.count("fault store delete refused");
        return { key, deleted: false, code: "SlowDown", message: "reduce your request rate" };
      }
      const object = this.#objects.get(key);
      if (object !== undefined) {
        this.onDelete(key, object.bytes);
        this.#objects.delete(key);
        this.#sortedKeys = null;
      }
      return { key, deleted: true };
    });
  }
}
