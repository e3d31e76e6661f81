/**
 * Which live data objects hold a stream, for operators: a search that no request of a stream waits for. It
 * asks the newest objects first, some at a time, and ends when it has told enough.
 */
import { PicoError } from "../lib/errors.ts";
import { HOLDING_LOOKS_MAX, OBJECT_READS_MAX } from "../lib/limits.ts";
import { mapConcurrently } from "../lib/map-concurrently.ts";
import type { ObjectEntry } from "../metadata/entries.ts";
import type { Metadata } from "../metadata/metadata.ts";
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

/** Searches of the view's objects, where they are replaced meanwhile. */
const SEARCHES_MAX = 3;

/** The store does not have an object that the view named. */
class Missing extends Error {
  constructor(readonly object: ObjectEntry) {
    super();
  }
}

/**
 * Throws `corrupt` for damage, and for an object that is missing though the newest view holds it to be live;
 * `unavailable` where objects are replaced faster than they can be asked; and what store and database throw.
 */
export async function findStreamHoldings(
  metadata: Pick<Metadata, "view" | "catchUp">,
  readers: DataObjectReaders,
  streamId: number,
  holdingsMax: number,
): Promise<StreamHoldings> {
  for (let search = 1; search <= SEARCHES_MAX; search++) {
    try {
      return await searchOnce(metadata.view, readers, streamId, holdingsMax);
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      // It may have been replaced since the view was asked: then what replaced it has to be asked too.
      await metadata.catchUp();
      if (metadata.view.object(error.object.objectId)?.state !== "live") continue;
      const what = readers.describe(error.object);
      throw new PicoError("corrupt", `stream ${streamId}: ${what} is missing from the store`, { where: what });
    }
  }
  const message = `stream ${streamId}: its data objects are replaced faster than they can be asked; try again`;
  throw new PicoError("unavailable", message, { retryAfterSeconds: 1 });
}

async function searchOnce(view: View, readers: DataObjectReaders, streamId: number, holdingsMax: number): Promise<StreamHoldings> {
  const covering = view.liveObjectsOf(streamId);
  const holdings: StreamHolding[] = [];
  let tail: TailState | null = null;
  let looks = 0;
  const isEnough = () => looks >= HOLDING_LOOKS_MAX || (tail !== null && holdings.length >= holdingsMax);
  while (looks < covering.length && !isEnough()) {
    const group = covering.slice(looks, looks + OBJECT_READS_MAX);
    looks += group.length;
    const found = await mapConcurrently(group, OBJECT_READS_MAX, (object) => look(readers, object, streamId));
    for (const held of found) {
      if (held === null) continue;
      if (held.tail !== null && held.tail.changeNumber > (tail?.changeNumber ?? -1)) tail = held.tail;
      if (holdings.length < holdingsMax) holdings.push(held.holding);
    }
  }
  return { tail, holdings, coveringCount: covering.length, isComplete: looks >= covering.length };
}

/** What one object holds of the stream; null for nothing. */
async function look(readers: DataObjectReaders, object: ObjectEntry, streamId: number): Promise<Found | null> {
  const tail = await readers.readTailState(object, streamId);
  const batches = tail === "object_missing" ? tail : await readers.readBatches(object, streamId, 0, 1);
  if (tail === "object_missing" || batches === "object_missing") throw new Missing(object);
  const [first] = batches;
  if (tail === null && first === undefined) return null;
  return { tail, holding: { object, startOffset: first?.baseOffset ?? null, endOffset: tail?.nextOffset ?? null } };
}
