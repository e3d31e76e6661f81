/**
 * How badly a service treats its callers: drawn once a seed, so that some seeds are calm in one place
 * and stormy in another. Chances are per call, delays in true milliseconds.
 */
import type { Prng } from "../world/prng.ts";

export interface Weather {
  /** Mean of one way. */
  readonly delayMs: number;
  /** Of being slow: that call takes about ten times as long. */
  readonly slowChance: number;
  /** The service says no, and did nothing. */
  readonly refuseChance: number;
  /** The request never arrives. */
  readonly loseRequestChance: number;
  /** It took effect, and nobody hears of it. */
  readonly loseAnswerChance: number;
  /** It takes effect after its caller has given up. */
  readonly lateChance: number;
  /** When a caller gives up. */
  readonly timeoutMs: number;
  /** No request takes effect later than this. */
  readonly lateMsMax: number;
}

export const CALM: Weather = {
  delayMs: 1,
  slowChance: 0,
  refuseChance: 0,
  loseRequestChance: 0,
  loseAnswerChance: 0,
  lateChance: 0,
  timeoutMs: 10_000,
  lateMsMax: 10_000,
};

export function drawWeather(prng: Prng): Weather {
  const chance = (highest: number): number => (prng.chance(0.5) ? 0 : prng.magnitude(highest / 100, highest));
  const timeoutMs = prng.magnitude(300, 10_000);
  return {
    delayMs: prng.magnitude(0.2, 40),
    slowChance: chance(0.1),
    refuseChance: chance(0.08),
    loseRequestChance: chance(0.04),
    loseAnswerChance: chance(0.08),
    lateChance: chance(0.04),
    timeoutMs,
    // Within what the server holds to be the latest (`LATE_WRITE_MS`).
    lateMsMax: prng.chance(0.3) ? prng.between(60_000, 240_000) : timeoutMs * prng.between(2, 10),
  };
}
