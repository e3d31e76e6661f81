/**
 * Writes the golden files of record batches, tail states, WAL entries and data objects:
 * `bun test/engine/golden/write-records.ts`. A changed file is a change of format, and its commit says
 * so. Damaged files are named after the damage.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { decodeFooter } from "../../../src/engine/data-object-format.ts";
import type { NewRecord } from "../../../src/engine/record.ts";
import type { TailState } from "../../../src/engine/tail-state.ts";
import { emptyTailState, encodeTailState } from "../../../src/engine/tail-state-format.ts";
import { encodeWalEntry, type WalEntryHead } from "../../../src/engine/wal-entry.ts";
import { ByteWriter } from "../../../src/lib/bytes.ts";
import { checksum64 } from "../../../src/lib/checksum.ts";
import { buildObjects, namedStream, type StreamInput } from "../data-object-fixtures.ts";
import { batchOf, plainRecord } from "../record-fixtures.ts";

export const GOLDEN_TIMESTAMP_MS = 1_760_000_000_123;
export const GOLDEN_PLAIN: readonly NewRecord[] = [plainRecord("first"), plainRecord(""), plainRecord("third")];
export const GOLDEN_FULL: readonly NewRecord[] = [
  plainRecord("plain"),
  { key: Uint8Array.of(1, 2), headers: [{ name: "naïve", value: Uint8Array.of(0xff) }], body: null },
  { key: new Uint8Array(0), headers: [{ name: "n", value: null }, { name: "n", value: new Uint8Array(0) }], body: Uint8Array.of(0) },
];
export const GOLDEN_TAIL: TailState = {
  changeNumber: 41,
  nextOffset: 300,
  lastTimestampMs: GOLDEN_TIMESTAMP_MS,
  streamSeq: "0007",
  isClosed: true,
  closedBy: { producerId: "writer", producerEpoch: 2n, seq: 2n ** 64n - 1n },
  producers: new Map([
    ["writer", { producerEpoch: 2n, lastSeq: 2n ** 64n - 1n, lastUsedMs: GOLDEN_TIMESTAMP_MS }],
    ["", { producerEpoch: 0n, lastSeq: 0n, lastUsedMs: 0 }],
  ]),
};
const OPEN_TAIL: TailState = { ...GOLDEN_TAIL, streamSeq: null, isClosed: false, closedBy: null, producers: new Map() };
/** One optional part each: where all are there, flags that were exchanged would give the same bytes. */
export const GOLDEN_TAIL_PARTS: readonly TailState[] = [
  OPEN_TAIL,
  { ...OPEN_TAIL, streamSeq: GOLDEN_TAIL.streamSeq },
  { ...OPEN_TAIL, isClosed: true },
  { ...OPEN_TAIL, closedBy: GOLDEN_TAIL.closedBy },
  { ...OPEN_TAIL, producers: GOLDEN_TAIL.producers },
];
const BARE_HEAD = { streamId: 1, nextOffset: 3, base: null, producer: null, streamSeq: null, closes: false };
export const GOLDEN_ENTRIES: readonly (readonly [WalEntryHead, readonly NewRecord[] | null])[] = [
  [
    {
      streamId: 2 ** 40,
      changeNumber: 42,
      nextOffset: 303,
      timestampMs: GOLDEN_TIMESTAMP_MS,
      base: GOLDEN_TAIL,
      producer: { producerId: "writer", producerEpoch: 3n, seq: 0n },
      streamSeq: "0008",
      closes: true,
    },
    GOLDEN_FULL,
  ],
  [{ ...BARE_HEAD, changeNumber: 1, timestampMs: 9 }, GOLDEN_PLAIN],
  [{ ...BARE_HEAD, changeNumber: 2, timestampMs: 10, closes: true }, null],
];
const BARE_ENTRY = { ...BARE_HEAD, changeNumber: 42, timestampMs: 11 };
export const GOLDEN_ENTRY_PARTS: readonly (readonly [WalEntryHead, readonly NewRecord[] | null])[] = [
  [BARE_ENTRY, null],
  [{ ...BARE_ENTRY, base: OPEN_TAIL }, null],
  [{ ...BARE_ENTRY, producer: { producerId: "writer", producerEpoch: 3n, seq: 7n } }, null],
  [{ ...BARE_ENTRY, streamSeq: "0008" }, null],
  [{ ...BARE_ENTRY, closes: true }, null],
  [BARE_ENTRY, GOLDEN_PLAIN],
];
/** With small blocks and leaves: several of each. */
export const GOLDEN_STREAMS: readonly StreamInput[] = [
  namedStream(3, 5, 40),
  { streamId: 4, tail: emptyTailState(7), batches: [] },
  { streamId: 2 ** 40, tail: GOLDEN_TAIL, batches: [batchOf(297, GOLDEN_TIMESTAMP_MS, GOLDEN_FULL)] },
];

