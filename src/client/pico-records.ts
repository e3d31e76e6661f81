/** Records of the Pico protocol, as a program gives and gets them. */
import type { NewRecord, StoredRecord } from "../engine/record.ts";
import { utf8Encoder } from "../lib/bytes.ts";
import { decodePicoBinaryPage } from "../protocol/pico-binary-batch.ts";
import { decodeBase64 } from "./base64.ts";
import { malformed } from "./stream-error.ts";

/** Text stands for its UTF-8. */
export type BytesInput = string | Uint8Array;

export interface PicoHeaderInput {
  readonly name: string;
  /** @default null */
  readonly value?: BytesInput | null;
}

/** A record to append: just its body, or with key and headers. At most 256 headers; order and repeats are kept. */
export type PicoRecordInput =
  | BytesInput
  | {
      /** @default null: no key; an empty key is another thing */
      readonly key?: BytesInput | null;
      readonly headers?: readonly PicoHeaderInput[];
      /** @default null: a tombstone; an empty body is another thing */
      readonly body?: BytesInput | null;
    };

export interface PicoHeader {
  readonly name: string;
  readonly value: Uint8Array | null;
}

/**
 * A record as it was read.
 *
 * @example
 * ```ts
 * import { PicoClient } from "picomq/client";
 *
 * const stream = new PicoClient({ url: "http://127.0.0.1:4437" }).stream("/orders");
 * await stream.create();
 * const { records } = await stream.read();
 * for (const record of records) console.log(record.seq, new Date(record.timestampMs), record.text());
 * ```
 */
export class PicoRecord {
  constructor(
    /** Position in the stream, from 0, without gaps. */
    readonly seq: number,
    /** Server time of the append, milliseconds since 1970; never falls within a stream. */
    readonly timestampMs: number,
    readonly key: Uint8Array | null,
    readonly headers: readonly PicoHeader[],
    /** Null: a tombstone. */
    readonly body: Uint8Array | null,
  ) {}

  /** The body as UTF-8, with U+FFFD for bytes that are none; empty for a tombstone. */
  text(): string {
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(this.body ?? new Uint8Array(0));
  }

  /** The body as JSON. Throws `SyntaxError` for one that is none. */
  json(): unknown {
    return JSON.parse(this.text());
  }
}

/** Shares the memory of what it is made of: to be encoded at once. */
export function toNewRecord(input: PicoRecordInput): NewRecord {
  if (typeof input === "string" || input instanceof Uint8Array) return { key: null, headers: [], body: toNullable(input) };
  return {
    key: toNullable(input.key),
    headers: (input.headers ?? []).map(({ name, value }) => ({ name, value: toNullable(value) })),
    body: toNullable(input.body),
  };
}

export function toBytes(input: BytesInput): Uint8Array<ArrayBuffer> {
  // A view of shared memory cannot be sent, and one that its owner goes on writing to must not be.
  return typeof input === "string" ? utf8Encoder.encode(input) : new Uint8Array(input);
}

function toNullable(input: BytesInput | null | undefined): Uint8Array | null {
  if (input === null || input === undefined) return null;
  return typeof input === "string" ? utf8Encoder.encode(input) : input;
}

/** The records of a page in the binary format. Throws `malformed_answer`. */
export function readBinaryPage(body: Uint8Array): PicoRecord[] {
  let stored: StoredRecord[];
  try {
    stored = decodePicoBinaryPage(body);
  } catch (error) {
    throw malformed("the answer is no page of records", error);
  }
  return stored.map(({ offset, timestampMs, key, headers, body: bytes }) => new PicoRecord(offset, timestampMs, key, headers, bytes));
}

/** The records of a page in the JSON format (Pico 7). Throws `malformed_answer`. */
export function readJsonPage(text: string): PicoRecord[] {
  const items = parseJson(text);
  if (!Array.isArray(items)) throw malformed("the event is no list of records");
  return items.map(readJsonRecord);
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw malformed("the answer is no JSON", error);
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readJsonRecord(item: unknown): PicoRecord {
  if (!isObject(item)) throw malformed("a record is no object");
  const headers = item.headers ?? [];
  if (!Array.isArray(headers)) throw malformed("the headers of a record are no list");
  return new PicoRecord(
    readWhole(item, "seq"),
    readWhole(item, "timestamp"),
    readBytes(item, "key"),
    headers.map(readJsonHeader),
    readBytes(item, "body"),
  );
}

function readJsonHeader(item: unknown): PicoHeader {
  if (isObject(item) && typeof item.name === "string") return { name: item.name, value: readBytes(item, "value") };
  throw malformed("a header of a record has no name");
}

/** Text, or base64 beside it; null where there is neither. */
function readBytes(item: Readonly<Record<string, unknown>>, name: string): Uint8Array | null {
  const encoded = item[`${name}_b64`];
  if (typeof encoded === "string") return decodeBase64(encoded);
  const text = item[name] ?? null;
  if (text === null) return null;
  if (typeof text === "string") return utf8Encoder.encode(text);
  throw malformed(`${name} of a record is no text`);
}

export function readWhole(item: Readonly<Record<string, unknown>>, name: string): number {
  const value = item[name];
  if (typeof value === "number" && Number.isSafeInteger(value) && value >= 0) return value;
  throw malformed(`${name} is no whole number below 2^53`);
}
