import { expect, test } from "bun:test";
import { MIRROR_SNAPSHOT_INTERVAL_MS } from "../../src/lib/limits.ts";
import { manifestKey } from "../../src/mirror/mirror-object.ts";
import { quiet } from "../support/manual-clock.ts";
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
