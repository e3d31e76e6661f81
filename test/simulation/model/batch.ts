/**
 * What writers send. Every record says which batch it is of and where in it, so that whoever reads it
 * knows what it must look like: a batch is made anew from its number and compared.
 */
import type { NewRecord, RecordHeader } from "../../../src/engine/record.ts";
import type { ProducerStamp } from "../../../src/engine/tail-state.ts";
import { decodeUtf8, utf8Encoder } from "../../../src/lib/bytes.ts";
import { Prng } from "../world/prng.ts";

/** `acked`: answered as written. `duplicate`: answered as written before. `refused`: certainly not written. */
export type BatchStatus = "open" | "acked" | "duplicate" | "refused";

export interface BatchPlan {
  readonly batchId: number;
  /** Stream it was sent to. */
  readonly name: string;
  readonly count: number;
  /** Bytes of padding in each body. */
  readonly paddingBytes: number;
  readonly closes: boolean;
  readonly producer: ProducerStamp | null;
  /** Initial records of a create. */
  readonly isCreate: boolean;
}

export class Batch {
  status: BatchStatus = "open";
  /** Requests with it that are under way. */
  underWay = 0;
  /** A request with it was lost, or answered with an outcome that is open: it may be written, or be yet. */
  isOpen = false;

  /** Records as they must be read, made when first asked for. */
  readonly #expected: NewRecord[] = [];

  constructor(readonly plan: BatchPlan) {}

  /** To be sent: made anew at every call, for a server that wrote into them must not change what is expected. */
  records(): readonly NewRecord[] {
    return Array.from({ length: this.plan.count }, (_, index) => this.#make(index));
  }

  /** One record, to be compared with what was read. */
  record(index: number): NewRecord {
    this.#expected[index] ??= this.#make(index);
    return this.#expected[index];
  }

  /** The same at every call. Three shapes: all in the body, all in the key, everything set. */
  #make(index: number): NewRecord {
    const { batchId, name, paddingBytes } = this.plan;
    const prng = new Prng(`batch ${batchId}.${index}`);
    const identity = `${batchId}.${index}`;
    const padding = prng
      .bytes(Math.ceil(paddingBytes / 2))
      .toHex()
      .slice(0, paddingBytes);
    const text = JSON.stringify({ i: identity, s: name, p: padding });
    const shape = prng.below(10);
    if (shape === 0) return { key: utf8Encoder.encode(text), headers: [], body: null };
    if (shape === 1) {
      const headers: RecordHeader[] = [
        { name: "h", value: prng.bytes(prng.below(9)) },
        { name: "h", value: null },
      ];
      return { key: prng.bytes(prng.below(5)), headers, body: utf8Encoder.encode(text) };
    }
    return { key: null, headers: [], body: utf8Encoder.encode(text) };
  }
}

const IDENTITY = /^\{"i":"(\d+)\.(\d+)"/;

/** Which batch a record says it is of; null where it says nothing that a batch would. */
export function identityOf(record: NewRecord): { readonly batchId: number; readonly index: number } | null {
  const text = decodeUtf8(record.body ?? record.key ?? new Uint8Array(0));
  const match = text === null ? null : IDENTITY.exec(text);
  if (match === null) return null;
  return { batchId: Number(match[1]), index: Number(match[2]) };
}

/** Deep equality of what a client gave and what a reader got. */
export function sameRecord(left: NewRecord, right: NewRecord): boolean {
  return (
    sameBytes(left.key, right.key) &&
    sameBytes(left.body, right.body) &&
    left.headers.length === right.headers.length &&
    left.headers.every((header, at) => {
      const other = right.headers[at];
      return other !== undefined && other.name === header.name && sameBytes(header.value, other.value);
    })
  );
}

function sameBytes(left: Uint8Array | null, right: Uint8Array | null): boolean {
  if (left === null || right === null) return left === right;
  return Buffer.compare(left, right) === 0;
}
