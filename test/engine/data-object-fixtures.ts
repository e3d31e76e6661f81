/** Data objects for tests: built from plain descriptions, stored where a test can damage and count. */

import { BlockCache } from "../../src/engine/block-cache.ts";
import { DataObjectReaders, type ReadableObject } from "../../src/engine/data-object-readers.ts";
import { DataObjectWriter, type DataObjectWriterOptions, type SealedDataObject } from "../../src/engine/data-object-writer.ts";
import type { RecordBatchView } from "../../src/engine/record-batch-view.ts";
import type { TailState } from "../../src/engine/tail-state.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import type { ObjectStore } from "../../src/storage/object-store.ts";
import { batchOf, plainRecord } from "./record-fixtures.ts";

export const CLUSTER_ID = "cluster0";

/** What a stream brings into the objects. */
export interface StreamInput {
  readonly streamId: number;
  readonly tail: TailState;
  readonly batches: readonly RecordBatchView[];
  readonly fromOffset?: number;
}

/** A stream of `count` records, each in a batch of its own, whose bodies name stream and offset (FAULTS R4). */
export function namedStream(streamId: number, firstOffset: number, count: number, bodyBytes = 0): StreamInput {
  const batches = Array.from({ length: count }, (_, i) =>
    batchOf(firstOffset + i, 1000 + firstOffset + i, [plainRecord(bodyName(streamId, firstOffset + i).padEnd(bodyBytes, "."))]),
  );
  const tail = { ...emptyTailState(firstOffset + count), changeNumber: firstOffset + count, lastTimestampMs: 1000 + firstOffset + count };
  return { streamId, tail, batches };
}

export function bodyName(streamId: number, offset: number): string {
  return `${streamId}/${offset};`;
}

/** Object ids count up from `firstObjectId`. */
export function buildObjects(
  streams: readonly StreamInput[],
  options: Partial<DataObjectWriterOptions> = {},
  firstObjectId = 1,
): SealedDataObject[] {
  const writer = new DataObjectWriter({ clusterId: CLUSTER_ID, level: 0, bytesExpected: 1000, ...options });
  const objects: SealedDataObject[] = [];
  const takeAll = () => {
    for (let draft = writer.takeFinished(); draft !== null; draft = writer.takeFinished()) {
      const { bytes, summary } = draft.seal(firstObjectId + objects.length);
      objects.push({ bytes: bytes.slice(), summary });
    }
  };
  for (const { streamId, tail, batches, fromOffset } of streams) {
    writer.startStream(streamId, tail, fromOffset);
    for (const batch of batches) {
      writer.add(batch);
      takeAll();
    }
    writer.finishStream();
    takeAll();
  }
  writer.finish();
  takeAll();
  return objects;
}

/** Holds objects as they are given, refuses everything but reads, and remembers the ranges read. */
export class ReadOnlyStore implements ObjectStore {
  readonly description = "test:";
  readonly reads: { readonly key: string; readonly start: number; readonly end: number }[] = [];
  readonly objects = new Map<string, Uint8Array>();
  /** The next reads fail with it. */
  failure: Error | null = null;

  put(object: SealedDataObject): ReadableObject {
    const readable: ReadableObject = { objectId: object.summary.objectId, random: "0123456789abcdef", summary: object.summary };
    this.objects.set(`${CLUSTER_ID}/data/${readable.random}/${readable.objectId}`, object.bytes);
    return readable;
  }

  async read(key: string, range = { start: 0, end: Number.MAX_SAFE_INTEGER }): Promise<Uint8Array | null> {
    this.reads.push({ key, ...range });
    if (this.failure !== null) throw this.failure;
    return this.objects.get(key)?.slice(range.start, range.end) ?? null;
  }

  create = refuse;
  size = refuse;
  list = refuse;
  delete = refuse;
  close = refuse;
}

async function refuse(): Promise<never> {
  throw new Error("only reads are modelled");
}

export function readersOf(store: ObjectStore, cacheBytes = 1 << 20): { readonly readers: DataObjectReaders; readonly cache: BlockCache } {
  const cache = new BlockCache(cacheBytes);
  return { readers: new DataObjectReaders(store, cache, CLUSTER_ID), cache };
}
