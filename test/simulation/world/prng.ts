/**
 * The one source of chance of a simulated run: sfc32 (Chris Doty-Humphrey, PractRand), seeded from a
 * text. Each part of the simulator draws from a branch of its own, named after it, so that a part which
 * draws once more does not change what the others draw.
 */
import type { Random } from "../../../src/lib/random.ts";

export class Prng implements Random {
  #a: number;
  #b: number;
  #c: number;
  #counter = 1;

  constructor(readonly seed: string) {
    const low = Bun.hash.xxHash64(seed, 1n);
    const high = Bun.hash.xxHash64(seed, 2n);
    this.#a = Number(low & 0xffff_ffffn);
    this.#b = Number(low >> 32n);
    this.#c = Number(high & 0xffff_ffffn);
    for (let i = 0; i < 12; i++) this.next();
  }

  /** An independent sequence, the same for the same seed and name. */
  branch(name: string): Prng {
    return new Prng(`${this.seed}/${name}`);
  }

  /** 32 uniformly random bits. */
  next(): number {
    const sum = (((this.#a + this.#b) | 0) + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** Uniform in [0, 1). */
  fraction(): number {
    return (this.next() * 2 ** 21 + (this.next() >>> 11)) / 2 ** 53;
  }

  bytes(length: number): Uint8Array {
    const bytes = new Uint8Array(length);
    for (let i = 0; i < length; i++) bytes[i] = this.next() & 0xff;
    return bytes;
  }

  /** Uniform whole number in [0, bound). */
  below(bound: number): number {
    return Math.floor(this.fraction() * bound);
  }

  /** Uniform whole number in [low, high]. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** One of the choices, which must not be empty. */
  pick<T>(choices: readonly T[]): T {
    const choice = choices[this.below(choices.length)];
    if (choice === undefined) throw new RangeError("nothing to pick from");
    return choice;
  }

  /** Exponentially distributed around `mean`: mostly small, now and then several times as much. */
  around(mean: number): number {
    return -Math.log(1 - this.fraction()) * mean;
  }

  /** A number between `low` and `high`, small orders of magnitude as likely as large ones. */
  magnitude(low: number, high: number): number {
    return Math.exp(Math.log(low) + this.fraction() * (Math.log(high) - Math.log(low)));
  }
}
