import { expect, test } from "bun:test";
import { MIRROR_SNAPSHOT_INTERVAL_MS, REMOVAL_RETRY_MS_MAX } from "../../src/lib/limits.ts";
import { manifestKey } from "../../src/mirror/mirror-object.ts";
import { quiet } from "../support/manual-clock.ts";
import { noted } from "../support/noted-log.ts";
import { CLUSTER, MirrorFixture } from "./mirror-fixture.ts";

test("older snapshots stay while removal is held, and while a clock that jumps makes the hold seem over", async () => {
  const f = new MirrorFixture();
  const view = { appliedIndex: 0, removalHeldUntilMs: f.clock.nowMs() + 3_600_000 };
  let isSteady = true;
  const mirror = f.mirror({
    view,
    get isDatabaseClockSteady() {
      return isSteady;
    },
  });
  const indexes: number[] = [];
  for (let round = 0; round < 3; round++) {
    f.addStreams(3);
    indexes.push(await f.snapshot());
    view.appliedIndex = f.head;
    expect(await mirror.takeSnapshot()).toBeTrue();
  }
  const manifests = async () => (await f.store.keys()).filter((key) => key.endsWith("manifest"));
  const round = async () => {
    await f.clock.advance(MIRROR_SNAPSHOT_INTERVAL_MS);
    await quiet();
  };
  mirror.start();
  await round();
  expect(await manifests()).toHaveLength(3);
  view.removalHeldUntilMs = f.clock.nowMs();
  isSteady = false;
  await round();
  expect(await manifests()).toHaveLength(3);
  isSteady = true;
  await round();
  expect((await manifests()).sort()).toEqual(indexes.slice(1).map((index) => manifestKey(CLUSTER, index)));
  const stopped = mirror.stop();
  await f.clock.advance(1);
  await stopped;
  expect(f.fatal).toEqual([]);
});

test("a store that refuses deletes is told of once, and asked ever more slowly until it takes them", async () => {
  const f = new MirrorFixture();
  const { log, lines } = noted();
  const mirror = f.mirror({}, log);
  for (let round = 0; round < 3; round++) {
    f.addStreams(3);
    await f.snapshot();
    expect(await mirror.takeSnapshot()).toBeTrue();
  }
  f.store.refusal = () => "AccessDenied";
  f.store.takeCalls();
  mirror.start();
  await f.clock.advance(2 * REMOVAL_RETRY_MS_MAX);
  const deletes = f.store.takeCalls().filter((call) => call === "delete").length;
  expect(deletes).toBeGreaterThan(2);
  expect(deletes).toBeLessThan((2 * REMOVAL_RETRY_MS_MAX) / MIRROR_SNAPSHOT_INTERVAL_MS / 10);
  expect(lines.map(({ text, fields }) => [text.slice(0, 5), fields.code])).toEqual([["warn:", "AccessDenied"]]);
  f.store.refusal = () => null;
  await f.clock.advance(REMOVAL_RETRY_MS_MAX);
  expect((await f.store.keys()).filter((key) => key.endsWith("manifest"))).toHaveLength(2);
  expect(lines.at(-1)?.text).toBe("info: the store takes deletes of the mirror again");
  const stopped = mirror.stop();
  await f.clock.advance(1);
  await stopped;
  expect(f.fatal).toEqual([]);
});
