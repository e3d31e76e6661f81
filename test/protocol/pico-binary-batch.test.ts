import { describe, expect, test } from "bun:test";
import type { NewRecord } from "../../src/engine/record.ts";
import { ByteWriter } from "../../src/lib/bytes.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import {
  decodePicoBinaryBatch,
  encodePicoBinaryAppend,
  encodePicoBinaryHead,
  encodePicoBinaryRecord,
} from "../../src/protocol/pico-binary-batch.ts";

const text = (value: string) => new TextEncoder().encode(value);
const hex = (value: string) => Uint8Array.fromHex(value.replaceAll(/\s/g, ""));

// The worked bytes of the contract, Pico 12.4.
const APPEND = hex(`
  01 00000002
  00000002 6b31  00000001 00000001 74 00000002 6162  00000002 6869
  ffffffff       00000000                            00000002 ff00`);
const READ = hex("01 00000001  0000000000000007 00000199c82cc07b  ffffffff 00000000 00000002 6869");

const RECORDS: NewRecord[] = [
  { key: text("k1"), headers: [{ name: "t", value: text("ab") }], body: text("hi") },
  { key: null, headers: [], body: Uint8Array.of(0xff, 0) },
];

describe("binary batches", () => {
  test("the worked append of the contract is read and written", () => {
    expect(APPEND).toHaveLength(46);
    expect(decodePicoBinaryBatch(APPEND)).toEqual(RECORDS);
    expect(encodePicoBinaryAppend(RECORDS)).toEqual(APPEND);
  });

  test("the worked read of the contract is written", () => {
    const out = new ByteWriter();
    encodePicoBinaryHead(out, 1);
    encodePicoBinaryRecord(out, { offset: 7, timestampMs: 1760000000123, key: null, headers: [], body: text("hi") });
    expect(out.copy()).toEqual(READ);
  });

  test("null and empty differ; header order and repeats stay", () => {
    const records: NewRecord[] = [
      {
        key: text(""),
        headers: [
          { name: "b", value: null },
          { name: "b", value: text("") },
          { name: "", value: text("x") },
        ],
        body: null,
      },
      { key: null, headers: [], body: text("") },
    ];
    expect(decodePicoBinaryBatch(encodePicoBinaryAppend(records))).toEqual(records);
  });

  test("a batch of none is read as none", () => {
    expect(decodePicoBinaryBatch(hex("01 00000000"))).toEqual([]);
  });

  test("wrong version, trailing bytes, negative length, non-UTF-8 name and the August layout are refused", () => {
    const wrong = [
      "",
      "02 00000000",
      "01",
      "01 00000000 00",
      "01 00000001",
      "01 00000001 fffffffe 00000000 00000000",
      "01 00000001 ffffffff 00000001 00000001 ff ffffffff ffffffff",
      // 12.3: without the key field.
      "01 00000001 00000000 00000002 6869",
      "01 ffffffff",
      "01 00000001 ffffffff ffffffff",
    ];
    for (const bytes of wrong) expect(codeOf(hex(bytes))).toBe("bad_request");
  });

  test("every cut of a valid batch is refused", () => {
    for (let end = 0; end < APPEND.length; end++) expect(codeOf(APPEND.subarray(0, end))).toBe("bad_request");
  });

  test("any change of a byte gives records or bad_request, never another error", () => {
    for (let at = 0; at < APPEND.length; at++) {
      for (let value = 0; value < 256; value++) {
        const changed = APPEND.slice();
        changed[at] = value;
        expect(["none", "bad_request"]).toContain(codeOf(changed));
      }
    }
  });

  test("random bytes give bad_request, never another error", () => {
    let state = 1;
    for (let round = 0; round < 2000; round++) {
      const bytes = Uint8Array.from({ length: round % 64 }, () => {
        state = (Math.imul(state, 1103515245) + 12345) >>> 0;
        return state >>> 16;
      });
      if (bytes.length > 0) bytes[0] = 1;
      expect(["none", "bad_request"]).toContain(codeOf(bytes));
    }
  });

  test("10,000 records and 256 headers are allowed, one more of either is not", () => {
    const record: NewRecord = { key: null, headers: [], body: null };
    expect(decodePicoBinaryBatch(encodePicoBinaryAppend(Array(10_000).fill(record)))).toHaveLength(10_000);
    expect(codeOf(encodePicoBinaryAppend(Array(10_001).fill(record)))).toBe("bad_request");
    const withHeaders = (count: number) => encodePicoBinaryAppend([{ ...record, headers: Array(count).fill({ name: "n", value: null }) }]);
    expect(codeOf(withHeaders(256))).toBe("none");
    expect(codeOf(withHeaders(257))).toBe("bad_request");
  });
});

function codeOf(bytes: Uint8Array): string {
  try {
    decodePicoBinaryBatch(bytes);
    return "none";
  } catch (error) {
    return isPicoError(error) ? error.code : String(error);
  }
}
