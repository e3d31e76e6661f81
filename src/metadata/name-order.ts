/**
 * Stream names in ascending byte order of their UTF-8, for prefix lists. JavaScript compares UTF-16 code
 * units, which differs from that where a surrogate pair (U+10000 and up) meets U+E000 to U+FFFF.
 */
import { SortedMap } from "../lib/sorted-map.ts";

/** Negative, zero or positive, as the UTF-8 bytes of `left` sort before, with or behind those of `right`. */
export function compareUtf8(left: string, right: string): number {
  const shared = Math.min(left.length, right.length);
  for (let i = 0; i < shared; i++) {
    const l = left.charCodeAt(i);
    const r = right.charCodeAt(i);
    if (l !== r) return rankOf(l) - rankOf(r);
  }
  return left.length - right.length;
}

/** Moves surrogates above U+E000 to U+FFFF, where their characters are in UTF-8. */
function rankOf(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit >= 0xe000 ? unit - 0x800 : unit + 0x2000;
}

/** Names and their stream ids. The tree costs about 24 bytes a name beside the name itself. */
export class NameOrder {
  readonly #tree = new SortedMap<string, number>(undefined, compareUtf8, 64);

  get size(): number {
    return this.#tree.size;
  }

  get(name: string): number | null {
    return this.#tree.get(name) ?? null;
  }

  add(name: string, streamId: number): void {
    this.#tree.set(name, streamId);
  }

  remove(name: string): void {
    this.#tree.delete(name);
  }

  /** Ids of the names that begin with `prefix` and are greater than `after`, ascending by name. */
  *idsFrom(prefix: string, after: string | null): Generator<number> {
    const start = after !== null && compareUtf8(after, prefix) >= 0 ? after : prefix;
    for (const [name, streamId] of this.#tree.entries(start)) {
      if (!name.startsWith(prefix)) return;
      if (name !== after) yield streamId;
    }
  }
}
