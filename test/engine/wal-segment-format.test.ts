import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  decodeSegment,
  encodeSegmentHeader,
  encodeTombstone,
  isTombstone,
  reserveSegmentHeader,
  SEGMENT_HEADER_BYTES,
  TOMBSTONE_BYTES,
} from "../../src/engine/wal-segment-format.ts";
import { ByteWriter, utf8Decoder, utf8Encoder } from "../../src/lib/bytes.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { SEGMENT_BYTES_MAX } from "../../src/lib/limits.ts";
import { GOLDEN_BODY, GOLDEN_MARKS, GOLDEN_TAKER } from "./golden/write-wal.ts";

const goldenDirectory = join(import.meta.dir, "golden");

function golden(name: string): Uint8Array {
  return new Uint8Array(readFileSync(join(goldenDirectory, `${name}.bin`)));
}

function decodeGolden(bytes: Uint8Array) {
  return decodeSegment(bytes, GOLDEN_MARKS.registration, GOLDEN_MARKS.number);
}

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    if (isPicoError(error)) return error.code;
    throw error;
  }
  return "none";
}

function encode(body: Uint8Array): Uint8Array {
  const out = new ByteWriter(16);
  reserveSegmentHeader(out);
  out.bytes(body);
  const bytes = out.copy();
  encodeSegmentHeader(bytes, GOLDEN_MARKS);
  return bytes;
}

test("a stored segment of this version decodes to what was written", () => {
  const decoded = decodeGolden(golden("wal-segment-whole"));
  expect(decoded).toMatchObject({ ...GOLDEN_MARKS, tombstoneBy: null });
  expect(utf8Decoder.decode(decoded.body)).toBe(GOLDEN_BODY);
  expect(decodeGolden(golden("wal-segment-empty-body")).body.length).toBe(0);
});

test("a stored tombstone names who wrote it, and has a size of its own", () => {
  const bytes = golden("wal-segment-tombstone");
  expect(bytes.length).toBe(TOMBSTONE_BYTES);
  expect(isTombstone(bytes)).toBe(true);
  expect(decodeGolden(bytes)).toMatchObject({ ...GOLDEN_MARKS, tombstoneBy: GOLDEN_TAKER });
});

test("encoding again gives the golden bytes", () => {
  expect(encode(utf8Encoder.encode(GOLDEN_BODY))).toEqual(golden("wal-segment-whole"));
  expect(encodeTombstone(GOLDEN_MARKS, GOLDEN_TAKER)).toEqual(golden("wal-segment-tombstone"));
});

test("every damaged golden file is corrupt, and only an intact newer one is incompatible", () => {
  const intact = ["wal-segment-whole.bin", "wal-segment-empty-body.bin", "wal-segment-tombstone.bin"];
  const damaged = readdirSync(goldenDirectory).filter((name) => name.startsWith("wal-segment-") && !intact.includes(name));
  expect(damaged.length).toBe(13);
  for (const name of damaged) {
    const expected = name === "wal-segment-newer-version.bin" ? "incompatible" : "corrupt";
    expect([name, codeOf(() => decodeGolden(golden(name.slice(0, -4))))]).toEqual([name, expected]);
  }
});

test("any single flipped bit of a segment or tombstone is corrupt", () => {
  for (const name of ["wal-segment-whole", "wal-segment-tombstone"]) {
    const bytes = golden(name);
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const flipped = bytes.slice();
      flipped[bit >> 3] = (flipped[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(codeOf(() => decodeGolden(flipped))).toBe("corrupt");
    }
  }
});

test("any cut of a segment is corrupt", () => {
  const bytes = golden("wal-segment-whole");
  for (let length = 0; length < bytes.length; length++) {
    expect(codeOf(() => decodeGolden(bytes.subarray(0, length)))).toBe("corrupt");
  }
});

test("a segment longer than the limit is refused, one at the limit is not", () => {
  const bytes = new Uint8Array(SEGMENT_BYTES_MAX + 1);
  expect(codeOf(() => encodeSegmentHeader(bytes, GOLDEN_MARKS))).toBe("payload_too_large");
  const largest = bytes.subarray(0, SEGMENT_BYTES_MAX);
  encodeSegmentHeader(largest, GOLDEN_MARKS);
  expect(decodeGolden(largest).body.length).toBe(SEGMENT_BYTES_MAX - SEGMENT_HEADER_BYTES);
});
