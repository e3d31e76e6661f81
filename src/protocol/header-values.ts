/** From checked header texts to the values that the streams take. */
import type { ProducerStamp } from "../engine/tail-state.ts";
import { PicoError } from "../lib/errors.ts";
import type { HeaderRecord } from "./exchange.ts";
import { parseStrictU64 } from "./integers.ts";
import { badPart } from "./schema-check.ts";

const U64_WORDS = "a whole number from 0 to 2^64-1 in plain digits";

/** A u64 header or parameter; null where it is absent or empty. Throws `bad_request` for anything else. */
export function readU64(part: "header" | "parameter", name: string, text: string | undefined): bigint | null {
  if (text === undefined || text === "") return null;
  const value = parseStrictU64(text);
  if (value === null) throw badPart(part, name, U64_WORDS, text);
  return value;
}

export interface ProducerHeaderNames {
  readonly producerId: string;
  readonly producerEpoch: string;
  readonly producerSeq: string;
}

/**
 * The producer headers: all three or none. Throws `bad_request` for an empty one, a missing one, or a
 * number beyond `numberMax`.
 */
export function readProducer(headers: HeaderRecord, names: ProducerHeaderNames, numberMax: bigint): ProducerStamp | null {
  const producerId = headers[names.producerId];
  const epoch = headers[names.producerEpoch];
  const seq = headers[names.producerSeq];
  if (producerId === undefined && epoch === undefined && seq === undefined) return null;
  if (producerId === undefined || epoch === undefined || seq === undefined) {
    const missing = producerId === undefined ? names.producerId : epoch === undefined ? names.producerEpoch : names.producerSeq;
    throw new PicoError("bad_request", `header ${missing} is missing: producer headers come all three or not at all`, { what: missing });
  }
  if (producerId === "") throw badPart("header", names.producerId, "a text that is not empty", producerId);
  return {
    producerId,
    producerEpoch: readNumber(names.producerEpoch, epoch, numberMax),
    seq: readNumber(names.producerSeq, seq, numberMax),
  };
}

function readNumber(name: string, text: string, max: bigint): bigint {
  const value = parseStrictU64(text);
  if (value === null || value > max) throw badPart("header", name, `a whole number from 0 to ${max} in plain digits`, text);
  return value;
}

/** The bytes of a header value: HTTP's are octets, which arrive as characters up to U+00FF. */
export function headerBytes(value: string): Uint8Array {
  return Uint8Array.from(Buffer.from(value, "latin1"));
}
