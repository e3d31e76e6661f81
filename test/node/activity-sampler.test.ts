import { describe, expect, test } from "bun:test";
import { ACTIVITY_SAMPLE_MS, ACTIVITY_SAMPLES_MAX } from "../../src/lib/limits.ts";
import { ActivitySampler } from "../../src/node/activity-sampler.ts";
import { Traffic } from "../../src/protocol/traffic.ts";
import { StreamFigures } from "../../src/streams/counted-streams.ts";
import { ManualClock } from "../support/manual-clock.ts";

function startSampler() {
  const clock = new ManualClock();
  const streams = new StreamFigures();
  const traffic = [new Traffic(), new Traffic()] as const;
  const sampler = new ActivitySampler(clock, streams, traffic);
  sampler.start();
  return { clock, streams, traffic, sampler };
}

describe("the samples of a node's activity", () => {
  test("a sample holds what happened in it and nothing of the one before", async () => {
    const { clock, streams, traffic, sampler } = startSampler();
    streams.appendCount = 3;
    streams.appendRecords = 30;
    streams.appendBytes = 300;
    streams.appends.record(4);
    traffic[0].answered("append", 503, 1);
    traffic[1].answered("append", 429, 1);
    traffic[1].answered("read", 500, 1);
    traffic[1].answered("read", 404, 1);
    await clock.advance(ACTIVITY_SAMPLE_MS);
    streams.readCount = 1;
    streams.reads.record(1);
    await clock.advance(ACTIVITY_SAMPLE_MS);
    const [first, second] = sampler.samples(null);
    expect(first).toMatchObject({ appends: 3, appendRecords: 30, appendBytes: 300, refused: 2, failed: 1, reads: 0, readP50Ms: null });
    expect(first).toMatchObject({ appendP50Ms: 4, appendP99Ms: 4, appendMaxMs: 4, spanMs: ACTIVITY_SAMPLE_MS });
    expect(second).toMatchObject({ appends: 0, appendP50Ms: null, appendMaxMs: null, refused: 0, failed: 0, reads: 1, readMaxMs: 1 });
  });

  test("ten minutes are kept, and since tells only what came behind it", async () => {
    const { clock, sampler } = startSampler();
    await clock.advance(ACTIVITY_SAMPLE_MS * (ACTIVITY_SAMPLES_MAX + 50));
    const samples = sampler.samples(null);
    expect(samples.length).toBe(ACTIVITY_SAMPLES_MAX);
    expect(samples.at(-1)?.atMs).toBe(clock.nowMs());
    const since = samples.at(-3)?.atMs ?? 0;
    expect(sampler.samples(since)).toEqual(samples.slice(-2));
    expect(sampler.samples(clock.nowMs())).toEqual([]);
  });

  test("a wall clock that steps moves all samples, and who asks by the old time gets all of them", async () => {
    const { clock, sampler } = startSampler();
    await clock.advance(ACTIVITY_SAMPLE_MS * 3);
    const before = sampler.samples(null).map(({ atMs }) => atMs);
    clock.stepWall(-3_600_000);
    await clock.advance(ACTIVITY_SAMPLE_MS);
    const after = sampler.samples(before.at(-1) ?? 0);
    expect(after.map(({ atMs }) => atMs)).toEqual([...before.map((atMs) => atMs - 3_600_000), clock.nowMs()]);
  });

  test("an event loop that stood still shows in one sample, as its delay and its length", async () => {
    const { clock, sampler } = startSampler();
    await clock.advance(ACTIVITY_SAMPLE_MS);
    clock.stall(1500);
    await clock.advance(ACTIVITY_SAMPLE_MS * 2);
    const delays = sampler.samples(null).map(({ eventLoopDelayMs }) => eventLoopDelayMs);
    expect(delays.filter((delay) => delay > 0)).toEqual([1400]);
    expect(sampler.eventLoopDelays.sumMs).toBe(1400);
  });

  test("a sampler that is stopped leaves no timer", async () => {
    const { clock, sampler } = startSampler();
    await clock.advance(ACTIVITY_SAMPLE_MS);
    sampler.stop();
    expect(clock.timerCount).toBe(0);
  });
});
