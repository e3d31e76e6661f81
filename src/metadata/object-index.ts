/**
 * The live data objects by the range of places that each covers, to answer "which objects may hold this
 * stream at or above that offset".
 *
 * One list a level, ascending by first place, with the highest last place of everything up to each
 * position. A question finds by bisection the objects that begin at or before the stream, and walks down
 * from there until nothing below reaches it. In level 0 objects are wide and most are answers; in deeper
 * levels a run's objects are narrow and disjoint, so the walk is about as long as there are runs.
 */
import { assert } from "../lib/assert.ts";
import type { RecordPlace } from "./command.ts";
import type { ObjectEntry } from "./entries.ts";

interface Level {
  readonly entries: ObjectEntry[];
  /** `reach[i]`: the highest last place of `entries[0..i]`; right only below `stale`. */
  readonly reach: RecordPlace[];
  stale: number;
}

export class ObjectIndex {
  readonly #levels = new Map<number, Level>();

  add(entry: ObjectEntry): void {
    const { level: number, first } = summaryOf(entry);
    let level = this.#levels.get(number);
    if (level === undefined) {
      level = { entries: [], reach: [], stale: 0 };
      this.#levels.set(number, level);
    }
    const at = countUpTo(level.entries, first);
    level.entries.splice(at, 0, entry);
    level.stale = Math.min(level.stale, at);
  }

  remove(entry: ObjectEntry): void {
    const { level: number, first } = summaryOf(entry);
    const level = this.#levels.get(number);
    assert(level !== undefined, "the level of a live object is indexed");
    let at = countUpTo(level.entries, first) - 1;
    while (at >= 0 && level.entries[at]?.objectId !== entry.objectId) at -= 1;
    assert(at >= 0, "a live object is indexed");
    level.entries.splice(at, 1);
    level.stale = Math.min(level.stale, at);
  }

  /** Lowest level first; in a level the newest commit first. */
  covering(streamId: number, fromOffset: number): ObjectEntry[] {
    const from = { streamId, offset: fromOffset };
    const end = { streamId, offset: Number.MAX_SAFE_INTEGER };
    const found: ObjectEntry[] = [];
    for (const level of this.#levels.values()) {
      refresh(level);
      for (let i = countUpTo(level.entries, end) - 1; i >= 0; i--) {
        const reach = level.reach[i];
        if (reach === undefined || comparePlaces(reach, from) < 0) break;
        const entry = level.entries[i];
        if (entry !== undefined && comparePlaces(summaryOf(entry).last, from) >= 0) found.push(entry);
      }
    }
    return found.sort(byAge);
  }

  *all(): Generator<ObjectEntry> {
    for (const level of this.#levels.values()) yield* level.entries;
  }
}

export function comparePlaces(left: RecordPlace, right: RecordPlace): number {
  return left.streamId - right.streamId || left.offset - right.offset;
}

function byAge(left: ObjectEntry, right: ObjectEntry): number {
  const level = summaryOf(left).level - summaryOf(right).level;
  return level || (right.liveIndex ?? 0) - (left.liveIndex ?? 0) || right.objectId - left.objectId;
}

function summaryOf(entry: ObjectEntry) {
  assert(entry.summary !== null, "a live object has a summary");
  return entry.summary;
}

/** How many entries begin at or before `place`. */
function countUpTo(entries: readonly ObjectEntry[], place: RecordPlace): number {
  let low = 0;
  let high = entries.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    const entry = entries[middle];
    if (entry !== undefined && comparePlaces(summaryOf(entry).first, place) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function refresh(level: Level): void {
  let highest = level.stale > 0 ? level.reach[level.stale - 1] : undefined;
  level.reach.length = level.entries.length;
  for (let i = level.stale; i < level.entries.length; i++) {
    const entry = level.entries[i];
    if (entry === undefined) continue;
    const { last } = summaryOf(entry);
    if (highest === undefined || comparePlaces(last, highest) > 0) highest = last;
    level.reach[i] = highest;
  }
  level.stale = level.entries.length;
}
