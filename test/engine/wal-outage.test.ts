/** What the log is told while the WAL takes no writes. */
import { expect, test } from "bun:test";
import { UPLOAD_LOOK_MS } from "../../src/engine/uploader.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { SEGMENTS_IN_FLIGHT_OBJECT, STALL_ANSWER_MS, WAL_RETRY_MS_MAX } from "../../src/lib/limits.ts";
import { codeOf } from "../support/code-of.ts";
import { gate } from "../support/gated-wal.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { noted } from "../support/noted-log.ts";
import { TestNode } from "../support/test-node.ts";

const BEGUN = "warn: the write-ahead log takes no writes: appends are refused, and what it was given is tried again until it does";
const OVER = "info: the write-ahead log takes writes again";

async function bench() {
  const clock = new ManualClock();
  const { log, lines } = noted();
  const { wal, gated } = gate();
  const node = await settled(new TestNode({ clock, wal, log }).start(1));
  await settled(node.create("/a"));
  return { clock, lines, node, gated: gated() };
}

test("a WAL that refuses is told of once, with the store and its own words, and once when it takes writes again", async () => {
  const { clock, lines, node, gated } = await bench();
  for (let outage = 1; outage <= 2; outage++) {
    gated.failure = new PicoError("storage_failed", "create at s3://b/k failed: ConnectionRefused");
    const appends = ["x", "y"].map((body) => node.append("/a", body));
    const refusedBefore = gated.creates;
    while (gated.creates < refusedBefore + 10) await clock.advance(WAL_RETRY_MS_MAX);
    expect(await codeOf(() => node.append("/a", "z"))).toBe("unavailable");
    expect(lines.map(({ text }) => text)).toEqual([`${BEGUN}: create at s3://b/k failed: ConnectionRefused`]);
    expect(lines[0]?.fields.wal).toBe(node.wal.description);
    gated.failure = null;
    await clock.advance(WAL_RETRY_MS_MAX);
    await settled(Promise.all(appends));
    await settled(node.append("/a", "z"));
    expect(lines.splice(0).map(({ text }) => text)).toEqual([`${BEGUN}: create at s3://b/k failed: ConnectionRefused`, OVER]);
  }
});

test.each([
  ["a lone append waits", 1],
  ["more wait than are sent", SEGMENTS_IN_FLIGHT_OBJECT + 3],
])("a WAL that does not answer at all is told of, too, once while %s", async (_, count) => {
  const { clock, lines, node, gated } = await bench();
  for (let outage = 1; outage <= 2; outage++) {
    gated.hold();
    const appends: Promise<unknown>[] = [];
    for (let i = 0; i < count; i++) {
      appends.push(node.append("/a", "x").catch(() => null));
      for (let turns = 0; turns < 3; turns++) await quiet();
    }
    await clock.advance(STALL_ANSWER_MS - 1000);
    expect(lines).toEqual([]);
    await clock.advance(3000);
    const warning = `${BEGUN}: a write has had no answer for 10 s`;
    expect(lines.map(({ text }) => text)).toEqual([warning]);
    await clock.advance(6 * STALL_ANSWER_MS);
    gated.release();
    await settled(Promise.all(appends));
    // No other append follows that would show it.
    await clock.advance(UPLOAD_LOOK_MS);
    expect(lines.splice(0).map(({ text }) => text)).toEqual([warning, OVER]);
  }
});

test("a node that ends while its WAL refuses says nothing of it working again", async () => {
  const { clock, lines, node, gated } = await bench();
  gated.failure = new PicoError("storage_failed", "away");
  const append = codeOf(() => node.append("/a", "x"));
  await clock.advance(WAL_RETRY_MS_MAX);
  expect(lines).toHaveLength(1);
  node.engine.abandon();
  gated.failure = null;
  await clock.advance(WAL_RETRY_MS_MAX);
  expect(await settled(append)).toBe("durability");
  expect(lines).toHaveLength(1);
});
