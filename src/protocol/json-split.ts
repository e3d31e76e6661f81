/**
 * JSON bodies of the Durable Streams protocol (9.1, Pico 13.1): a top-level array is flattened exactly
 * one level, every element a record; any other value is one record. Values are never re-serialised
 * through numbers or objects: member order, repeated members and the text of numbers stay as sent, only
 * white space between tokens goes away.
 */
import { decodeUtf8 } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { BATCH_RECORDS_MAX } from "../lib/limits.ts";

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const SPACE = 0x20;

/**
 * The records of a JSON body; none for `[]`. Throws `bad_request` for what is not one JSON value in
 * UTF-8, and for more than `BATCH_RECORDS_MAX` elements. The results share memory with each other.
 */
export function splitJsonBody(body: Uint8Array): Uint8Array[] {
  checkIsJson(body);
  const compact = new Uint8Array(body.length);
  const length = compactJson(body, compact);
  if (compact[0] !== OPEN_BRACKET) return [compact.subarray(0, length)];
  return splitElements(compact.subarray(0, length));
}

function checkIsJson(body: Uint8Array): void {
  const text = decodeUtf8(body);
  if (text === null) throw new PicoError("bad_request", "body is not UTF-8, as JSON must be", { what: "body" });
  try {
    JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new PicoError("bad_request", `body is not JSON: ${reason.slice(0, 200)}`, { what: "body" });
  }
}

/** Copies valid JSON without the white space outside of strings; returns how many bytes that took. */
function compactJson(source: Uint8Array, target: Uint8Array): number {
  let length = 0;
  let isInString = false;
  for (let at = 0; at < source.length; at++) {
    const byte = source[at] ?? 0;
    if (isInString) {
      target[length++] = byte;
      if (byte === BACKSLASH) target[length++] = source[++at] ?? 0;
      else if (byte === QUOTE) isInString = false;
    } else if (byte > SPACE) {
      target[length++] = byte;
      isInString = byte === QUOTE;
    }
  }
  return length;
}

/** The elements of a compact, valid JSON array. */
function splitElements(array: Uint8Array): Uint8Array[] {
  const elements: Uint8Array[] = [];
  let depth = 0;
  let elementStart = 1;
  let isInString = false;
  for (let at = 0; at < array.length; at++) {
    const byte = array[at] ?? 0;
    if (isInString) {
      if (byte === BACKSLASH) at += 1;
      else if (byte === QUOTE) isInString = false;
      continue;
    }
    if (byte === QUOTE) {
      isInString = true;
    } else if (byte === OPEN_BRACKET || byte === OPEN_BRACE) {
      depth += 1;
    } else if (byte === CLOSE_BRACE || byte === CLOSE_BRACKET) {
      depth -= 1;
      if (depth === 0 && at > elementStart) elements.push(array.subarray(elementStart, at));
    } else if (byte === COMMA && depth === 1) {
      elements.push(array.subarray(elementStart, at));
      elementStart = at + 1;
    }
  }
  if (elements.length > BATCH_RECORDS_MAX) {
    throw new PicoError("bad_request", `array holds ${elements.length} values, the limit is ${BATCH_RECORDS_MAX} records a request`, {
      what: "body",
    });
  }
  return elements;
}
