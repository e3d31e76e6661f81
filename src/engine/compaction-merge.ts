/**
 * Merges data objects into a run, stream by stream in the order of ids, and drops what nobody needs any more:
 * streams that the view does not know, records outside of what a stream and its forks need.
 *
 * The view must have applied what made the inputs live: then an id that it does not know is that of a
 * deleted stream, since nothing is committed before the create of its stream is decided.
 *
 * Invariants:
 * - Tail states are carried on, also of streams without a record left; of several the one with the highest
 *   change number (FAULTS E1, P2).
 * - Offsets of a stream in different inputs are disjoint. Where they overlap nothing is chosen: the merge
 *   fails and names the inputs.
 */
import { InvariantError } from "../lib/assert.ts";
import { messageOf } from "../lib/errors.ts";
import type { View } from "../metadata/view.ts";
import type { DataObjectWriter, OffsetRange } from "./data-object-writer.ts";
import { keptRangeOf } from "./kept-range.ts";
import type { ObjectScan } from "./object-scanner.ts";
import type { PacedWork } from "./paced-work.ts";
import type { TailState } from "./tail-state.ts";

export interface MergeParts {
  readonly scans: readonly ObjectScan[];
  readonly view: Pick<View, "streamById" | "forksOf">;
  readonly writer: DataObjectWriter;
  readonly pace: PacedWork;
  /** Called often; what it throws ends the merge. */
  readonly check: () => void;
  /** Takes the finished objects out of the writer. */
  readonly drain: () => Promise<void>;
}

/** Inputs that are whole by themselves contradict each other. */
export class InputsDisagree extends Error {
  constructor(
    readonly objectIds: readonly number[],
    fact: string,
  ) {
    super(`data objects ${objectIds.join(", ")} do not fit together: ${fact}`);
  }
}

/** What a stream costs beside its records, for the pace. */
const STREAM_BYTES = 64;

export async function mergeObjects(parts: MergeParts): Promise<void> {
  const { scans, view, writer, pace, check, drain } = parts;
  for (let streamId = lowestStream(scans); streamId !== null; streamId = lowestStream(scans)) {
    const kept = keptRangeOf(view, streamId);
    if (kept === null) await skipStream(scans, streamId);
    else await mergeStream(parts, streamId, kept);
    const pause = pace.step(STREAM_BYTES);
    if (pause === null) continue;
    await pause;
    check();
  }
  writer.finish();
  await drain();
}

function lowestStream(scans: readonly ObjectScan[]): number | null {
  let lowest: number | null = null;
  for (const { records, states } of scans) {
    if (records.streamId !== null && (lowest === null || records.streamId < lowest)) lowest = records.streamId;
    if (states.streamId !== null && (lowest === null || states.streamId < lowest)) lowest = states.streamId;
  }
  return lowest;
}

async function skipStream(scans: readonly ObjectScan[], streamId: number): Promise<void> {
  for (const { records, states } of scans) {
    if (records.streamId === streamId) await records.skipStream(streamId);
    if (states.streamId === streamId) await states.skip();
  }
}

async function mergeStream({ scans, writer, pace, check, drain }: MergeParts, streamId: number, kept: OffsetRange): Promise<void> {
  const sources = scans.filter(({ records }) => records.streamId === streamId);
  const tail = await newestTail(scans, streamId);
  for (const { records } of sources) await records.skipBelow(streamId, kept.start);
  const guard = <Result>(step: () => Result): Result => fitted(step, sources, streamId);
  guard(() => writer.startPart(streamId, tail, kept));
  let last: { readonly source: ObjectScan; readonly endOffset: number } | null = null;
  for (;;) {
    const source = await lowestOffset(sources, streamId);
    if (source === null) break;
    const batch = await source.records.batch();
    if (last !== null && batch.baseOffset < last.endOffset) {
      const fact = `stream ${streamId} has offset ${batch.baseOffset} in both`;
      throw new InputsDisagree([last.source.entry.objectId, source.entry.objectId], fact);
    }
    if (batch.baseOffset >= kept.end) break;
    guard(() => writer.add(batch));
    last = { source, endOffset: batch.endOffset };
    await source.records.next();
    if (writer.hasFinished) await drain();
    const pause = pace.step(batch.byteLength);
    if (pause === null) continue;
    await pause;
    check();
  }
  for (const { records } of sources) await records.skipStream(streamId);
  guard(() => writer.finishStream());
  if (writer.hasFinished) await drain();
}

async function newestTail(scans: readonly ObjectScan[], streamId: number): Promise<TailState | null> {
  let newest: TailState | null = null;
  for (const { states } of scans) {
    if (states.streamId !== streamId) continue;
    const state = await states.take();
    if (newest === null || state.changeNumber > newest.changeNumber) newest = state;
  }
  return newest;
}

/** The source whose records of the stream come first; null where none has more of it. */
async function lowestOffset(sources: readonly ObjectScan[], streamId: number): Promise<ObjectScan | null> {
  let lowest: ObjectScan | null = null;
  let lowestAt = 0;
  for (const source of sources) {
    if (source.records.streamId !== streamId) continue;
    const offset = await source.records.offset();
    if (lowest !== null && offset >= lowestAt) continue;
    lowest = source;
    lowestAt = offset;
  }
  return lowest;
}

/** What the writer takes for a fault of this program is one of the inputs here: none of their bytes is ours to vouch for. */
function fitted<Result>(step: () => Result, sources: readonly ObjectScan[], streamId: number): Result {
  try {
    return step();
  } catch (error) {
    if (!(error instanceof InvariantError)) throw error;
    throw new InputsDisagree(
      sources.map(({ entry }) => entry.objectId),
      `stream ${streamId}: ${messageOf(error)}`,
    );
  }
}
