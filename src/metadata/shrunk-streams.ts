/**
 * The streams of which a log row leaves fewer records needed: those that it deletes, expires or trims, and the
 * sources above them whose records they alone still needed. Whoever looks for dead bytes hears of them here,
 * since a fork that is gone does not say any more whose it was.
 *
 * Derived from the row, never stored, and no part of the state hash. A change costs the length of the chain of
 * sources up to the first one that needs its records itself.
 */
import type { StreamEntry } from "./entries.ts";

export class ShrunkStreams {
  readonly #ids = new Set<number>();

  /** Of the row, each once. */
  get ids(): ReadonlySet<number> {
    return this.#ids;
  }

  /** A row begins. */
  clear(): void {
    this.#ids.clear();
  }

  /** Takes in that `before` becomes `after`, null: is removed. Its sources are still known. */
  note(before: StreamEntry, after: StreamEntry | null, streamById: (streamId: number) => StreamEntry | null): void {
    const isDropped = after === null || (after.isDeleted && !before.isDeleted);
    if (!isDropped && after.startOffset === before.startOffset) return;
    this.#ids.add(before.streamId);
    for (let reader = before; reader.fork !== null; ) {
      const source = streamById(reader.fork.sourceId);
      // A source that is read from as low itself needs all of it, and so of what is above it.
      if (source === null || (!source.isDeleted && source.startOffset <= before.startOffset)) return;
      this.#ids.add(source.streamId);
      reader = source;
    }
  }
}
