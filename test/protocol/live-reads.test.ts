import { describe, expect, test } from "bun:test";
import type { Clock } from "../../src/lib/clock.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { EVENT_STREAMS_PER_TURN } from "../../src/lib/limits.ts";
import { type EventSource, LiveReads, type NextChunk } from "../../src/protocol/live-reads.ts";
import { quiet } from "../support/manual-clock.ts";

/** Fires nothing by itself; `fire` runs what is due. */
class HandClock implements Clock {
  readonly timers = new Set<() => void>();
  nowMs = () => 0;
  monotonicMs = () => 0;
  schedule(_delayMs: number, run: () => void) {
    this.timers.add(run);
    return { cancel: () => this.timers.delete(run) };
  }
  readonly turns: (() => void)[] = [];
  soon(run: () => void): void {
    this.turns.push(run);
  }
  turn(): void {
    this.turns.shift()?.();
  }
  fire(): void {
    for (const run of [...this.timers]) run();
  }
}

/** Counts what it was asked for, and has `chunks` for its reader; behind them it waits until `wake` is called. */
class CountingSource implements EventSource {
  asked = 0;
  wake: (() => void) | null = null;
  constructor(public chunks = Number.POSITIVE_INFINITY) {}
  next(wake: () => void): Uint8Array | "wait" {
    this.asked += 1;
    if (this.asked <= this.chunks) return new Uint8Array(64 * 1024);
    this.wake = wake;
    return "wait";
  }
  stopWaiting(): void {
    this.wake = null;
  }
}

function lost(): never {
  throw new Error("lost");
}

function open(source: EventSource, liveReads = new LiveReads(10, new AbortController().signal)) {
  const clock = new HandClock();
  let ends = 0;
  const body = liveReads.stream(source, { clock, durationMs: 1000, onEnd: () => (ends += 1) });
  return { body, clock, liveReads, ends: () => ends };
}

describe("event streams", () => {
  test("a reader that takes nothing makes the source make next to nothing", async () => {
    const source = new CountingSource();
    const { body } = open(source);
    const reader = body.getReader();
    await reader.read();
    for (let i = 0; i < 100; i++) await Promise.resolve();
    expect(source.asked).toBeLessThanOrEqual(2);
    await reader.cancel();
  });

  test("the time-out ends a stalled reader's stream, and it is forgotten once", async () => {
    const { body, clock, liveReads, ends } = open(new CountingSource());
    const reader = body.getReader();
    await reader.read();
    clock.fire();
    while (!(await reader.read()).done);
    expect(liveReads.count).toBe(0);
    expect(ends()).toBe(1);
    expect(clock.timers.size).toBe(0);
  });

  test("a stop ends a waiting stream cleanly, behind the chunks that were made", async () => {
    const stopping = new AbortController();
    const { body, liveReads, ends } = open(new CountingSource(1), new LiveReads(10, stopping.signal));
    const reader = body.getReader();
    expect((await reader.read()).done).toBe(false);
    const last = reader.read();
    stopping.abort();
    expect((await last).done).toBe(true);
    expect(liveReads.count).toBe(0);
    expect(ends()).toBe(1);
  });

  test("a client that leaves takes the source's wait back and is forgotten", async () => {
    const source = new CountingSource(1);
    const { body, liveReads, ends, clock } = open(source);
    const reader = body.getReader();
    await reader.read();
    await reader.cancel();
    expect(liveReads.count).toBe(0);
    expect(source.wake).toBeNull();
    expect(ends()).toBe(1);
    expect(clock.timers.size).toBe(0);
  });

  test.each([
    ["throws", () => lost()],
    ["rejects", async () => lost()],
  ])("a source that %s breaks the stream off instead of ending it", async (_, next) => {
    const { body, liveReads } = open({ next, stopWaiting() {} });
    const failure = await body
      .getReader()
      .read()
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(liveReads.count).toBe(0);
  });

  test("a chunk that is being made when the stream is ended is sent before the end", async () => {
    const stopping = new AbortController();
    const made = Promise.withResolvers<NextChunk>();
    const { body, ends } = open({ next: () => made.promise, stopWaiting() {} }, new LiveReads(10, stopping.signal));
    const reader = body.getReader();
    const chunk = reader.read();
    await quiet();
    stopping.abort();
    expect(ends()).toBe(0);
    made.resolve(new Uint8Array(1));
    expect((await chunk).value?.length).toBe(1);
    expect((await reader.read()).done).toBe(true);
    expect(ends()).toBe(1);
  });

  test("of many that are woken at once a bounded number is served in a turn, all of them in the end", async () => {
    const liveReads = new LiveReads(1000, new AbortController().signal);
    const clock = new HandClock();
    const sources = Array.from({ length: EVENT_STREAMS_PER_TURN * 2 + 1 }, () => new CountingSource(0));
    const bodies = sources.map((source) => liveReads.stream(source, { clock, durationMs: 1000, onEnd: () => {} }).getReader());
    const reads = bodies.map((body) => body.read());
    while (sources.some(({ wake }) => wake === null)) await quiet();
    for (const source of sources) {
      source.chunks = source.asked + 1;
      source.wake?.();
    }
    const served = () => sources.filter(({ asked }) => asked > 1).length;
    const counts = [served()];
    while (clock.turns.length > 0) {
      clock.turn();
      counts.push(served());
    }
    expect(counts).toEqual([0, EVENT_STREAMS_PER_TURN, EVENT_STREAMS_PER_TURN * 2, sources.length]);
    for (const read of await Promise.all(reads)) expect(read.value?.length).toBe(64 * 1024);
    await Promise.all(bodies.map((body) => body.cancel()));
    expect(liveReads.count).toBe(0);
  });

  test("one that is ended between its wake and its turn gets its chunk first", async () => {
    const source = new CountingSource(0);
    const { body, clock, ends } = open(source);
    const reader = body.getReader();
    const read = reader.read();
    while (source.wake === null) await quiet();
    source.chunks = source.asked + 1;
    source.wake();
    clock.fire();
    expect(ends()).toBe(0);
    clock.turn();
    expect((await read).value?.length).toBe(64 * 1024);
    expect((await reader.read()).done).toBe(true);
    expect(ends()).toBe(1);
  });

  test("one live read more than the limit is refused as unavailable", () => {
    const liveReads = new LiveReads(1, new AbortController().signal);
    open(new CountingSource(0), liveReads);
    let code = "none";
    try {
      open(new CountingSource(0), liveReads);
    } catch (error) {
      if (isPicoError(error)) code = error.code;
    }
    expect(code).toBe("unavailable");
  });
});

describe("waits", () => {
  const untilAborted = (signal: AbortSignal) =>
    new Promise<string>((resolve) => {
      if (signal.aborted) resolve("aborted");
      signal.addEventListener("abort", () => resolve("aborted"), { once: true });
    });

  test("a client that leaves, or a stop, aborts the wait", async () => {
    const stopping = new AbortController();
    const client = new AbortController();
    const liveReads = new LiveReads(10, stopping.signal);
    const left = liveReads.wait(client.signal, untilAborted);
    const stopped = liveReads.wait(new AbortController().signal, untilAborted);
    expect(liveReads.count).toBe(2);
    client.abort();
    expect(await left).toBe("aborted");
    stopping.abort();
    expect(await stopped).toBe("aborted");
    expect(await liveReads.wait(new AbortController().signal, untilAborted)).toBe("aborted");
    expect(liveReads.count).toBe(0);
  });
});
