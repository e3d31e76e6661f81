/**
 * Checked runs of bytes from data objects, by key: blocks, index leaves, and the heads of objects. The
 * least recently used go first once the bytes are more than the cache may hold.
 *
 * Invariants:
 * - A key is fetched once at a time: whoever asks meanwhile waits for that fetch.
 * - A fetch that fails leaves nothing behind; all who waited for it get its error, or, where it was one ahead,
 *   bring the bytes themselves.
 * - What is kept owns its memory, alone or with the other blocks of its fetch, which then leave with it: a small block
 *   never keeps a large buffer alive that is not counted.
 * - Bytes that were brought ahead and that nobody has found yet, those under way included, are at most
 *   `aheadBytesMax`: so they are few against what the cache holds, and are seldom evicted before they are used.
 */
import { assert } from "../lib/assert.ts";
import { READ_AHEAD_BYTES_MAX, READ_AHEAD_CACHE_SHARE } from "../lib/limits.ts";

/** What an entry costs beside its bytes: key, array, place in the map. */
const ENTRY_OVERHEAD_BYTES = 256;
/** Blocks of one fetch that are more of the cache than this are copied apart, so that they leave one by one. */
const GROUP_SHARE_MAX = 1 / 8;

/** Blocks that share a buffer, or one alone. They leave together. */
interface Group {
  readonly keys: readonly string[];
  /** With what their keeping costs. */
  readonly bytes: number;
}

interface Entry {
  readonly block: Uint8Array;
  readonly group: Group;
}

interface Fetch {
  readonly blocks: Promise<readonly Uint8Array[]>;
  /** Place of the key among the fetch's keys. */
  readonly index: number;
  readonly isAhead: boolean;
}

/** Bytes to bring before anybody asks for them. */
export interface AheadKey {
  readonly key: string;
  readonly length: number;
}

export class BlockCache {
  #bytes = 0;
  readonly #entries = new Map<string, Entry>();
  /** Least recently used first. */
  readonly #groups = new Set<Group>();
  readonly #fetches = new Map<string, Fetch>();
  /** Brought ahead, or on the way, and not found since: what each costs. */
  readonly #ahead = new Map<string, number>();
  #aheadBytes = 0;
  /** Since the start, for metrics. A wait for a fetch under way counts as a hit. */
  hitCount = 0;
  missCount = 0;
  evictionCount = 0;

  constructor(readonly bytesMax: number) {}

  /** Of bytes brought ahead and not found yet; 0 where the cache is too small for any. */
  get aheadBytesMax(): number {
    return Math.min(READ_AHEAD_BYTES_MAX, Math.floor(this.bytesMax * READ_AHEAD_CACHE_SHARE));
  }

  /** Bytes brought ahead and not found yet, those under way included. */
  get aheadBytes(): number {
    return this.#aheadBytes;
  }

  /** Bytes held, with what their keeping costs. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#entries.size;
  }

  /** Keys being fetched. */
  get fetchCount(): number {
    return this.#fetches.size;
  }

  /**
   * The bytes; or, where they are being fetched, a promise of them; or null where `fetch` has to bring them. The
   * promise is one of null where they were fetched ahead and that failed: `find` tells anew what to do.
   */
  find(key: string): Uint8Array | Promise<Uint8Array | null> | null {
    this.#forgetAhead(key);
    const entry = this.#entries.get(key);
    if (entry !== undefined) {
      this.#groups.delete(entry.group);
      this.#groups.add(entry.group);
      this.hitCount += 1;
      return entry.block;
    }
    const fetch = this.#fetches.get(key);
    if (fetch === undefined) return null;
    this.hitCount += 1;
    const found = fetch.blocks.then((blocks) => blockAt(blocks, fetch.index));
    return fetch.isAhead ? found.catch(() => null) : found;
  }

  /** Whether `find` would not be null; leaves the order of use as it is. */
  has(key: string): boolean {
    return this.#entries.has(key) || this.#fetches.has(key);
  }

  /**
   * Brings the bytes of keys that `find` does not know, in their order, by one call of `load`, which also
   * checks them. Rejects with its error.
   */
  fetch(keys: readonly string[], load: () => Promise<readonly Uint8Array[]>): Promise<readonly Uint8Array[]> {
    return this.#begin(keys, load, false);
  }

