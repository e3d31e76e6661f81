/**
 * Which rows changed at which index, so that a snapshot writes only what changed since the one before
 * it, whichever node wrote that.
 *
 * Invariant: keys stand in ascending order of the index that touched them last.
 */
export class DirtyRows {
  readonly #touchedAt = new Map<string, number>();

  get size(): number {
    return this.#touchedAt.size;
  }

  /** `index` never falls from call to call. */
  mark(key: string, index: number): void {
    // Deleting first moves the key to the end of the map's order.
    this.#touchedAt.delete(key);
    this.#touchedAt.set(key, index);
  }

  /** Forgets rows last touched at or below `index`: a stored snapshot holds them. */
  forgetUpTo(index: number): void {
    for (const [key, touchedAt] of this.#touchedAt) {
      if (touchedAt > index) return;
      this.#touchedAt.delete(key);
    }
  }

  keys(): readonly string[] {
    return [...this.#touchedAt.keys()];
  }
}
