import { describe, expect, test } from "bun:test";
import { PRODUCER_IDLE_MS, PRODUCERS_MAX, SESSION_IDLE_MS } from "../../src/lib/limits.ts";
import { codeOf } from "../support/code-of.ts";
import { gate } from "../support/gated-wal.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { TestNode } from "../support/test-node.ts";

const stamp = (producerId: string, seq: bigint) => ({ producer: { producerId, producerEpoch: 0n, seq } });

/** A stream that remembers as many producers as it may, `p0` to the last. */
async function fullStream(node: TestNode): Promise<void> {
  await settled(node.create("/a"));
  const appends = Array.from({ length: PRODUCERS_MAX }, (_, i) => node.append("/a", String(i), stamp(`p${i}`, 0n)));
  await settled(Promise.all(appends));
}

describe("producers of a stream", () => {
  test("one more than the limit is refused as capacity_exceeded, also after an upload and a restart; those known go on", async () => {
    const clock = new ManualClock();
    let node = await settled(new TestNode({ clock }).start(1));
    await fullStream(node);
    for (let life = 0; life < 3; life++) {
      expect(await codeOf(() => settled(node.append("/a", "one too many", stamp("late", 0n))))).toBe("capacity_exceeded");
      expect(await settled(node.append("/a", "again", stamp("p0", 0n)))).toMatchObject({ kind: "duplicate" });
      expect(await settled(node.append("/a", "next", stamp("p1", BigInt(life + 1))))).toMatchObject({ kind: "appended" });
      expect(await settled(node.streams.head("/a"))).toMatchObject({ nextOffset: PRODUCERS_MAX + life + 1 });
      if (life === 0) await settled(node.engine.uploadNow());
      node = await settled(node.restart());
    }
  });

  test("beyond the limit those that were idle for 7 days make room, and no others", async () => {
    const clock = new ManualClock();
    const node = await settled(new TestNode({ clock }).start(1));
    await fullStream(node);
    clock.stepWall(PRODUCER_IDLE_MS - 1);
    await settled(node.append("/a", "kept busy", stamp("p0", 1n)));
    expect(await codeOf(() => settled(node.append("/a", "too early", stamp("late", 0n))))).toBe("capacity_exceeded");
    clock.stepWall(1);
    expect(await settled(node.append("/a", "in time", stamp("late", 0n)))).toMatchObject({ kind: "appended" });
    expect(await settled(node.append("/a", "kept busy", stamp("p0", 1n)))).toMatchObject({ kind: "duplicate" });
  });

  test.each(["trim", "idle session", "upload", "restart", "all of it"])(
    "a quiet producer is known as before after its records went by: %s",
    async (what) => {
      const clock = new ManualClock();
      let node = await settled(new TestNode({ clock }).start(1));
      await settled(node.create("/a"));
      await settled(node.append("/a", "0", stamp("quiet", 0n)));
      await settled(node.append("/a", "1", stamp("quiet", 1n)));
      const isAll = what === "all of it";
      if (isAll || what === "trim") expect(await settled(node.streams.trim("/a", 2n))).toEqual({ startOffset: 2 });
      if (isAll || what === "upload" || what === "idle session") await settled(node.engine.uploadNow());
      if (isAll || what === "idle session") {
        await clock.advance(SESSION_IDLE_MS * 2);
        expect(node.streams.sessionCount).toBe(0);
      }
      if (isAll || what === "restart") node = await settled(node.restart());
      clock.stepWall(PRODUCER_IDLE_MS * 10);
      expect(await settled(node.append("/a", "1", stamp("quiet", 1n)))).toMatchObject({
        kind: "duplicate",
        nextOffset: 2,
        producerSeq: 1n,
      });
      expect(await codeOf(() => settled(node.append("/a", "3", stamp("quiet", 3n))))).toBe("sequence_gap");
      expect(await settled(node.append("/a", "2", stamp("quiet", 2n)))).toMatchObject({ kind: "appended", startOffset: 2 });
    },
  );
});

describe("a duplicate of an append that is not durable yet", () => {
  /** Sequence 0 is durable; 1, its copy and 2 wait for the WAL. */
  async function startHeld() {
    const { wal, gated } = gate();
    const node = await new TestNode({ wal }).start(1);
    await node.create("/a");
    await node.append("/a", "0", stamp("p", 0n));
    gated().hold();
    const answered: string[] = [];
    const send = (what: string, seq: bigint) =>
      node.append("/a", what, stamp("p", seq)).then(
        ({ kind, nextOffset }) => answered.push(`${what}: ${kind}, ${nextOffset}`),
        (error: { code: string }) => answered.push(`${what}: ${error.code}`),
      );
    const sent = [send("original", 1n), send("copy", 1n), send("next", 2n), send("old copy", 0n)];
    for (let turns = 0; turns < 50; turns++) await quiet();
    return { node, gated, answered, all: Promise.all(sent) };
  }

  test("neither it nor what follows is answered, or seen, before the original is durable", async () => {
    const { node, gated, answered, all } = await startHeld();
    expect(answered).toEqual([]);
    expect(await node.bodies("/a")).toEqual(["0"]);
    gated().release();
    await all;
    expect(answered.toSorted()).toEqual(["copy: duplicate, 3", "next: appended, 3", "old copy: duplicate, 3", "original: appended, 2"]);
    expect(await node.bodies("/a")).toEqual(["0", "original", "next"]);
  });

  test("if the original fails all of them fail, and a retry in the next life is new", async () => {
    const { node, gated, answered, all } = await startHeld();
    gated().failure = new RangeError("the disk is gone");
    gated().release();
    await all;
    expect(answered.toSorted()).toEqual(["copy: durability", "next: durability", "old copy: durability", "original: durability"]);
    const next = await node.restart();
    expect(await next.append("/a", "retry", stamp("p", 1n))).toMatchObject({ kind: "appended", startOffset: 1 });
    expect(await next.bodies("/a")).toEqual(["0", "retry"]);
  });
});
