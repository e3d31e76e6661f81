import { describe, expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { systemClock } from "../../src/lib/clock.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { codeOf } from "../support/code-of.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { record, TestNode } from "../support/test-node.ts";

describe("streams over the engine", () => {
  test("what was appended is read back before the upload, after it, and after a restart", async () => {
    let node = await new TestNode().start(1);
    await node.create("/a");
    await node.create("/b");
    const expected: string[] = [];
    for (let i = 0; i < 20; i++) {
      expected.push(`a${i}`);
      await node.append("/a", `a${i}`);
      await node.append("/b", `b${i}`);
    }
    expect(await node.bodies("/a")).toEqual(expected);
    await node.engine.uploadNow();
    expect(await node.bodies("/a")).toEqual(expected);
    await node.append("/a", "more");
    expect(await node.bodies("/a", 15)).toEqual(["a15", "a16", "a17", "a18", "a19", "more"]);
    node = await node.restart();
    expect(await node.bodies("/a")).toEqual([...expected, "more"]);
    expect(await node.append("/a", "again")).toMatchObject({ startOffset: 21, nextOffset: 22 });
    node = await node.restart();
    expect(await node.bodies("/a", 20)).toEqual(["more", "again"]);
    expect(node.fatal).toEqual([]);
  });

  test("200 parallel appends get the offsets 0 to 199, each once, and are there", async () => {
    const node = await new TestNode().start(1);
    await node.create("/a");
    const answers = await Promise.all(
      Array.from({ length: 200 }, (_, i) => node.append("/a", String(i)).then((result) => ({ i, at: result.startOffset }))),
    );
    const bodies = await node.bodies("/a");
    expect(answers.map(({ at }) => at).sort((left, right) => (left ?? 0) - (right ?? 0))).toEqual(Array.from({ length: 200 }, (_, i) => i));
    for (const { i, at } of answers) expect(bodies[at ?? -1]).toBe(String(i));
  });

  test("a name that the view does not know yet is answered behind a catch-up, by every verb, and never as missing", async () => {
    class LateMetadata extends DirectMetadata {
      catchUps = 0;
      /** The create of another node, which is in the log and not yet applied here. */
      override async catchUp(): Promise<void> {
        this.catchUps += 1;
        this.release();
      }
    }
    const verbs: readonly ((node: TestNode) => unknown)[] = [
      (node) => node.append("/a", "x"),
      (node) => node.streams.head("/a"),
      (node) => node.bodies("/a"),
      (node) => node.streams.trim("/a", 0n),
      (node) => node.streams.delete("/a"),
      (node) => node.create("/fork", { contentType: null, fork: { sourceName: "/a", offset: 0, subOffset: 0 } }),
    ];
    for (const verb of verbs) {
      const metadata = new LateMetadata(systemClock);
      const node = await new TestNode({ metadata }).start(1);
      metadata.hold();
      const creating = node.create("/a");
      for (let turns = 0; turns < 10; turns++) await quiet();
      expect([metadata.heldCount, metadata.catchUps]).toEqual([1, 0]);
      expect(await codeOf(() => verb(node))).toBeNull();
      await creating;
      expect(metadata.catchUps).toBe(1);
      expect(await codeOf(() => node.streams.head("/nowhere"))).toBe("not_found");
      expect(metadata.catchUps).toBe(2);
    }
  });

  test("of racing creates each loser gets the stream or a conflict with its settings, and all find it at once", async () => {
    const node = await new TestNode().start(1);
    const race = Array.from({ length: 64 }, async (_, i) => {
      const contentType = i % 8 === 7 ? "text/html" : "text/plain";
      const code = await codeOf(() => node.create("/a", { contentType }));
      expect((await node.append("/a", String(i))).kind).toBe("appended");
      await node.streams.head("/a");
      return `${contentType} ${code}`;
    });
    expect(new Set(await Promise.all(race))).toEqual(new Set(["text/plain null", "text/html conflict"]));
    expect(await node.bodies("/a")).toHaveLength(64);
  });

  test("a name that is created anew while its former life is loaded begins at 0", async () => {
    const gates: PromiseWithResolvers<void>[] = [];
    class SlowStore extends MemoryObjectStore {
      isSlow = false;
      override async read(...words: Parameters<MemoryObjectStore["read"]>) {
        if (this.isSlow) {
          gates.push(Promise.withResolvers());
          await gates.at(-1)?.promise;
        }
        return super.read(...words);
      }
    }
    const store = new SlowStore(systemClock);
    let node = await new TestNode({ store }).start(1);
    await node.create("/a");
    for (const body of ["0", "1", "2"]) await node.append("/a", body);
    await node.engine.uploadNow();
    node = await node.restart();
    const { streamId } = node.metadata.view.streamByName("/a") ?? { streamId: 0 };
    store.isSlow = true;
    const head = node.streams.head("/a");
    while (gates.length === 0) await quiet();
    // As another node's commands, which wait for no session here.
    const { metadata } = node;
    await metadata.propose({ type: "delete_stream", streamId }).outcome;
    const settings = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null };
    const create = { type: "create_stream", streamId: node.ids.take(), name: "/a", settings, isClosed: false, fork: null } as const;
    expect((await metadata.propose(create).outcome).applied).toBe(true);
    store.isSlow = false;
    for (const { resolve } of gates) resolve();
    expect(await head).toMatchObject({ streamId: create.streamId, nextOffset: 0 });
    expect(await node.append("/a", "new")).toMatchObject({ startOffset: 0 });
    expect(await node.bodies("/a")).toEqual(["new"]);
  });

  test("a producer's retry is a duplicate after a restart, an upload, and both", async () => {
    let node = await new TestNode().start(1);
    await node.create("/a");
    const producer = (seq: bigint) => ({ producer: { producerId: "p", producerEpoch: 1n, seq } });
    await node.append("/a", "0", producer(0n));
    node = await node.restart();
    expect(await node.append("/a", "0", producer(0n))).toMatchObject({ kind: "duplicate", nextOffset: 1, producerSeq: 0n });
    await node.append("/a", "1", producer(1n));
    await node.engine.uploadNow();
    node = await node.restart();
    expect(await node.append("/a", "1", producer(1n))).toMatchObject({ kind: "duplicate", nextOffset: 2, producerSeq: 1n });
    expect(await node.bodies("/a")).toEqual(["0", "1"]);
  });

  test("a stream created closed with records has all of it after a restart, and takes no more", async () => {
    let node = await new TestNode().start(1);
    await node.create("/a", { isClosed: true, records: [record("x"), record("y")] });
    node = await node.restart();
    expect(await node.bodies("/a")).toEqual(["x", "y"]);
    expect(await node.streams.head("/a")).toMatchObject({ isClosed: true, nextOffset: 2 });
    expect(node.append("/a", "z")).rejects.toMatchObject({ code: "closed" });
  });

  test("trim moves the start at once, keeps numbering, and survives restarts", async () => {
    let node = await new TestNode().start(1);
    await node.create("/a");
    for (const body of ["0", "1", "2"]) await node.append("/a", body);
    expect(await node.streams.trim("/a", 2n ** 64n - 1n)).toEqual({ startOffset: 3 });
    await node.engine.uploadNow();
    node = await node.restart();
    expect(await node.append("/a", "3")).toMatchObject({ startOffset: 3 });
    expect(await node.bodies("/a")).toEqual(["3"]);
    expect((async () => node.streams.read({ name: "/a", from: 2, recordsMax: 0, bytesMax: 1000 }))()).rejects.toMatchObject({
      code: "offset_gone",
    });
  });

  test("a fork reads its source's records below its offset and its own above, after restarts and the source's delete too", async () => {
    let node = await new TestNode().start(1);
    await node.create("/source");
    for (const body of ["aa", "bb", "cc"]) await node.append("/source", body);
    await node.create("/fork", { contentType: null, fork: { sourceName: "/source", offset: 1, subOffset: 1 } });
    await node.append("/source", "dd");
    await node.append("/fork", "own");
    expect(await node.bodies("/fork")).toEqual(["aa", "b", "own"]);
    await node.engine.uploadNow();
    await node.streams.delete("/source");
    node = await node.restart();
    expect(await node.bodies("/fork")).toEqual(["aa", "b", "own"]);
    expect((async () => node.streams.head("/source"))()).rejects.toMatchObject({ code: "gone" });
    expect(node.create("/source")).rejects.toMatchObject({ code: "gone" });
    await node.streams.delete("/fork");
    expect((async () => node.streams.head("/source"))()).rejects.toMatchObject({ code: "not_found" });
  });

  test("a fork's records are not older than those it inherits, though the clock went back", async () => {
    const node = await new TestNode().start(1);
    await node.create("/source");
    node.clockOffsetMs = 3_600_000;
    await node.append("/source", "late");
    node.clockOffsetMs = 0;
    await node.create("/plain", { contentType: null, fork: { sourceName: "/source", offset: null, subOffset: 0 } });
    await node.create("/partial", { contentType: null, fork: { sourceName: "/source", offset: 0, subOffset: 2 } });
    await node.create("/begun", { contentType: null, records: [record("x")], fork: { sourceName: "/source", offset: 1, subOffset: 0 } });
    for (const name of ["/plain", "/partial", "/begun"]) {
      await node.append(name, "own");
      const times = await node.timestamps(name);
      expect(times).toEqual([...times].sort((left, right) => left - right));
      expect(times.length).toBeGreaterThan(1);
    }
  });

  test("a wait ends with data, with the close, and with the delete", async () => {
    const node = await new TestNode().start(1);
    const { info } = await node.create("/a");
    const waitAt = (offset: number) => node.streams.wait(info.streamId, offset, 60_000, null);
    const forData = waitAt(0);
    await node.append("/a", "x");
    expect(await forData).toBe("data");
    const forClose = waitAt(1);
    await node.append("/a", "", { records: [], close: true });
    expect(await forClose).toBe("closed");
    expect(await waitAt(1)).toBe("closed");
    await node.create("/b").then(async ({ info }) => {
      const forDelete = node.streams.wait(info.streamId, 0, 60_000, null);
      await node.streams.delete("/b");
      expect(await forDelete).toBe("deleted");
    });
  });

  test("a parked waiter is told once of data, of the close, and of the delete; without a reason to wait none is parked", async () => {
    const node = await new TestNode().start(1);
    const { info } = await node.create("/a");
    const outcomes: string[] = [];
    const parkAt = (offset: number) => {
      const waiter = { offset, wake: (outcome: string) => void outcomes.push(outcome) };
      return { isParked: node.streams.park(info.streamId, waiter), unpark: () => node.streams.unpark(info.streamId, waiter) };
    };
    expect(parkAt(0).isParked).toBe(false);
    await node.streams.head("/a");
    expect(parkAt(0).isParked).toBe(true);
    await node.append("/a", "x");
    await node.append("/a", "y");
    expect(parkAt(1).isParked).toBe(false);
    const takenBack = parkAt(2);
    expect(parkAt(2).isParked).toBe(true);
    expect(node.streams.waiterCount).toBe(2);
    takenBack.unpark();
    expect(node.streams.waiterCount).toBe(1);
    await node.append("/a", "", { records: [], close: true });
    expect(outcomes).toEqual(["data", "closed"]);
    expect(parkAt(2).isParked).toBe(false);

    const other = await node.create("/b");
    await node.streams.head("/b");
    expect(node.streams.park(other.info.streamId, { offset: 0, wake: (outcome) => void outcomes.push(outcome) })).toBe(true);
    await node.streams.delete("/b");
    expect(outcomes).toEqual(["data", "closed", "deleted"]);
    expect(node.streams.park(other.info.streamId, { offset: 0, wake: () => {} })).toBe(false);
    expect(node.streams.waiterCount).toBe(0);
  });

  test("a reader whose stream was deleted between its read and its wait is told so, also while forks keep the stream", async () => {
    const node = await new TestNode().start(1);
    for (const name of ["/kept", "/gone"]) {
      const { info } = await node.create(name);
      if (name === "/kept") await node.create("/fork", { contentType: null, fork: { sourceName: name, offset: 0, subOffset: 0 } });
      await node.streams.delete(name);
      expect(await node.streams.wait(info.streamId, 0, 60_000, null)).toBe("deleted");
    }
  });

  test("a touch after the database's clock went back does not shorten a sliding life", async () => {
    const clock = new ManualClock();
    const node = await settled(new TestNode({ clock }).start(1));
    await settled(node.create("/a", { ttlSeconds: 10n }));
    await settled(node.append("/a", "before"));
    clock.stepWall(-5000);
    await settled(node.append("/a", "after"));
    await clock.advance(11_000);
    expect(await settled(node.bodies("/a"))).toEqual(["before", "after"]);
    await clock.advance(11_000);
    expect(await settled(codeOf(() => node.bodies("/a")))).toBe("not_found");
  });

  test("a deleted name starts at 0 again with none of its former records", async () => {
    let node = await new TestNode().start(1);
    for (let life = 0; life < 5; life++) {
      await node.create("/a");
      expect(await node.append("/a", `life ${life}`)).toMatchObject({ startOffset: 0 });
      if (life % 2 === 0) await node.engine.uploadNow();
      else node = await node.restart();
      expect(await node.bodies("/a")).toEqual([`life ${life}`]);
      await node.streams.delete("/a");
    }
  });

  test("large records and many streams survive several uploads", async () => {
    let node = await new TestNode().start(1);
    const body = randomBytes(200_000).toString("hex");
    const names = Array.from({ length: 30 }, (_, i) => `/many/${i}`);
    for (const name of names) await node.create(name);
    for (let round = 0; round < 3; round++) {
      await Promise.all(names.map((name) => node.append(name, `${name} ${round} ${round === 1 ? body : ""}`)));
      await node.engine.uploadNow();
    }
    node = await node.restart();
    for (const name of names)
      expect(await node.bodies(name)).toEqual([0, 1, 2].map((round) => `${name} ${round} ${round === 1 ? body : ""}`));
  });
});
