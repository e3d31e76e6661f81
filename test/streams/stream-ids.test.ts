import { expect, test } from "bun:test";
import { STREAM_IDS_PER_RESERVATION } from "../../src/lib/limits.ts";
import { StreamIds } from "../../src/streams/stream-ids.ts";
import { codeOf } from "../support/code-of.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { ManualClock, quiet } from "../support/manual-clock.ts";

function setUp() {
  const metadata = new DirectMetadata(new ManualClock());
  const ids = new StreamIds(metadata);
  const first = metadata.register({ nodeId: 1, nodeEpoch: 1 });
  ids.add(first);
  return { metadata, ids, first };
}

test("ids rise by one, and the next block is reserved once, while half of this one is left", async () => {
  const { metadata, ids, first } = setUp();
  const before = metadata.view.appliedIndex;
  expect([ids.take(), ids.take(), ids.take()]).toEqual([first, first + 1, first + 2]);
  for (let i = 3; i < STREAM_IDS_PER_RESERVATION / 2 - 1; i++) ids.take();
  await quiet();
  expect(metadata.view.appliedIndex).toBe(before);
  for (let i = 0; i < 10; i++) ids.take();
  await quiet();
  expect(metadata.view.appliedIndex).toBe(before + 1);
});

test("while the database is away the reserve is used up, then ids are refused, and come again with it", async () => {
  const { metadata, ids, first } = setUp();
  metadata.hold();
  const seen = new Set<number>();
  for (let i = 0; i < STREAM_IDS_PER_RESERVATION; i++) seen.add(ids.take());
  expect(seen.size).toBe(STREAM_IDS_PER_RESERVATION);
  expect(await codeOf(() => ids.take())).toBe("unavailable");
  metadata.release();
  await quiet();
  expect(ids.take()).toBeGreaterThanOrEqual(first + STREAM_IDS_PER_RESERVATION);
});
