/** What compaction must carry on, dropped. */
import { DataObjectWriter } from "../../../src/engine/data-object-writer.ts";
import type { NodeCore } from "../../../src/node/node-core.ts";

/** Tail states of streams whose records are merged. */
export function dropTailStates(): () => void {
  const { startPart } = DataObjectWriter.prototype;
  DataObjectWriter.prototype.startPart = function (this: DataObjectWriter, streamId, _tail, kept): void {
    startPart.call(this, streamId, null, kept);
  };
  return () => {
    DataObjectWriter.prototype.startPart = startPart;
  };
}

/** The node that compacts now, for the variant below: runs come one after the other. */
let compacting: NodeCore | null = null;

export function noteCompacting(core: NodeCore): void {
  compacting = core;
}

/** Records below a stream's own trim point, whatever forks still read there. */
export function dropWhatForksNeed(): () => void {
  const { startPart } = DataObjectWriter.prototype;
  DataObjectWriter.prototype.startPart = function (this: DataObjectWriter, streamId, tail, kept): void {
    const stream = compacting?.metadata.view.streamById(streamId) ?? null;
    const start = stream === null ? 0 : stream.isDeleted ? kept.end : stream.startOffset;
    startPart.call(this, streamId, tail, { start: Math.max(start, kept.start), end: kept.end });
  };
  return () => {
    DataObjectWriter.prototype.startPart = startPart;
  };
}
