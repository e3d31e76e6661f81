/**
 * Which live data objects hold a stream, for operators: a search that no request of a stream waits for. It
 * asks the newest objects first, some at a time, and ends when it has told enough.
 */
import { PicoError } from "../lib/errors.ts";
import { HOLDING_LOOKS_MAX, OBJECT_READS_MAX } from "../lib/limits.ts";
import { mapConcurrently } from "../lib/map-concurrently.ts";
import type { ObjectEntry } from "../metadata/entries.ts";
import type { View } from "../metadata/view.ts";
import type { DataObjectReaders } from "./data-object-readers.ts";
import type { TailState } from "./tail-state.ts";

export interface StreamHolding {
  readonly object: ObjectEntry;
  /** First offset that it holds; null where it holds the tail state alone. */
  readonly startOffset: number | null;
  /** The stream's tail as of this object; null where the stream goes on in another object of its run. */
  readonly endOffset: number | null;
}

export interface StreamHoldings {
  /** The newest tail state in the objects asked; null where they have none. */
  readonly tail: TailState | null;
  /** Newest first. */
  readonly holdings: readonly StreamHolding[];
  /** Live objects whose range covers the stream: at least as many as hold it. */
  readonly coveringCount: number;
  /** Every one of them was asked. */
  readonly isComplete: boolean;
}

interface Found {
  readonly tail: TailState | null;
  readonly holding: StreamHolding;
}

/** Throws `corrupt` for damage, a missing object included, and what the store throws. */
export async function findStreamHoldings(
  view: View,
  readers: DataObjectReaders,
  streamId: number,
  holdingsMax: number,
): Promise<StreamHoldings> {
  const covering = view.liveObjectsOf(streamId);
  const holdings: StreamHolding[] = [];
  let tail: TailState | null = null;
  let looks = 0;
  const isEnough = () => looks >= HOLDING_LOOKS_MAX || (tail !== null && holdings.length >= holdingsMax);
  while (looks < covering.length && !isEnough()) {
    const group = covering.slice(looks, looks + OBJECT_READS_MAX);
    looks += group.length;
    const found = await mapConcurrently(group, OBJECT_READS_MAX, (object) => look(view, readers, object, streamId));
    for (const held of found) {
      if (held === null) continue;
      if (held.tail !== null && held.tail.changeNumber > (tail?.changeNumber ?? -1)) tail = held.tail;
      if (holdings.length < holdingsMax) holdings.push(held.holding);
    }
  }
  return { tail, holdings, coveringCount: covering.length, isComplete: looks >= covering.length };
}

/** What one object holds of the stream; null for nothing. */
async function look(view: View, readers: DataObjectReaders, object: ObjectEntry, streamId: number): Promise<Found | null> {
  const tail = await readers.readTailState(object, streamId);
  const batches = tail === "object_missing" ? tail : await readers.readBatches(object, streamId, 0, 1);
  if (tail === "object_missing" || batches === "object_missing") {
    // It may have been replaced since the view was asked.
    if (view.object(object.objectId)?.state !== "live") return null;
    const what = readers.describe(object);
    throw new PicoError("corrupt", `stream ${streamId}: ${what} is missing from the store`, { where: what });
  }
  const [first] = batches;
  if (tail === null && first === undefined) return null;
  return { tail, holding: { object, startOffset: first?.baseOffset ?? null, endOffset: tail?.nextOffset ?? null } };
}
