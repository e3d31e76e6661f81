import { describe, expect, test } from "bun:test";
import type { Clock } from "../../src/lib/clock.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { type EventSource, LiveReads } from "../../src/protocol/live-reads.ts";

/** Fires nothing by itself; `fire` runs what is due. */
class HandClock implements Clock {
  readonly timers = new Set<() => void>();
  nowMs = () => 0;
  monotonicMs = () => 0;
  schedule(_delayMs: number, run: () => void) {
    this.timers.add(run);
    return { cancel: () => this.timers.delete(run) };
  }
  soon(run: () => void): void {
    this.schedule(0, run);
  }
  fire(): void {
    for (const run of [...this.timers]) run();
  }
}

/** Counts what it was asked for; from `waitsFrom` on a chunk comes only when the reader is ended. */
class CountingSource implements EventSource {
  asked = 0;
  constructor(readonly waitsFrom = Number.POSITIVE_INFINITY) {}
  next(signal: AbortSignal): Promise<Uint8Array | null> {
    this.asked += 1;
    if (this.asked <= this.waitsFrom) return Promise.resolve(new Uint8Array(64 * 1024));
    if (signal.aborted) return Promise.resolve(null);
    return new Promise((resolve) => signal.addEventListener("abort", () => resolve(null), { once: true }));
  }
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

  test("a client that leaves wakes the source and is forgotten", async () => {
    const { body, liveReads, ends, clock } = open(new CountingSource(1));
    const reader = body.getReader();
    await reader.read();
    await reader.cancel();
    expect(liveReads.count).toBe(0);
    expect(ends()).toBe(1);
    expect(clock.timers.size).toBe(0);
  });

  test("a failing source breaks the stream off instead of ending it", async () => {
    const failing: EventSource = { next: () => Promise.reject(new Error("lost")) };
    const { body, liveReads } = open(failing);
    const failure = await body
      .getReader()
      .read()
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(Error);
    expect(liveReads.count).toBe(0);
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
