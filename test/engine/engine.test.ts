import { describe, expect, test } from "bun:test";
import { TailFold } from "../../src/engine/tail-fold.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import type { WalStore } from "../../src/engine/wal-store.ts";
import { InvariantError } from "../../src/lib/assert.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { codeOf } from "../support/code-of.ts";
import { ManualClock, settled } from "../support/manual-clock.ts";
import { record, TestNode } from "../support/test-node.ts";

/** A WAL whose creates a test can make fail, or wait. */
function breakable(): { readonly wrap: (wal: WalStore) => WalStore; error: PicoError | null; hang: Promise<void> | null } {
  const breakage = {
    error: null as PicoError | null,
    hang: null as Promise<void> | null,
    wrap: (wal: WalStore): WalStore => ({
      description: wal.description,
      kind: wal.kind,
      inFlightMax: wal.inFlightMax,
      begin: (registration) => wal.begin(registration),
      create: async (registration, number, bytes) => {
        if (breakage.error !== null) throw breakage.error;
        if (breakage.hang !== null) await breakage.hang;
        return wal.create(registration, number, bytes);
      },
      list: (registration, above) => wal.list(registration, above),
      read: (registration, number) => wal.read(registration, number),
      persist: (registration) => wal.persist(registration),
      trim: (registration, upTo, mayDelete) => wal.trim(registration, upTo, mayDelete),
      close: () => wal.close(),
      registrations: () => wal.registrations(),
      registrationsWithSegments: () => wal.registrationsWithSegments(),
    }),
  };
  return breakage;
}

const REFUSED = new PicoError("storage_failed", "the store refuses");
const SEALED_AT_ONCE = { settings: { segmentBytes: 1 } };

describe("the engine", () => {
  test("appends that wait for a stalled WAL are answered in time, also while an upload waits for it too", async () => {
    const clock = new ManualClock();
    const breakage = breakable();
    const node = await settled(new TestNode({ clock, wal: breakage.wrap }).start(1));
    await settled(node.create("/a"));
    breakage.error = REFUSED;
    const append = codeOf(() => node.append("/a", "x"));
    await clock.advance(100);
    node.engine.uploadNow().catch(() => {});
    await clock.advance(15_000);
    expect(await settled(append)).toBe("durability");
    breakage.error = null;
    await clock.advance(15_000);
    expect(await settled(node.bodies("/a"))).toEqual(["x"]);
  });

  test("an entry that does not follow the cached ones ends the engine before it reaches the store", async () => {
    const clock = new ManualClock();
    const node = await settled(new TestNode({ clock }).start(1));
    const { engine } = node;
    const log = engine.openLog(7, emptyTailState());
    const append = { records: [record("x")], timestampMs: 1, producer: null, streamSeq: null, closes: false };
    const outcomes: unknown[] = [];
    const send = (tail: TailFold) => engine.append(log, tail, append, (error) => outcomes.push(error));
    send(new TailFold(emptyTailState()));
    await clock.advance(10);
    expect(() => send(new TailFold(emptyTailState(5)))).toThrow(InvariantError);
    await clock.advance(10);
    expect(outcomes).toEqual([null]);
    expect(node.fatal).toMatchObject([{ code: "internal" }]);
    expect(await settled(node.wal.list({ nodeId: 1, nodeEpoch: 1 }, 0))).toEqual([1]);
    expect(() => send(new TailFold(emptyTailState(1)))).toThrow(PicoError);
  });

  test("a WAL that does not answer is stalled: who waits is answered, the next are refused, until it goes on", async () => {
    const clock = new ManualClock();
    const breakage = breakable();
    const node = await settled(new TestNode({ clock, wal: breakage.wrap }).start(1));
    await settled(node.create("/a"));
    const { promise, resolve: goOn } = Promise.withResolvers<void>();
    breakage.hang = promise;
    const append = codeOf(() => node.append("/a", "x"));
    await clock.advance(15_000);
    expect(await settled(append)).toBe("durability");
    expect(await settled(codeOf(() => node.append("/a", "y")))).toBe("unavailable");
    breakage.hang = null;
    goOn();
    await clock.advance(100);
    await settled(node.append("/a", "z"));
    expect(await settled(node.bodies("/a"))).toEqual(["x", "z"]);
  });

  test("what waits for something that never becomes durable is answered, also when it came after the failure", async () => {
    const clock = new ManualClock();
    const breakage = breakable();
    const node = await settled(new TestNode({ clock, wal: breakage.wrap }).start(1));
    await settled(node.create("/a"));
    breakage.error = new PicoError("durability", "the sync failed");
    const producer = { producerId: "p", producerEpoch: 1n, seq: 0n };
    const first = codeOf(() => node.append("/a", "x", { producer }));
    expect(await settled(first)).toBe("durability");
    expect(node.fatal).toHaveLength(1);
    // The duplicate would be answered once the first is durable, which it never is.
    expect(await settled(codeOf(() => node.append("/a", "x", { producer })))).toBe("durability");
  });

  test("a full backlog starts an upload, however far off the other triggers are", async () => {
    const clock = new ManualClock();
    const node = await settled(new TestNode({ clock, settings: { backlogBytesMax: 2000, uploadBytes: 1_000_000 } }).start(1));
    await settled(node.create("/a"));
    let refusals = 0;
    for (let i = 0; i < 100; i++) {
      if ((await settled(codeOf(() => node.append("/a", "x".repeat(100))))) !== null) refusals += 1;
      await clock.advance(10);
    }
    expect(refusals).toBeLessThan(10);
  });

  test("a create that the WAL refuses leaves no log behind", async () => {
    const node = await new TestNode({ settings: { backlogBytesMax: 0 } }).start(1);
    const before = node.engine.cache.streamCount;
    for (let i = 0; i < 20; i++) expect(await codeOf(() => node.create(`/${i}`, { records: [record("x")] }))).toBe("unavailable");
    expect(node.engine.cache.streamCount).toBe(before);
  });

  test("a stop uploads what is there, takes nothing more, and names the last number as committed", async () => {
    const node = await new TestNode(SEALED_AT_ONCE).start(1);
    await node.create("/a");
    await Promise.all([node.append("/a", "x"), node.append("/a", "y")]);
    const stopping = node.engine.stop();
    expect(await codeOf(() => node.append("/a", "late"))).toBe("unavailable");
    const lastNumber = await stopping;
    const committed = [...node.metadata.view.registrations()][0]?.committedNumber;
    expect(committed).toBe(lastNumber);
    expect(node.engine.backlogBytes).toBe(0);
  });
});
