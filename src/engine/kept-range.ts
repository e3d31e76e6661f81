/**
 * Which records of a stream are still needed: by itself, from its trim point on, and by the forks that read
 * down into it, through any number of forks between. Compaction drops the others.
 *
 * Invariant: what is not needed now never will be. Trim points never fall, a new fork takes its source's as
 * its own, and a deleted stream gets no forks; so an answer that has grown old only keeps too much.
 */
import { OFFSET_MAX } from "../lib/limits.ts";
import type { StreamEntry } from "../metadata/entries.ts";
import type { View } from "../metadata/view.ts";
import type { OffsetRange } from "./data-object-writer.ts";

/** Of most streams: shared, where many are kept in mind. */
const ALL: OffsetRange = { start: 0, end: OFFSET_MAX };

/** An empty range: only the tail state is needed. Null: the view does not know the stream. */
export function keptRangeOf(view: Pick<View, "streamById" | "forksOf">, streamId: number): OffsetRange | null {
  const stream = view.streamById(streamId);
  if (stream === null) return null;
  if (stream.startOffset === 0 && !stream.isDeleted) return ALL;
  let start = stream.isDeleted ? OFFSET_MAX : stream.startOffset;
  let end = stream.isDeleted ? 0 : OFFSET_MAX;
  /** Readers, and the offset below which they read the stream. */
  const open: { readonly reader: StreamEntry; readonly end: number }[] = [{ reader: stream, end: OFFSET_MAX }];
  for (let at = open.pop(); at !== undefined && at.reader.forkCount > 0; at = open.pop()) pushForks(at);
  return start < end ? { start, end } : { start: 0, end: 0 };

  function pushForks(source: { readonly reader: StreamEntry; readonly end: number }): void {
    for (const fork of view.forksOf(source.reader.streamId)) {
      const below = Math.min(source.end, fork.fork?.offset ?? 0);
      if (below === 0) continue;
      if (!fork.isDeleted && fork.startOffset < below) {
        start = Math.min(start, fork.startOffset);
        end = Math.max(end, below);
      }
      if (fork.forkCount > 0) open.push({ reader: fork, end: below });
    }
  }
}