function written(write: (out: ByteWriter) => void): Uint8Array {
  const out = new ByteWriter();
  write(out);
  return out.copy();
}

function goldenObject(level: number, clusterId = "cluster0"): Uint8Array {
  const [object] = buildObjects(GOLDEN_STREAMS, { level, clusterId, blockBytesTarget: 300, leafBytes: 64 });
  if (object === undefined) throw new Error("no object");
  return object.bytes;
}

function flipped(bytes: Uint8Array, at: number): Uint8Array {
  const copy = bytes.slice();
  copy[at] = (copy[at] ?? 0) ^ 0x04;
  return copy;
}

/** The version of an object's footer raised, its checksum right. */
function newerObject(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  const view = new DataView(copy.buffer);
  view.setUint16(copy.length - 14, 2);
  const { length } = copy;
  view.setBigUint64(length - 8, checksum64(copy.subarray(length - view.getUint16(length - 16), length - 8)));
  return copy;
}

export function goldenFiles(): Record<string, Uint8Array> {
  const tail = written((out) => encodeTailState(out, GOLDEN_TAIL));
  const entries = written((out) => {
    for (const [head, records] of GOLDEN_ENTRIES) encodeWalEntry(out, head, records);
  });
  const entryParts = written((out) => {
    for (const [head, records] of GOLDEN_ENTRY_PARTS) encodeWalEntry(out, head, records);
  });
  const tailParts = written((out) => {
    for (const part of GOLDEN_TAIL_PARTS) encodeTailState(out, part);
  });
  const plain = batchOf(300, GOLDEN_TIMESTAMP_MS, GOLDEN_PLAIN).bytes;
  const object = goldenObject(0);
  const { footer } = decodeFooter(object, "golden object");
  return {
    "record-batch-plain": plain,
    "record-batch-with-keys-headers-and-nulls": batchOf(300, GOLDEN_TIMESTAMP_MS, GOLDEN_FULL).bytes,
    "record-batch-cut-in-header": plain.slice(0, 28),
    "record-batch-cut-in-body": plain.slice(0, plain.length - 1),
    "record-batch-unknown-flag": flipped(plain, 4),
    "tail-state-whole": tail,
    "tail-state-each-part-alone": tailParts,
    "tail-state-cut": tail.slice(0, tail.length - 1),
    "tail-state-newer-version": Uint8Array.from([2, ...tail.slice(1)]),
    "wal-entries-whole": entries,
    "wal-entries-each-part-alone": entryParts,
    "wal-entries-cut": entries.slice(0, entries.length - 1),
    "wal-entries-unknown-flag": Uint8Array.from([...entries.slice(0, 4), 0x3f, ...entries.slice(5)]),
    "data-object-level-0": object,
    "data-object-level-1": goldenObject(1),
    "data-object-flipped-record-bit": flipped(object, 40),
    "data-object-flipped-tail-state-bit": flipped(object, object.indexOf(0x77, footer.filterPosition - 500)),
    "data-object-flipped-leaf-bit": flipped(object, footer.filterPosition - 10),
    "data-object-flipped-filter-bit": flipped(object, footer.filterPosition + 8),
    "data-object-flipped-top-index-bit": flipped(object, footer.filterPosition + footer.filterLength + 20),
    "data-object-flipped-footer-bit": flipped(object, object.length - 60),
    "data-object-flipped-last-bit": flipped(object, object.length - 1),
    "data-object-cut-at-end": object.slice(0, object.length - 1),
    "data-object-of-another-cluster": goldenObject(0, "cluster1"),
    "data-object-newer-version": newerObject(object),
  };
}

if (import.meta.main) {
  for (const [name, bytes] of Object.entries(goldenFiles())) writeFileSync(join(import.meta.dir, `${name}.bin`), bytes);
}
