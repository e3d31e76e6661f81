import type { Prng } from "../world/prng.ts";

/** How badly a disk treats its host: drawn once a seed. Chances are per call, delays in true milliseconds. */
export interface DiskWeather {
  readonly delayMs: number;
  /** Of a sync failing: the pages it covered are lost or not, and never written again. */
  readonly syncFailChance: number;
  /** Of a write failing half-way. */
  readonly writeFailChance: number;
}

export const CALM_DISK: DiskWeather = { delayMs: 0.3, syncFailChance: 0, writeFailChance: 0 };

export function drawDiskWeather(prng: Prng): DiskWeather {
  return {
    delayMs: prng.magnitude(0.1, 20),
    syncFailChance: prng.chance(0.6) ? 0 : prng.magnitude(0.0005, 0.01),
    writeFailChance: prng.chance(0.8) ? 0 : prng.magnitude(0.0005, 0.01),
  };
}
