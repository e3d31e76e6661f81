/** A map of at most so many entries: the one that was set longest ago makes room. */
export class RecentMap<K, V> {
  readonly #entries = new Map<K, V>();

  /** `sizeMax`: at least 1. */
  constructor(readonly sizeMax: number) {}

  get size(): number {
    return this.#entries.size;
  }

  get(key: K): V | undefined {
    return this.#entries.get(key);
  }

  /** Makes the entry the youngest, also where the key is known. */
  set(key: K, value: V): void {
    this.#entries.delete(key);
    this.#entries.set(key, value);
    if (this.#entries.size <= this.sizeMax) return;
    for (const oldest of this.#entries.keys()) {
      this.#entries.delete(oldest);
      return;
    }
  }

  /** False where there was none. */
  delete(key: K): boolean {
    return this.#entries.delete(key);
  }

  /** Youngest last. */
  values(): IterableIterator<V> {
    return this.#entries.values();
  }
}
