/**
 * Estimates how much of a data object nobody needs any more, from its index and the streams in it: no I/O.
 *
 * A block lies between its place and that of the next one. Where both are of one stream, its offsets tell
 * exactly; else the block counts by the streams between, each for the share of its records that is dead. So
 * it is an estimate: what follows from it is a rewrite, which looks at each record. Only `isWhollyDead` is
 * certain, and only where every stream in the object is known by its id.
 */
import type { RecordPlace } from "../metadata/command.ts";
import type { OffsetRange } from "./data-object-writer.ts";

/** Streams of an object, ascending by id. */
export interface ObjectStreams {
  readonly ids: readonly number[];
  /** Next offset by the tail state in the object; null where it has none. */
  readonly nextOffsets: readonly (number | null)[];
  /** What is still needed of each, as of `keptRangeOf`; null: the view does not know the stream. */
  readonly kept: readonly (OffsetRange | null)[];
}

export interface IndexedObject {
  readonly recordCount: number;
  /** Of all streams in it. */
  readonly streamCount: number;
  readonly last: RecordPlace;
  readonly recordBlocks: readonly (RecordPlace & { readonly length: number })[];
  /** Of the state blocks together. */
  readonly stateBytes: number;
}

export interface DeadBytes {
  readonly deadBytes: number;
  /** Of records and tail states. */
  readonly bytes: number;
  /** Every stream in the object is known by its id, and the view knows none of them. */
  readonly isWhollyDead: boolean;
}

/** `streams` holds at least those that a block begins with. */
export function estimateDeadBytes(object: IndexedObject, streams: ObjectStreams): DeadBytes {
  const { recordBlocks, stateBytes, last, recordCount, streamCount } = object;
  const { kept } = streams;
  const recordsPerStream = Math.max(1, recordCount / Math.max(1, streamCount));
  let deadBytes = 0;
  let bytes = stateBytes;
  let streamAt = 0;
  for (const [at, block] of recordBlocks.entries()) {
    bytes += block.length;
    const next = recordBlocks[at + 1] ?? { streamId: last.streamId + 1, offset: 0 };
    while ((streams.ids[streamAt] ?? Number.POSITIVE_INFINITY) < block.streamId) streamAt += 1;
    const keptOfFirst = kept[streamAt] ?? null;
    if (next.streamId === block.streamId) {
      deadBytes += block.length * deadShare(keptOfFirst, block.offset, next.offset);
      continue;
    }
    let shares = deadShare(keptOfFirst, block.offset, Math.max(block.offset + 1, endOf(streamAt, block.streamId)));
    let count = 1;
    for (let i = streamAt + 1; i < streams.ids.length; i++) {
      const streamId = streams.ids[i] ?? 0;
      if (streamId >= next.streamId) break;
      const end = endOf(i, streamId);
      shares += deadShare(kept[i] ?? null, Math.max(0, end - recordsPerStream), end);
      count += 1;
    }
    deadBytes += (block.length * shares) / count;
  }
  const unknownCount = kept.filter((range) => range === null).length;
  if (kept.length > 0) deadBytes += (stateBytes * unknownCount) / kept.length;
  return { deadBytes, bytes, isWhollyDead: kept.length === streamCount && unknownCount === streamCount };

  function endOf(at: number, streamId: number): number {
    return streams.ids[at] === streamId ? (streams.nextOffsets[at] ?? 0) : 0;
  }
}

/** Share of the offsets `[from, to)` that is not kept. */
function deadShare(kept: OffsetRange | null, from: number, to: number): number {
  if (kept === null) return 1;
  if (to <= from) return 0;
  const left = Math.max(0, Math.min(to, kept.end) - Math.max(from, kept.start));
  return 1 - left / (to - from);
}
