import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ReadableObject } from "../../src/engine/data-object-readers.ts";
import { RecordBatchView } from "../../src/engine/record-batch-view.ts";
import { decodeTailState } from "../../src/engine/tail-state-format.ts";
import { decodeWalEntries } from "../../src/engine/wal-entry.ts";
import { ByteReader } from "../../src/lib/bytes.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { ReadOnlyStore, readersOf } from "./data-object-fixtures.ts";
import {
  GOLDEN_ENTRIES,
  GOLDEN_ENTRY_PARTS,
  GOLDEN_FULL,
  GOLDEN_PLAIN,
  GOLDEN_STREAMS,
  GOLDEN_TAIL,
  GOLDEN_TAIL_PARTS,
  GOLDEN_TIMESTAMP_MS,
  goldenFiles,
} from "./golden/write-records.ts";
import { readable, stored } from "./record-fixtures.ts";

const directory = join(import.meta.dir, "golden");

function golden(name: string): Uint8Array {
  return new Uint8Array(readFileSync(join(directory, `${name}.bin`)));
}

async function codeOf(run: () => unknown): Promise<string> {
  try {
    await run();
    return "none";
  } catch (error) {
    if (!isPicoError(error)) throw error;
    return error.code;
  }
}

test("writing again gives the golden bytes, and every golden file of these formats is written", () => {
  const files = goldenFiles();
  for (const [name, bytes] of Object.entries(files)) expect({ name, hex: golden(name).toHex() }).toEqual({ name, hex: bytes.toHex() });
  const present = readdirSync(directory).filter((name) => /^(record-batch|tail-state|wal-entries|data-object)-.*\.bin$/.test(name));
  expect(present.sort()).toEqual(
    Object.keys(files)
      .map((name) => `${name}.bin`)
      .sort(),
  );
});

test("golden record batches read as they were written, damaged ones are corrupt", async () => {
  const read = (name: string) => readable(new RecordBatchView(golden(name)).records());
  expect(read("record-batch-plain")).toEqual(readable(stored(300, GOLDEN_TIMESTAMP_MS, GOLDEN_PLAIN)));
  expect(read("record-batch-with-keys-headers-and-nulls")).toEqual(readable(stored(300, GOLDEN_TIMESTAMP_MS, GOLDEN_FULL)));
  for (const damage of ["cut-in-header", "cut-in-body", "unknown-flag"])
    expect(await codeOf(() => read(`record-batch-${damage}`))).toBe("corrupt");
});

test("golden tail states read as they were written, damaged and newer ones are named so", async () => {
  const read = (name: string) => decodeTailState(new ByteReader(golden(name)));
  expect(read("tail-state-whole")).toEqual(GOLDEN_TAIL);
  const parts = new ByteReader(golden("tail-state-each-part-alone"));
  expect(GOLDEN_TAIL_PARTS.map(() => decodeTailState(parts))).toEqual([...GOLDEN_TAIL_PARTS]);
  parts.expectEnd();
  expect(await codeOf(() => read("tail-state-cut"))).toBe("corrupt");
  expect(await codeOf(() => read("tail-state-newer-version"))).toBe("incompatible");
});

test("golden WAL entries read as they were written, damaged ones are corrupt", async () => {
  const read = (name: string) => [...decodeWalEntries(golden(name), name)];
  for (const [name, written] of Object.entries({ whole: GOLDEN_ENTRIES, "each-part-alone": GOLDEN_ENTRY_PARTS })) {
    const entries = read(`wal-entries-${name}`);
    expect(entries.length).toBe(written.length);
    for (const [i, [head, records]] of written.entries()) {
      expect(entries[i]).toMatchObject(head);
      const expected = stored(entries[i]?.baseOffset ?? -1, head.timestampMs, records ?? []);
      expect(readable(entries[i]?.batch?.records() ?? [])).toEqual(readable(expected));
    }
  }
  for (const damage of ["cut", "unknown-flag"]) expect(await codeOf(() => read(`wal-entries-${damage}`))).toBe("corrupt");
});

describe("golden data objects", () => {
  const sizeBytes = golden("data-object-level-0").length;

  /** Reads every record and tail state of it. */
  async function readAll(name: string, level = 0, size = sizeBytes): Promise<unknown[]> {
    const store = new ReadOnlyStore();
    const place = { streamId: 0, offset: 0 };
    const summary = { objectId: 1, level, sizeBytes: size, streamCount: 3, recordCount: 43, first: place, last: place };
    const object: ReadableObject = store.put({ bytes: golden(name), summary });
    const { readers } = readersOf(store);
    const found: unknown[] = [];
    for (const { streamId } of GOLDEN_STREAMS) {
      const batches = await readers.readBatches(object, streamId, 0, 1e9);
      if (batches === "object_missing") throw new Error("object missing");
      found.push({
        tail: await readers.readTailState(object, streamId),
        records: readable(batches.flatMap((batch) => [...batch.records()])),
      });
    }
    return found;
  }

  test("read as they were written", async () => {
    const expected = GOLDEN_STREAMS.map(({ tail, batches }) => ({
      tail,
      records: readable(batches.flatMap((batch) => [...batch.records()])),
    }));
    expect(await readAll("data-object-level-0")).toEqual(expected);
    expect(await readAll("data-object-level-1", 1, golden("data-object-level-1").length)).toEqual(expected);
  });

  test("that are damaged, another's or newer are named so", async () => {
    const damaged = readdirSync(directory).filter((name) => /^data-object-(flipped|cut|of)-/.test(name));
    expect(damaged.length).toBe(9);
    for (const name of damaged) expect([name, await codeOf(() => readAll(name.slice(0, -4)))]).toEqual([name, "corrupt"]);
    expect(await codeOf(() => readAll("data-object-newer-version"))).toBe("incompatible");
  });
});
