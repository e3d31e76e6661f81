/** Takes the tail state of the object that was committed first, without a look at the change number. */
import type { DataObjectReaders } from "../../../src/engine/data-object-readers.ts";
import { StreamReader } from "../../../src/engine/stream-reader.ts";
import type { TailState } from "../../../src/engine/tail-state.ts";
import type { Metadata } from "../../../src/metadata/metadata.ts";

/** What a reader has, private to the compiler only. */
interface ReaderParts {
  readonly metadata: Metadata;
  readonly objects: DataObjectReaders;
}

export function chooseTailStateByCommitOrder(): () => void {
  const { readTailState } = StreamReader.prototype;
  StreamReader.prototype.readTailState = async function (this: StreamReader, streamId: number): Promise<TailState | null> {
    const { metadata, objects } = this as unknown as ReaderParts;
    for (const object of metadata.view.liveObjectsOf(streamId).toReversed()) {
      const state = await objects.readTailState(object, streamId);
      if (state !== null && state !== "object_missing") return state;
    }
    return null;
  };
  return () => {
    StreamReader.prototype.readTailState = readTailState;
  };
}
