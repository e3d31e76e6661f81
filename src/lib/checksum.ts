/**
 * The one checksum of every stored format: XXH3, 64 bits, seed 0
 * (https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md). It guards against decay and torn
 * writes, not against an adversary.
 */
export function checksum64(bytes: Uint8Array): bigint {
  return Bun.hash.xxHash3(bytes);
}

/** Bytes that a stored checksum takes. */
export const CHECKSUM_BYTES = 8;
