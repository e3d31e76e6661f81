/**
 * Which stream ids a data object may hold. A Bloom filter of 14.4 bits and 10 hashes an id: no id that
 * was added is ever denied, and one in a thousand of the others is let through.
 *
 * Stored form: u32 count of bits, u8 count of hashes, then the bits, lowest first in each byte.
 */
import type { ByteReader, ByteWriter } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";

const BITS_PER_ID = 14.4;
const HASH_COUNT = 10;
const HASH_COUNT_MAX = 32;

export class BloomFilter {
  private constructor(
    private readonly bits: Uint8Array,
    private readonly hashCount: number,
  ) {}

  static of(streamIds: readonly number[]): BloomFilter {
    const filter = new BloomFilter(new Uint8Array(Math.ceil((streamIds.length * BITS_PER_ID) / 8) + 1), HASH_COUNT);
    for (const streamId of streamIds) filter.#add(streamId);
    return filter;
  }

  /** Reads a filter in place: it shares memory with the reader's bytes. */
  static decode(reader: ByteReader): BloomFilter {
    const bitCount = reader.u32();
    const hashCount = reader.u8();
    if (bitCount === 0 || bitCount % 8 !== 0 || hashCount === 0 || hashCount > HASH_COUNT_MAX) {
      throw new PicoError("corrupt", `${reader.what}: a filter of ${bitCount} bits and ${hashCount} hashes`, { where: reader.what });
    }
    return new BloomFilter(reader.bytes(bitCount / 8), hashCount);
  }

  encode(out: ByteWriter): void {
    out.u32(this.bits.length * 8);
    out.u8(this.hashCount);
    out.bytes(this.bits);
  }

  /** False only if the id was never added. */
  mayContain(streamId: number): boolean {
    const bitCount = this.bits.length * 8;
    const [first, step] = hashesOf(streamId);
    for (let i = 0; i < this.hashCount; i++) {
      const bit = bitOf(first, step, i, bitCount);
      if (((this.bits[bit >>> 3] ?? 0) & (1 << (bit & 7))) === 0) return false;
    }
    return true;
  }

  #add(streamId: number): void {
    const bitCount = this.bits.length * 8;
    const [first, step] = hashesOf(streamId);
    for (let i = 0; i < this.hashCount; i++) {
      const bit = bitOf(first, step, i, bitCount);
      this.bits[bit >>> 3] = (this.bits[bit >>> 3] ?? 0) | (1 << (bit & 7));
    }
  }
}

/** The i-th of the bits that an id sets: the 32-bit hash `first + i * step`, scaled to the filter. */
function bitOf(first: number, step: number, i: number, bitCount: number): number {
  return Math.floor(((first + Math.imul(i, step)) >>> 0) * (bitCount / 2 ** 32));
}

/** Two independent hashes of an id in [0, 2^53). The step is odd, so that the bits of an id differ. */
function hashesOf(streamId: number): readonly [number, number] {
  const low = streamId >>> 0;
  const high = Math.floor(streamId / 2 ** 32);
  const first = mix(low ^ mix(high ^ 0x9e3779b9));
  return [first, mix(first ^ mix(low ^ 0x85ebca6b)) | 1];
}

/** The finaliser of MurmurHash3, 32 bits (https://github.com/aappleby/smhasher, MurmurHash3.cpp). */
function mix(value: number): number {
  let mixed = value;
  mixed = Math.imul(mixed ^ (mixed >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return mixed ^ (mixed >>> 16);
}
