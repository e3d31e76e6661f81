/**
 * Checked runs of bytes from data objects, by key: blocks, index leaves, and the heads of objects. The
 * least recently used go first once the bytes are more than the cache may hold.
 *
 * Invariants:
 * - A key is fetched once at a time: whoever asks meanwhile waits for that fetch.
 * - A fetch that fails leaves nothing behind; all who waited for it get its error.
 * - What is kept owns its memory: a small block never keeps a large buffer alive.
 */
import { assert } from "../lib/assert.ts";

/** What an entry costs beside its bytes: key, array, place in the map. */
const ENTRY_OVERHEAD_BYTES = 256;

interface Fetch {
  readonly blocks: Promise<readonly Uint8Array[]>;
  /** Place of the key among the fetch's keys. */
  readonly index: number;
}

export class BlockCache {
  #bytes = 0;
  /** Least recently used first. */
  readonly #blocks = new Map<string, Uint8Array>();
  readonly #fetches = new Map<string, Fetch>();
  /** Since the start, for metrics. A wait for a fetch under way counts as a hit. */
  hitCount = 0;
  missCount = 0;
  evictionCount = 0;

  constructor(readonly bytesMax: number) {}

  /** Bytes held, with what their keeping costs. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#blocks.size;
  }

  /** Keys being fetched. */
  get fetchCount(): number {
    return this.#fetches.size;
  }

  /** The bytes; or, where they are being fetched, a promise of them; or null where `fetch` has to bring them. */
  find(key: string): Uint8Array | Promise<Uint8Array> | null {
    const block = this.#blocks.get(key);
    if (block !== undefined) {
      this.#blocks.delete(key);
      this.#blocks.set(key, block);
      this.hitCount += 1;
      return block;
    }
    const fetch = this.#fetches.get(key);
    if (fetch === undefined) return null;
    this.hitCount += 1;
    return fetch.blocks.then((blocks) => blockAt(blocks, fetch.index));
  }

  /** Whether `find` would not be null; leaves the order of use as it is. */
  has(key: string): boolean {
    return this.#blocks.has(key) || this.#fetches.has(key);
  }

  /**
   * Brings the bytes of keys that `find` does not know, in their order, by one call of `load`, which also
   * checks them. Rejects with its error.
   */
  fetch(keys: readonly string[], load: () => Promise<readonly Uint8Array[]>): Promise<readonly Uint8Array[]> {
    const blocks = Promise.resolve().then(() => this.#load(keys, load));
    for (const [index, key] of keys.entries()) {
      assert(!this.has(key), "a key is fetched once at a time");
      this.#fetches.set(key, { blocks, index });
    }
    this.missCount += keys.length;
    return blocks;
  }

  /** Keeps bytes, checked by the caller, that came along with others; a key that is known or under way stays as it is. */
  offer(key: string, bytes: Uint8Array): void {
    if (!this.has(key)) this.#keep(key, ownBytes(bytes));
  }

  async #load(keys: readonly string[], load: () => Promise<readonly Uint8Array[]>): Promise<readonly Uint8Array[]> {
    try {
      const blocks = await load();
      assert(blocks.length === keys.length, "a fetch brings bytes for each of its keys");
      const owned = blocks.map(ownBytes);
      for (const [index, key] of keys.entries()) this.#keep(key, blockAt(owned, index));
      return owned;
    } finally {
      for (const key of keys) this.#fetches.delete(key);
    }
  }

  /** A block that would push out most of the others is not kept. */
  #keep(key: string, block: Uint8Array): void {
    if (block.length + ENTRY_OVERHEAD_BYTES > this.bytesMax / 2) return;
    this.#blocks.set(key, block);
    this.#bytes += block.length + ENTRY_OVERHEAD_BYTES;
    for (const [oldestKey, oldest] of this.#blocks) {
      if (this.#bytes <= this.bytesMax) break;
      this.#blocks.delete(oldestKey);
      this.evictionCount += 1;
      this.#bytes -= oldest.length + ENTRY_OVERHEAD_BYTES;
    }
  }
}

function ownBytes(bytes: Uint8Array): Uint8Array {
  return bytes.buffer.byteLength === bytes.byteLength ? bytes : new Uint8Array(bytes);
}

function blockAt(blocks: readonly Uint8Array[], index: number): Uint8Array {
  const block = blocks[index];
  assert(block !== undefined, "a fetch brings bytes for each of its keys");
  return block;
}
