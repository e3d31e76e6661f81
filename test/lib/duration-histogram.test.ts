import { describe, expect, test } from "bun:test";
import { DurationHistogram, DurationWindow } from "../../src/lib/duration-histogram.ts";
import { SeededRandom } from "../support/seeded-random.ts";

function recorded(...durationsMs: number[]): DurationHistogram {
  const histogram = new DurationHistogram();
  for (const ms of durationsMs) histogram.record(ms);
  return histogram;
}

describe("a histogram of durations", () => {
  test("counts a duration at a bound below it, and one just above it not", () => {
    const histogram = recorded(1, 1.001, 2, 0.25, 0.2501, 16_384);
    expect(histogram.cumulativeCounts([0.25, 0.5, 1, 2, 4, 16_384])).toEqual([1, 2, 3, 5, 5, 6]);
    expect(histogram.count).toBe(6);
    expect(histogram.sumMs).toBeCloseTo(16_388.5011);
  });

  test("takes what is no duration for none, and anything longer than half an hour for that", () => {
    const histogram = recorded(-5, Number.NaN, Number.POSITIVE_INFINITY, 1e12);
    expect(histogram.cumulativeCounts([2 ** -10, 2 ** 21])).toEqual([3, 4]);
    expect(histogram.sumMs).toBe(1e12);
  });

  test("a window tells median, 99th percentile and maximum to a sixteenth, whatever the durations are", () => {
    const random = new SeededRandom(7);
    const histogram = new DurationHistogram();
    const window = new DurationWindow(histogram);
    for (let round = 0; round < 50; round++) {
      const durations = Array.from({ length: 1 + round * 7 }, () => 2 ** (random.fraction() * 24 - 8)).sort((left, right) => left - right);
      for (const ms of durations) histogram.record(ms);
      const spread = window.take();
      expect(spread.count).toBe(durations.length);
      for (const [share, ms] of [
        [0.5, spread.p50Ms],
        [0.99, spread.p99Ms],
        [1, spread.maxMs],
      ] as const) {
        const truth = durations[Math.ceil(durations.length * share) - 1] ?? 0;
        expect(ms).toBeGreaterThanOrEqual(truth);
        expect(ms).toBeLessThanOrEqual(truth * (17 / 16) + 1 / 1024);
      }
    }
  });

  test("a window without durations has none, and begins anew at each look", () => {
    const histogram = recorded(5);
    const window = new DurationWindow(histogram);
    const nothing = { count: 0, p50Ms: null, p99Ms: null, maxMs: null };
    expect(window.take()).toEqual(nothing);
    histogram.record(1);
    expect(window.take().count).toBe(1);
    expect(window.take()).toEqual(nothing);
  });
});
