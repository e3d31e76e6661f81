/**
 * Writes the golden files of the WAL formats: `bun test/engine/golden/write-wal.ts`. A changed file is a
 * change of format, and its commit says so. Damaged files are named after the damage.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeSegmentHeader, encodeTombstone, reserveSegmentHeader, type SegmentMarks } from "../../../src/engine/wal-segment.ts";
import { ByteWriter, utf8Encoder } from "../../../src/lib/bytes.ts";
import { checksum64 } from "../../../src/lib/checksum.ts";

export const GOLDEN_MARKS: SegmentMarks = {
  registration: { nodeId: 7, nodeEpoch: 1_760_000_000_123 },
  number: 42,
  trimPoint: 30,
  durableNumber: 40,
};
export const GOLDEN_TAKER = { nodeId: -2, nodeEpoch: 1_760_000_111_222 };
export const GOLDEN_BODY = "entries are opaque here";

function segment(body: string, marks: SegmentMarks = GOLDEN_MARKS): Uint8Array {
  const out = new ByteWriter();
  reserveSegmentHeader(out);
  out.bytes(utf8Encoder.encode(body));
  const bytes = out.copy();
  encodeSegmentHeader(bytes, marks);
  return bytes;
}

/** A copy with one byte changed; `rechecked` makes the checksum right again. */
function changed(bytes: Uint8Array, at: number, value: number, rechecked: boolean): Uint8Array {
  const copy = bytes.slice();
  copy[at] = value;
  if (rechecked) new DataView(copy.buffer).setBigUint64(0, checksum64(copy.subarray(8)));
  return copy;
}

function goldenFiles(): Record<string, Uint8Array> {
  const whole = segment(GOLDEN_BODY);
  const tombstone = encodeTombstone(GOLDEN_MARKS, GOLDEN_TAKER);
  return {
    "wal-segment-whole": whole,
    "wal-segment-empty-body": segment(""),
    "wal-segment-tombstone": tombstone,
    "wal-segment-flipped-checksum-bit": changed(whole, 3, (whole[3] ?? 0) ^ 0x10, false),
    "wal-segment-flipped-version-bit": changed(whole, 13, 3, false),
    "wal-segment-flipped-number-bit": changed(whole, 39, 43, false),
    "wal-segment-flipped-body-bit": changed(whole, 60, (whole[60] ?? 0) ^ 0x01, false),
    "wal-segment-torn-to-zeros": (() => {
      const torn = whole.slice();
      torn.fill(0, 40);
      return torn;
    })(),
    "wal-segment-cut-in-header": whole.slice(0, 30),
    "wal-segment-cut-in-body": whole.slice(0, whole.length - 1),
    "wal-segment-one-byte-too-many": new Uint8Array([...whole, 0]),
    "wal-segment-all-zeros": new Uint8Array(whole.length),
    "wal-segment-of-another-number": segment(GOLDEN_BODY, { ...GOLDEN_MARKS, number: 43 }),
    "wal-segment-of-another-epoch": segment(GOLDEN_BODY, {
      ...GOLDEN_MARKS,
      registration: { nodeId: 7, nodeEpoch: 1_760_000_000_124 },
    }),
    "wal-segment-unknown-kind": changed(whole, 14, 9, true),
    "wal-segment-newer-version": changed(whole, 13, 2, true),
  };
}

if (import.meta.main) {
  for (const [name, bytes] of Object.entries(goldenFiles())) writeFileSync(join(import.meta.dir, `${name}.bin`), bytes);
}
