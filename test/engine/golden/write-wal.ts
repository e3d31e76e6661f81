/**
 * Writes the golden files of the WAL formats: `bun test/engine/golden/write-wal.ts`. A changed file is a
 * change of format, and its commit says so. Damaged files are named after the damage.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { encodeFileHeader, encodeFrameHeader, FRAME_HEADER_BYTES, WAL_PAGE_BYTES } from "../../../src/engine/wal-file.ts";
import { encodeSegmentHeader, encodeTombstone, reserveSegmentHeader, type SegmentMarks } from "../../../src/engine/wal-segment-format.ts";
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

const SALT = 0x1122334455667788n;

/** Three pages: the header, segment 42 and segment 44. */
function walFile(): Uint8Array {
  const { registration } = GOLDEN_MARKS;
  const file = new Uint8Array(3 * WAL_PAGE_BYTES);
  file.set(encodeFileHeader(registration, file.length, SALT));
  for (const [page, number] of [
    [1, 42],
    [2, 44],
  ] as const) {
    const stored = segment(GOLDEN_BODY, { ...GOLDEN_MARKS, number });
    const frame = file.subarray(page * WAL_PAGE_BYTES);
    encodeFrameHeader(frame, registration, number, stored.length, SALT);
    frame.set(stored, FRAME_HEADER_BYTES);
  }
  return file;
}

/** A copy of the file with one byte of a header changed, and the header's checksum right again on request. */
function changedFile(at: number, value: number, recheckedPage: number | null): Uint8Array {
  const file = walFile();
  file[at] = value;
  if (recheckedPage !== null) {
    const header = file.subarray(recheckedPage * WAL_PAGE_BYTES, recheckedPage * WAL_PAGE_BYTES + FRAME_HEADER_BYTES);
    new DataView(file.buffer).setBigUint64(recheckedPage * WAL_PAGE_BYTES, checksum64(header.subarray(8)));
  }
  return file;
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
    "wal-file-two-frames": walFile(),
    "wal-file-flipped-header-bit": changedFile(47, 0x89, null),
    "wal-file-flipped-bit-in-second-frame-header": changedFile(2 * WAL_PAGE_BYTES + 39, 45, null),
    "wal-file-frame-of-another-salt": changedFile(2 * WAL_PAGE_BYTES + 47, 0x89, 2),
    "wal-file-newer-version": changedFile(13, 2, 0),
    "wal-file-header-and-first-frame-lost": walFile().fill(0xa5, 0, 2 * WAL_PAGE_BYTES),
    "wal-file-never-used": encodeFileHeader(GOLDEN_MARKS.registration, WAL_PAGE_BYTES, SALT),
  };
}

if (import.meta.main) {
  for (const [name, bytes] of Object.entries(goldenFiles())) writeFileSync(join(import.meta.dir, `${name}.bin`), bytes);
}
