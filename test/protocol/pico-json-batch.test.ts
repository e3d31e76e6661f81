import { describe, expect, test } from "bun:test";
import type { StoredRecord } from "../../src/engine/record.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { decodePicoJsonBatch, encodePicoJsonRecord } from "../../src/protocol/pico-json-batch.ts";

const bytes = (text: string) => new TextEncoder().encode(text);
const decode = (value: unknown) => decodePicoJsonBatch(bytes(typeof value === "string" ? value : JSON.stringify(value)));

describe("JSON batches in", () => {
  test("text, base64, null and headers come as the bytes they stand for", () => {
    const batch = { records: [{ key: "k1", headers: [{ name: "t", value: "ab" }], body: "hi" }, { body_b64: "/wA=" }] };
    expect(decode(batch)).toEqual([
      { key: bytes("k1"), headers: [{ name: "t", value: bytes("ab") }], body: bytes("hi") },
      { key: null, headers: [], body: Uint8Array.of(0xff, 0) },
    ]);
  });

  test("absent and null are null, empty is empty, base64 wins", () => {
    expect(decode({ records: [{}] })).toEqual([{ key: null, headers: [], body: null }]);
    expect(decode({ records: [{ body: null, body_b64: null, key: "" }] })).toEqual([{ key: bytes(""), headers: [], body: null }]);
    expect(decode({ records: [{ body: "a", body_b64: "Yg==", x: 1 }] })[0]?.body).toEqual(bytes("b"));
  });

  test("headers keep order, repeats and null values", () => {
    const headers = [{ name: "b", value: "1" }, { name: "a", value_b64: "/w==" }, { name: "b", value: null }, { name: "" }];
    expect(decode({ records: [{ headers }] })[0]?.headers).toEqual([
      { name: "b", value: bytes("1") },
      { name: "a", value: Uint8Array.of(0xff) },
      { name: "b", value: null },
      { name: "", value: null },
    ]);
  });

  test("anything else is refused, and the message names the field", () => {
    const wrong: [unknown, string][] = [
      ["{", "JSON"],
      ["[]", "records"],
      [{ records: [] }, "records"],
      [{ records: {} }, "records"],
      [{ records: [1] }, "records[0]"],
      [{ records: [{}, []] }, "records[1]"],
      [{ records: [{ body: 1 }] }, "records[0].body"],
      [{ records: [{ key: false }] }, "records[0].key"],
      [{ records: [{ body_b64: "/w" }] }, "body_b64"],
      [{ records: [{ body_b64: "/wA" }] }, "body_b64"],
      [{ records: [{ body_b64: "_w==" }] }, "body_b64"],
      [{ records: [{ body_b64: "/w ==" }] }, "body_b64"],
      [{ records: [{ body_b64: "/x==" }] }, "body_b64"],
      [{ records: [{ headers: { t: "ab" } }] }, '[{"name":"t","value":"ab"}]'],
      [{ records: [{ headers: [{ value: "x" }] }] }, "headers[0].name"],
      [{ records: [{ headers: Array(257).fill({ name: "n" }) }] }, "256"],
      ['{"records":[{"body":"\\ud800"}]}', "records[0].body"],
    ];
    for (const [batch, named] of wrong) {
      const error = errorOf(() => decode(batch));
      expect(error.code).toBe("bad_request");
      expect(error.message).toContain(named);
    }
  });

  test("10,000 records are a batch, one more is not", () => {
    expect(decode({ records: Array(10_000).fill({}) })).toHaveLength(10_000);
    expect(errorOf(() => decode({ records: Array(10_001).fill({}) })).message).toContain("10000");
  });
});

describe("JSON records out", () => {
  const base: StoredRecord = { offset: 7, timestampMs: 1760000000123, key: null, headers: [], body: bytes("hi") };

  test("a plain record has sequence, timestamp and body only", () => {
    expect(encodePicoJsonRecord(base)).toBe('{"seq":7,"timestamp":1760000000123,"body":"hi"}');
  });

  test("bytes that are no UTF-8 are base64, null stays null, a BOM stays", () => {
    expect(JSON.parse(encodePicoJsonRecord({ ...base, body: Uint8Array.of(0xff, 0) }))).toMatchObject({ body_b64: "/wA=" });
    expect(encodePicoJsonRecord({ ...base, body: null })).toEndWith('"body":null}');
    expect(JSON.parse(encodePicoJsonRecord({ ...base, body: bytes("\uFEFFx\u0000\u2028") }))).toMatchObject({
      body: "\uFEFFx\u0000\u2028",
    });
  });

  test("what was decoded is encoded as it came", () => {
    const record = {
      key: "k",
      headers: [
        { name: "t", value: "ab" },
        { name: "t", value_b64: "/w==" },
        { name: "n", value: null },
      ],
      body: "x",
    };
    const decoded = decode({ records: [record] })[0];
    if (decoded === undefined) throw new Error("no record");
    expect(JSON.parse(encodePicoJsonRecord({ ...base, ...decoded }))).toEqual({ seq: 7, timestamp: 1760000000123, ...record });
  });
});

function errorOf(run: () => unknown): { code: string; message: string } {
  try {
    run();
  } catch (error) {
    if (isPicoError(error)) return error;
    throw error;
  }
  return { code: "none", message: "" };
}