  /**
   * Begins to bring bytes that nobody waits for: of the keys as many, from the first on, as are not known and there
   * is room for, which `load` is told; returns how many. What becomes of them shows in `find`.
   */
  fetchAhead(wanted: readonly AheadKey[], load: (count: number) => Promise<readonly Uint8Array[]>): number {
    const keys: string[] = [];
    for (const { key, length } of wanted) {
      const bytes = length + ENTRY_OVERHEAD_BYTES;
      if (this.has(key) || this.#aheadBytes + bytes > this.aheadBytesMax) break;
      keys.push(key);
      this.#ahead.set(key, bytes);
      this.#aheadBytes += bytes;
    }
    // Whoever needs the bytes brings them then, and is told what is the matter.
    if (keys.length > 0) this.#begin(keys, () => load(keys.length), true).catch(() => {});
    return keys.length;
  }

  /** Keeps bytes, checked by the caller, that came along with others; a key that is known or under way stays as it is. */
  offer(key: string, bytes: Uint8Array): void {
    if (!this.has(key)) this.#keep([key], [ownBytes(bytes)]);
  }

  #begin(keys: readonly string[], load: () => Promise<readonly Uint8Array[]>, isAhead: boolean): Promise<readonly Uint8Array[]> {
    const blocks = Promise.resolve().then(() => this.#load(keys, load));
    this.missCount += keys.length;
    for (const [index, key] of keys.entries()) {
      assert(!this.has(key), "a key is fetched once at a time");
      this.#fetches.set(key, { blocks, index, isAhead });
    }
    return blocks;
  }

  async #load(keys: readonly string[], load: () => Promise<readonly Uint8Array[]>): Promise<readonly Uint8Array[]> {
    try {
      const blocks = await load();
      assert(blocks.length === keys.length, "a fetch brings bytes for each of its keys");
      if (fillOneBuffer(blocks) && costOf(blocks) <= this.bytesMax * GROUP_SHARE_MAX) {
        this.#keep(keys, blocks);
        return blocks;
      }
      const owned = blocks.map(ownBytes);
      for (const [index, key] of keys.entries()) this.#keep([key], [blockAt(owned, index)]);
      return owned;
    } catch (error) {
      for (const key of keys) this.#forgetAhead(key);
      throw error;
    } finally {
      for (const key of keys) this.#fetches.delete(key);
    }
  }

  /** Keeps a group, unless it would push out most of the others. */
  #keep(keys: readonly string[], blocks: readonly Uint8Array[]): void {
    const group = { keys, bytes: costOf(blocks) };
    if (group.bytes > this.bytesMax / 2) return;
    for (const [index, key] of keys.entries()) this.#entries.set(key, { block: blockAt(blocks, index), group });
    this.#groups.add(group);
    this.#bytes += group.bytes;
    for (const oldest of this.#groups) {
      if (this.#bytes <= this.bytesMax) break;
      this.#evict(oldest);
    }
  }

  #evict(group: Group): void {
    this.#groups.delete(group);
    this.#bytes -= group.bytes;
    this.evictionCount += group.keys.length;
    for (const key of group.keys) {
      this.#entries.delete(key);
      this.#forgetAhead(key);
    }
  }

  /** The bytes are used, evicted, or never came. */
  #forgetAhead(key: string): void {
    const bytes = this.#ahead.get(key);
    if (bytes === undefined) return;
    this.#ahead.delete(key);
    this.#aheadBytes -= bytes;
  }
}

function costOf(blocks: readonly Uint8Array[]): number {
  return blocks.reduce((sum, { length }) => sum + length + ENTRY_OVERHEAD_BYTES, 0);
}

/** Whether the blocks are all that a buffer holds: then it lives for nothing else. */
function fillOneBuffer(blocks: readonly Uint8Array[]): boolean {
  const [first] = blocks;
  if (first === undefined || blocks.some(({ buffer }) => buffer !== first.buffer)) return false;
  return first.buffer.byteLength === blocks.reduce((sum, { length }) => sum + length, 0);
}

function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.buffer.byteLength === bytes.byteLength ? bytes : new Uint8Array(bytes);
}

function blockAt(blocks: readonly Uint8Array[], index: number): Uint8Array {
  const block = blocks[index];
  assert(block !== undefined, "a fetch brings bytes for each of its keys");
  return block;
}
