/**
 * Records as JSON, in (Pico 4.2) and out (Pico 7). Bytes that are UTF-8 stand as a string under their
 * name, others as base64 under `<name>_b64`; null stays null, and differs from empty.
 */
import type { NewRecord, RecordHeader, StoredRecord } from "../engine/record.ts";
import { decodeUtf8, utf8Encoder } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { BATCH_RECORDS_MAX, RECORD_HEADERS_MAX } from "../lib/limits.ts";

const BASE64 = /^[A-Za-z0-9+/]*={0,2}$/;
const HEADERS_FORM = '[{"name":"t","value":"ab"}]';

/** The records of a batch body, at least one. Throws `bad_request` that names the wrong field. */
export function decodePicoJsonBatch(body: Uint8Array): NewRecord[] {
  const batch = parseJson(body);
  const records = isObject(batch) ? batch.records : undefined;
  if (!Array.isArray(records)) throw refusal("batch must be an object with a list named records");
  if (records.length === 0) throw refusal("records is empty, at least one record is needed");
  if (records.length > BATCH_RECORDS_MAX) {
    throw refusal(`records holds ${records.length} records, the limit is ${BATCH_RECORDS_MAX} a request`);
  }
  return records.map(decodeRecord);
}

/** One record as a JSON object. */
export function encodePicoJsonRecord(record: StoredRecord): string {
  let text = `{"seq":${record.offset},"timestamp":${record.timestampMs}`;
  if (record.key !== null) text += `,${encodeBytes("key", record.key)}`;
  if (record.headers.length > 0) text += `,"headers":[${record.headers.map(encodeHeader).join(",")}]`;
  return `${text},${encodeBytes("body", record.body)}}`;
}

function decodeRecord(value: unknown, index: number): NewRecord {
  const at = `records[${index}]`;
  if (!isObject(value)) throw refusal(`${at} is not an object`);
  return {
    key: decodeBytes(value.key, value.key_b64, `${at}.key`),
    headers: decodeHeaders(value.headers, at),
    body: decodeBytes(value.body, value.body_b64, `${at}.body`),
  };
}

function decodeHeaders(value: unknown, at: string): RecordHeader[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw refusal(`${at}.headers must be a list: ${HEADERS_FORM}`);
  if (value.length > RECORD_HEADERS_MAX) {
    throw refusal(`${at}.headers holds ${value.length} headers, the limit is ${RECORD_HEADERS_MAX} a record`);
  }
  return value.map((header: unknown, index) => {
    const place = `${at}.headers[${index}]`;
    if (!isObject(header) || typeof header.name !== "string") throw refusal(`${place}.name must be a string, as in ${HEADERS_FORM}`);
    if (!header.name.isWellFormed()) throw refusal(`${place}.name holds half a surrogate pair`);
    return { name: header.name, value: decodeBytes(header.value, header.value_b64, `${place}.value`) };
  });
}

/** Base64 wins over text; both absent or null is null. */
function decodeBytes(text: unknown, base64: unknown, at: string): Uint8Array | null {
  if (base64 !== undefined && base64 !== null) {
    if (typeof base64 !== "string") throw refusal(`${at}_b64 is not a string`);
    return decodeBase64(base64, at);
  }
  if (text === undefined || text === null) return null;
  if (typeof text !== "string") throw refusal(`${at} is not a string; other bytes go into ${at}_b64`);
  if (!text.isWellFormed()) throw refusal(`${at} holds half a surrogate pair, which has no UTF-8`);
  return utf8Encoder.encode(text);
}

/** Standard alphabet with padding (RFC 4648, 4), and nothing between. */
function decodeBase64(text: string, at: string): Uint8Array {
  try {
    if (BASE64.test(text)) return Uint8Array.fromBase64(text, { alphabet: "base64", lastChunkHandling: "strict" });
  } catch {
    // Wrong padding or stray bits: refused below like a wrong character.
  }
  throw refusal(`${at}_b64 is not base64 in the standard alphabet with padding`);
}

function encodeHeader(header: RecordHeader): string {
  return `{"name":${JSON.stringify(header.name)},${encodeBytes("value", header.value)}}`;
}

function encodeBytes(name: string, bytes: Uint8Array | null): string {
  if (bytes === null) return `"${name}":null`;
  const text = decodeUtf8(bytes);
  return text === null ? `"${name}_b64":"${bytes.toBase64()}"` : `"${name}":${JSON.stringify(text)}`;
}

function parseJson(body: Uint8Array): unknown {
  const text = decodeUtf8(body);
  if (text === null) throw refusal("body is not UTF-8, as JSON must be");
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw refusal(`body is not JSON: ${reason.slice(0, 200)}`);
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function refusal(message: string): PicoError {
  return new PicoError("bad_request", message, { what: "body" });
}
