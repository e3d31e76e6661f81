/** How many data objects there are, by state and level, kept up with each change of one. */
import type { ObjectEntry } from "./entries.ts";

export interface LevelTally {
  readonly level: number;
  readonly objects: number;
  readonly bytes: number;
}

export interface ObjectFigures {
  /** Live ones, the lowest level first. */
  readonly levels: readonly LevelTally[];
  readonly prepared: number;
  /** Destroyed ones that the metadata still holds. */
  readonly destroyed: number;
  /** Index of the command that destroyed the first of them; null without any. */
  readonly oldestDestroyedIndex: number | null;
}

export class ObjectTally {
  readonly #levels = new Map<number, LevelTally>();
  #prepared = 0;
  /** Object ids to the index that destroyed them, which rises from one to the next. */
  #destroyed = new Map<number, number>();

  /** Takes in that `before` became `after`; null: the object is new, or removed. */
  change(before: ObjectEntry | null, after: ObjectEntry | null): void {
    this.#count(before, -1);
    this.#count(after, 1);
  }

  /** Entries were loaded in any order. */
  loaded(): void {
    this.#destroyed = new Map([...this.#destroyed].sort(([, left], [, right]) => left - right));
  }

  /** The oldest destruction first. */
  destroyedIds(): Iterable<number> {
    return this.#destroyed.keys();
  }

  figures(): ObjectFigures {
    const [oldest] = this.#destroyed.values();
    return {
      levels: [...this.#levels.values()].sort((left, right) => left.level - right.level),
      prepared: this.#prepared,
      destroyed: this.#destroyed.size,
      oldestDestroyedIndex: oldest ?? null,
    };
  }

  #count(entry: ObjectEntry | null, by: 1 | -1): void {
    if (entry === null) return;
    if (entry.state === "prepared") this.#prepared += by;
    else if (entry.state === "live") this.#countLevel(entry, by);
    else if (by < 0) this.#destroyed.delete(entry.objectId);
    else this.#destroyed.set(entry.objectId, entry.destroyedIndex ?? 0);
  }

  #countLevel({ summary }: ObjectEntry, by: 1 | -1): void {
    if (summary === null) return;
    const { level, sizeBytes } = summary;
    const before = this.#levels.get(level);
    const objects = (before?.objects ?? 0) + by;
    if (objects === 0) this.#levels.delete(level);
    else this.#levels.set(level, { level, objects, bytes: (before?.bytes ?? 0) + by * sizeBytes });
  }
}
