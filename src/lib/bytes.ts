/**
 * Reading and writing of binary layouts: big-endian, no padding. The writer grows; the reader never
 * reads past its end, and throws `corrupt` instead.
 */
import { assert } from "./assert.ts";
import { PicoError } from "./errors.ts";

export const utf8Encoder = new TextEncoder();
/** Strict: a byte sequence that is not UTF-8 throws; a BOM is kept. */
export const utf8Decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export const EMPTY_BYTES = new Uint8Array(0);

/** The text, or null where the bytes are not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | null {
  try {
    return utf8Decoder.decode(bytes);
  } catch {
    return null;
  }
}

export function concatBytes(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  let size = 0;
  for (const part of parts) size += part.length;
  const whole = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Byte-wise equality. */
export function equalBytes(left: Uint8Array, right: Uint8Array): boolean {
  if (left.length !== right.length) return false;
  for (let i = 0; i < left.length; i++) if (left[i] !== right[i]) return false;
  return true;
}

export class ByteWriter {
  /** Bytes written so far; only `[0, length)` of `buffer` is meaningful. */
  length = 0;
  buffer: Uint8Array;
  /** Made when first needed: asking a small array for its memory costs ten times its making. */
  #view: DataView | null = null;

  constructor(capacity = 256) {
    this.buffer = new Uint8Array(capacity);
  }

  /** Makes room for `count` more bytes; `buffer` may be another array afterwards. */
  reserve(count: number): void {
    const needed = this.length + count;
    if (needed <= this.buffer.length) return;
    const grown = new Uint8Array(Math.max(needed, this.buffer.length * 2));
    grown.set(this.buffer.subarray(0, this.length));
    this.buffer = grown;
    this.#view = null;
  }

  u8(value: number): void {
    this.reserve(1);
    this.buffer[this.length++] = value;
  }

  u16(value: number): void {
    this.reserve(2);
    this.buffer[this.length++] = value >>> 8;
    this.buffer[this.length++] = value;
  }

  u32(value: number): void {
    this.reserve(4);
    this.patchU32(this.length, value);
    this.length += 4;
  }

  i32(value: number): void {
    this.u32(value);
  }

  /** A whole number in [0, 2^53). */
  u64(value: number): void {
    this.reserve(8);
    this.patchU32(this.length, Math.floor(value / 2 ** 32));
    this.patchU32(this.length + 4, value);
    this.length += 8;
  }

  bigU64(value: bigint): void {
    this.reserve(8);
    this.patchBigU64(this.length, value);
    this.length += 8;
  }

  /** LEB128, for a whole number in [0, 2^53). */
  varint(value: number): void {
    this.reserve(8);
    let rest = value;
    while (rest >= 0x80) {
      this.buffer[this.length++] = (rest % 0x80) | 0x80;
      rest = Math.floor(rest / 0x80);
    }
    this.buffer[this.length++] = rest;
  }

  bytes(value: Uint8Array): void {
    this.reserve(value.length);
    this.buffer.set(value, this.length);
    this.length += value.length;
  }

  /** Varint length, then the bytes. */
  lengthPrefixed(value: Uint8Array): void {
    this.varint(value.length);
    this.bytes(value);
  }

  /** Varint length in bytes, then UTF-8. */
  text(value: string): void {
    this.lengthPrefixed(utf8Encoder.encode(value));
  }

  /** Overwrites four bytes written earlier. */
  patchU32(at: number, value: number): void {
    this.buffer[at] = value >>> 24;
    this.buffer[at + 1] = value >>> 16;
    this.buffer[at + 2] = value >>> 8;
    this.buffer[at + 3] = value;
  }

  patchBigU64(at: number, value: bigint): void {
    this.#view ??= new DataView(this.buffer.buffer);
    this.#view.setBigUint64(at, value);
  }

  /** A view of what was written; it shares memory with the writer. */
  written(): Uint8Array {
    return this.buffer.subarray(0, this.length);
  }

  /** A copy of what was written, exactly as long. */
  copy(): Uint8Array {
    return this.buffer.slice(0, this.length);
  }
}

export class ByteReader {
  /** Made when first needed: many readers see single bytes and varints only. */
  #view: DataView | null = null;

  constructor(
    readonly buffer: Uint8Array,
    public at = 0,
    readonly end = buffer.length,
    /** Names the bytes in errors. */
    readonly what = "bytes",
  ) {}

  get remaining(): number {
    return this.end - this.at;
  }

  #take(count: number): number {
    const at = this.at;
    if (count > this.end - at) {
      throw new PicoError("corrupt", `${this.what}: cut short at byte ${at}, ${count} more expected`, { where: this.what });
    }
    this.at = at + count;
    return at;
  }

  /** The bytes as numbers of several bytes. */
  #numbers(): DataView {
    this.#view ??= new DataView(this.buffer.buffer, this.buffer.byteOffset, this.buffer.byteLength);
    return this.#view;
  }

  u8(): number {
    const byte = this.buffer[this.#take(1)];
    assert(byte !== undefined, "a reader ends within its bytes");
    return byte;
  }

  u16(): number {
    return this.#numbers().getUint16(this.#take(2));
  }

  u32(): number {
    return this.#numbers().getUint32(this.#take(4));
  }

  i32(): number {
    return this.#numbers().getInt32(this.#take(4));
  }

  u64(): number {
    const at = this.#take(8);
    const value = this.#numbers().getUint32(at) * 2 ** 32 + this.#numbers().getUint32(at + 4);
    if (value > Number.MAX_SAFE_INTEGER) {
      throw new PicoError("corrupt", `${this.what}: number beyond 2^53 at byte ${at}`, { where: this.what });
    }
    return value;
  }

  bigU64(): bigint {
    return this.#numbers().getBigUint64(this.#take(8));
  }

  varint(): number {
    let value = 0;
    let scale = 1;
    for (let i = 0; i < 8; i++) {
      const byte = this.u8();
      value += (byte & 0x7f) * scale;
      if (byte < 0x80) {
        if (value > Number.MAX_SAFE_INTEGER) break;
        return value;
      }
      scale *= 0x80;
    }
    throw new PicoError("corrupt", `${this.what}: varint beyond 2^53 at byte ${this.at}`, { where: this.what });
  }

  /** A view of the next `count` bytes; copy it before keeping it. */
  bytes(count: number): Uint8Array {
    const at = this.#take(count);
    return this.buffer.subarray(at, at + count);
  }

  lengthPrefixed(): Uint8Array {
    return this.bytes(this.varint());
  }

  text(): string {
    const at = this.at;
    const text = decodeUtf8(this.lengthPrefixed());
    if (text === null) throw new PicoError("corrupt", `${this.what}: not UTF-8 at byte ${at}`, { where: this.what });
    return text;
  }

  /** Throws unless every byte was read. */
  expectEnd(): void {
    if (this.at !== this.end) {
      throw new PicoError("corrupt", `${this.what}: ${this.end - this.at} bytes too many at byte ${this.at}`, { where: this.what });
    }
  }
}
