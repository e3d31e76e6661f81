/** Random records from a seed, and how tests compare them. */
import type { NewRecord, StoredRecord } from "../../src/engine/record.ts";
import { encodeRecordBatch } from "../../src/engine/record-batch.ts";
import { RecordBatchView } from "../../src/engine/record-batch-view.ts";
import { ByteWriter } from "../../src/lib/bytes.ts";

/** Uniform in [0, 1), the same run for the same seed (mulberry32). */
export function seededFraction(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

export class Chance {
  readonly #fraction: () => number;

  constructor(seed: number) {
    this.#fraction = seededFraction(seed);
  }

  below(bound: number): number {
    return Math.floor(this.#fraction() * bound);
  }

  happens(probability: number): boolean {
    return this.#fraction() < probability;
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.below(256));
  }

  nullableBytes(lengthMax: number): Uint8Array | null {
    return this.happens(0.3) ? null : this.bytes(this.below(lengthMax + 1));
  }

  record(isPlain: boolean, bodyBytesMax = 40): NewRecord {
    if (isPlain) return plainRecord(this.bytes(this.below(bodyBytesMax + 1)));
    const headers = Array.from({ length: this.below(3) }, () => ({ name: `名${this.below(9)}`, value: this.nullableBytes(5) }));
    return { key: this.nullableBytes(6), headers, body: this.nullableBytes(bodyBytesMax) };
  }

  records(count: number, isPlain: boolean): NewRecord[] {
    return Array.from({ length: count }, () => this.record(isPlain));
  }
}

export function plainRecord(body: Uint8Array | string): NewRecord {
  return { key: null, headers: [], body: typeof body === "string" ? new TextEncoder().encode(body) : body };
}

/** The batch alone in its own bytes. */
export function batchOf(baseOffset: number, timestampMs: number, records: readonly NewRecord[]): RecordBatchView {
  const out = new ByteWriter();
  encodeRecordBatch(out, baseOffset, timestampMs, records);
  return new RecordBatchView(out.copy());
}

/** Records as plain data: views become hexadecimal text, so that they compare by content. */
export function readable(records: Iterable<StoredRecord>): unknown[] {
  const text = (bytes: Uint8Array | null) => (bytes === null ? null : bytes.toHex());
  return Array.from(records, (record) => ({
    offset: record.offset,
    timestampMs: record.timestampMs,
    key: text(record.key),
    headers: record.headers.map((header) => [header.name, text(header.value)]),
    body: text(record.body),
  }));
}

/** What should be read back of records that were appended at `baseOffset`. */
export function stored(baseOffset: number, timestampMs: number, records: readonly NewRecord[]): StoredRecord[] {
  return records.map((record, i) => ({ ...record, offset: baseOffset + i, timestampMs }));
}
