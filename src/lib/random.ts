/**
 * Randomness, as the rest of the server sees it. No other module asks for it elsewhere, so that a
 * simulated run can be repeated from its seed.
 */
export interface Random {
  /** A fresh array of `length` uniformly random bytes. */
  bytes(length: number): Uint8Array;
  /** Uniform in [0, 1). */
  fraction(): number;
}

export const systemRandom: Random = {
  bytes: (length) => crypto.getRandomValues(new Uint8Array(length)),
  fraction: () => Math.random(),
};

/** `byteCount` random bytes as lower-case hex. */
export function randomHex(random: Random, byteCount: number): string {
  return random.bytes(byteCount).toHex();
}

/** Uniform whole number in [0, bound). */
export function randomBelow(random: Random, bound: number): number {
  return Math.floor(random.fraction() * bound);
}
