import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { formatWalFileName, frameBytes, parseWalFileName, scanWalFile } from "../../src/engine/wal-file.ts";
import { decodeSegment } from "../../src/engine/wal-segment-format.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import type { LocalFile } from "../../src/storage/local-directory.ts";
import { GOLDEN_MARKS } from "./golden/write-wal.ts";
import { codeOf, seededRandom } from "./wal-fixtures.ts";
import { MemoryDirectory } from "./wal-memory-directory.ts";

async function fileOf(bytes: Uint8Array): Promise<LocalFile> {
  const file = await new MemoryDirectory().create("file", bytes.length);
  file.write([bytes], 0);
  return file;
}

function golden(name: string): Promise<LocalFile> {
  return fileOf(new Uint8Array(readFileSync(join(import.meta.dir, "golden", `${name}.bin`))));
}

async function numbersIn(file: LocalFile): Promise<number[]> {
  return (await scanWalFile(file, "file", GOLDEN_MARKS.registration)).map(({ number }) => number);
}

test("a stored file of this version gives its segments", async () => {
  const file = await golden("wal-file-two-frames");
  const places = await scanWalFile(file, "file", GOLDEN_MARKS.registration);
  expect(places.map(({ number }) => number)).toEqual([42, 44]);
  for (const { number, position, length } of places) {
    expect(decodeSegment(await file.read(position, length), GOLDEN_MARKS.registration, number).number).toBe(number);
  }
});

test("a damaged header page hides no frame", async () => {
  expect(await numbersIn(await golden("wal-file-flipped-header-bit"))).toEqual([42, 44]);
});

test("a damaged frame header hides its own frame only", async () => {
  expect(await numbersIn(await golden("wal-file-flipped-bit-in-second-frame-header"))).toEqual([42]);
});

test("a frame of another salt is of another use of the file", async () => {
  expect(await numbersIn(await golden("wal-file-frame-of-another-salt"))).toEqual([42]);
});

test("a file whose salt is lost is corrupt, one never used is empty, a newer one incompatible", async () => {
  expect(await codeOf(numbersIn(await golden("wal-file-header-and-first-frame-lost")))).toBe("corrupt");
  expect(await numbersIn(await golden("wal-file-never-used"))).toEqual([]);
  expect(await codeOf(numbersIn(await golden("wal-file-newer-version")))).toBe("incompatible");
});

test("a file under another registration's name is corrupt", async () => {
  const file = await golden("wal-file-two-frames");
  expect(await codeOf(scanWalFile(file, "file", { nodeId: 8, nodeEpoch: 1 }))).toBe("corrupt");
});

test("no bytes make a scan fail with anything but a named error", async () => {
  const whole = new Uint8Array(readFileSync(join(import.meta.dir, "golden", "wal-file-two-frames.bin")));
  const random = seededRandom(5);
  for (let round = 0; round < 400; round++) {
    const bytes = whole.slice(0, Math.floor(random.fraction() * (whole.length + 1)));
    for (let at = Math.floor(random.fraction() * 12); at > 0 && bytes.length > 0; at--) {
      const page = 4096 * Math.floor(random.fraction() * 3);
      const place = Math.min(bytes.length - 1, page + Math.floor(random.fraction() * 60));
      bytes[place] = Math.floor(random.fraction() * 256);
    }
    try {
      await scanWalFile(await fileOf(bytes), "file", GOLDEN_MARKS.registration);
    } catch (error) {
      expect(isPicoError(error)).toBe(true);
    }
  }
});

test("file names parse to what was formatted, and nothing else does", () => {
  const frames = { kind: "frames", registration: { nodeId: -1, nodeEpoch: 1_760_000_000_000 }, fileNumber: 3 } as const;
  expect(formatWalFileName(frames)).toBe("-1-1760000000000-3.wal");
  expect(parseWalFileName("-1-1760000000000-3.wal")).toEqual(frames);
  expect(parseWalFileName("1-1760000000000-42.end")).toMatchObject({ kind: "tombstone", number: 42 });
  for (const name of ["01-2-3.wal", "1-2.wal", "1-2-3.wal.tmp", "lock", "1-2-03.end", "1-2-99999999999999999999.end"]) {
    expect(parseWalFileName(name)).toBeNull();
  }
});

test("a frame takes whole pages, its header included", () => {
  expect([0, 4048, 4049, 8144].map(frameBytes)).toEqual([4096, 4096, 8192, 8192]);
});
