/**
 * Stream names in ascending byte order of their UTF-8, for prefix lists. JavaScript compares UTF-16 code
 * units, which differs from that only where a surrogate pair (U+10000 and up) meets U+E000 to U+FFFF. So
 * names are kept under a key in which those two ranges of units have changed places, and the engine's own
 * comparison, many times faster than one written here, gives the order. The key of nearly every name is
 * the name itself.
 */
import { assert } from "../lib/assert.ts";
import { SortedMap } from "../lib/sorted-map.ts";

const MOVED_UNITS = /[\ud800-\uffff]/;

/** A string that sorts among its like, by code units, as the UTF-8 of `name` does by bytes. */
export function sortKeyOf(name: string): string {
  if (!MOVED_UNITS.test(name)) return name;
  const units = Array.from({ length: name.length }, (_, i) => moveUnit(name.charCodeAt(i)));
  return String.fromCharCode(...units);
}

/** Surrogates go above U+E000 to U+FFFF, where the characters that they make are in UTF-8. */
function moveUnit(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000;
}

function compareKeys(left: string, right: string): number {
  if (left < right) return -1;
  return left === right ? 0 : 1;
}

/**
 * Names and their stream ids. A lookup, which every request makes, goes through a hash map; the tree holds
 * the order alone.
 */
export class NameOrder {
  /** By sort key. */
  readonly #ids = new Map<string, number>();
  readonly #keys = new SortedMap<string, undefined>(undefined, compareKeys, 64);

  get(name: string): number | null {
    return this.#ids.get(sortKeyOf(name)) ?? null;
  }

  add(name: string, streamId: number): void {
    const key = sortKeyOf(name);
    this.#ids.set(key, streamId);
    this.#keys.set(key, undefined);
  }

  remove(name: string): void {
    const key = sortKeyOf(name);
    this.#ids.delete(key);
    this.#keys.delete(key);
  }

  /** Ids of the names that begin with `prefix` and are greater than `after`, ascending by name. */
  *idsFrom(prefix: string, after: string | null): Generator<number> {
    const prefixKey = sortKeyOf(prefix);
    const afterKey = after === null ? null : sortKeyOf(after);
    const start = afterKey !== null && afterKey > prefixKey ? afterKey : prefixKey;
    for (const key of this.#keys.keys(start)) {
      if (!key.startsWith(prefixKey)) return;
      if (key === afterKey) continue;
      const streamId = this.#ids.get(key);
      assert(streamId !== undefined, "a name in the order has an id");
      yield streamId;
    }
  }
}
