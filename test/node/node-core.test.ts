import { describe, expect, test } from "bun:test";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { EXCLUSIVE_LIFE, type LifeLock } from "../../src/node/life-lock.ts";
import { NodeCore } from "../../src/node/node-core.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { MemoryDatabase, MemorySqlStore } from "../metadata/memory-sql-store.ts";
import { codeOf } from "../support/code-of.ts";
import { coreSettings, NO_ADDRESSES } from "../support/core-settings.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { silentLog } from "../support/silent-log.ts";
import { record } from "../support/test-node.ts";

const SETTINGS = coreSettings({ logCacheBytes: 0 });

/** The WAL of one host, whose `begin` a test can hold or refuse, and which can stop answering creates. */
class HeldWal extends ObjectWal {
  held: Promise<void> = Promise.resolve();
  isFull = false;
  isSilent = false;
  override async begin(): Promise<void> {
    await this.held;
    if (this.isFull) throw new PicoError("storage_full", "no room for the first files of the WAL");
  }
  override create(...parameters: Parameters<ObjectWal["create"]>) {
    return this.isSilent ? new Promise<never>(() => {}) : super.create(...parameters);
  }
}

/** Another process holds it. */
const NO_LOCK: LifeLock = { provesDeathOf: () => false, noteLife: async () => {} };

function makeHost() {
  const clock = new ManualClock();
  const store = new MemoryObjectStore(clock);
  const database = new MemoryDatabase(clock);
  const open = (isAlone = true) => {
    const sql = new MemorySqlStore(database);
    const wal = new HeldWal(store, "c");
    const random = new SeededRandom(clock.monotonicMs() + 1);
    const components = { clock, random, log: silentLog, sql, store, wal, settings: SETTINGS, lifeLock: isAlone ? EXCLUSIVE_LIFE : NO_LOCK };
    return NodeCore.open(components).then((core) => ({ core, sql, wal }));
  };
  return { clock, open };
}

const create = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, isClosed: false, fork: null };

async function bodiesAt(core: NodeCore, name: string): Promise<number> {
  const page = await settled(core.streams.read({ name, from: "start", recordsMax: 0, bytesMax: 1000 }));
  return page.next;
}

describe("a node without sockets", () => {
  test("serves after a start, and what it took is there after a crash and after a stop", async () => {
    const { clock, open } = makeHost();
    const first = await settled(open());
    await settled(first.core.start(NO_ADDRESSES));
    expect(first.core.phase).toBe("serving");
    await settled(first.core.streams.create({ ...create, name: "/a", records: [record("x")] }));
    first.core.abandon();
    await clock.advance(1000);
    const second = await settled(open());
    await settled(second.core.start(NO_ADDRESSES));
    expect(await bodiesAt(second.core, "/a")).toBe(1);
    await settled(second.core.stop());
    expect(second.core.phase).toBe("stopped");
    expect([...second.core.metadata.view.registrations()].map(({ state }) => state)).toEqual(["ended", "ended"]);
    await clock.advance(1000);
    const third = await settled(open());
    await settled(third.core.start(NO_ADDRESSES));
    expect(await bodiesAt(third.core, "/a")).toBe(1);
    third.core.abandon();
  });

  test("without a lock it leaves a life that sends heartbeats alone, also one that is still recovering", async () => {
    const { clock, open } = makeHost();
    const first = await settled(open());
    const { promise: isRecovered, resolve } = Promise.withResolvers<void>();
    first.wal.held = isRecovered;
    const starting = first.core.start(NO_ADDRESSES);
    await clock.advance(1000);
    const second = await settled(open(false));
    const refusal = codeOf(() => second.core.start(NO_ADDRESSES));
    await clock.advance(20_000);
    expect(await settled(refusal)).toBe("locked");
    resolve();
    await settled(starting);
    expect(first.core.phase).toBe("serving");
    first.core.abandon();
    second.core.abandon();
  });

  test("without a lock it replaces a life whose heartbeat stood still for the failover limit, and no sooner", async () => {
    const { clock, open } = makeHost();
    const first = await settled(open());
    await settled(first.core.start(NO_ADDRESSES));
    await settled(first.core.streams.create({ ...create, name: "/a", records: [record("x")] }));
    await clock.advance(2000);
    // Paused: it sends nothing more, and knows nothing of it.
    first.sql.faultOf = () => "hang";
    const second = await settled(open(false));
    const starting = second.core.start(NO_ADDRESSES);
    await clock.advance(SETTINGS.failoverTimeoutMs - 500);
    expect(second.core.metadata.registration).toBeNull();
    await clock.advance(2000);
    await settled(starting);
    expect(await bodiesAt(second.core, "/a")).toBe(1);
    first.sql.faultOf = () => null;
    first.sql.unhang();
    const append = { name: "/a", close: false, matchTail: null, streamSeq: null, mimeType: null, producer: null };
    expect(await settled(codeOf(() => first.core.streams.append({ ...append, records: [record("y")] })))).not.toBeNull();
    await clock.advance(20_000);
    expect(first.core.phase).toBe("stopped");
    second.core.abandon();
  });

  test("stopped while it starts, it begins nothing: no heartbeat and no timer is left", async () => {
    const { clock, open } = makeHost();
    const { core, sql, wal } = await settled(open());
    const { promise, resolve } = Promise.withResolvers<void>();
    wal.held = promise;
    const starting = codeOf(() => core.start(NO_ADDRESSES));
    for (let turns = 0; turns < 50; turns++) await quiet();
    await settled(core.stop());
    resolve();
    expect(await settled(starting)).toBe("unavailable");
    expect(core.phase).toBe("stopped");
    const calls = sql.calls.length;
    await clock.advance(60_000);
    expect(sql.calls.length).toBe(calls);
    expect(clock.timerCount).toBe(0);
  });

  test("with room for the end of its old WAL and none for a WAL of its own, it serves reads, and starts when there is room", async () => {
    const { clock, open } = makeHost();
    const first = await settled(open());
    await settled(first.core.start(NO_ADDRESSES));
    await settled(first.core.streams.create({ ...create, name: "/a", records: [record("x")] }));
    first.core.abandon();
    await clock.advance(1000);
    const { core, wal } = await settled(open());
    // Reads are served before the start is complete only where a lock proves that nobody else writes.
    Object.defineProperty(wal, "kind", { value: "local" });
    wal.isFull = true;
    const starting = core.start(NO_ADDRESSES);
    await clock.advance(3000);
    expect([...core.metadata.view.registrations()].map(({ state }) => state)).toEqual(["ended", "live"]);
    expect(core.phase).toBe("degraded");
    expect(core.router.route("/a", "pico")).toEqual({ kind: "here" });
    expect(await bodiesAt(core, "/a")).toBe(1);
    const append = { name: "/a", close: false, producer: null, matchTail: null, streamSeq: null, mimeType: null };
    expect(await settled(codeOf(async () => core.streams.append({ ...append, records: [record("y")] })))).toBe("unavailable");
    wal.isFull = false;
    await clock.advance(3000);
    await settled(starting);
    await settled(core.streams.append({ ...append, records: [record("y")] }));
    expect(await bodiesAt(core, "/a")).toBe(2);
    core.abandon();
  });

  test("a stop of a node that has failed is no graceful one: it is refused with the failure", async () => {
    const { open } = makeHost();
    const { core } = await settled(open());
    await settled(core.start(NO_ADDRESSES));
    core.fail(new PicoError("corrupt", "the log was replaced"));
    for (let turns = 0; turns < 50; turns++) await quiet();
    expect(await settled(codeOf(() => core.stop()))).toBe("corrupt");
  });

  test("a start that the node's own failure cuts short is refused with that failure", async () => {
    const { open } = makeHost();
    const { core, wal } = await settled(open());
    const { promise, resolve } = Promise.withResolvers<void>();
    wal.held = promise;
    const starting = codeOf(() => core.start(NO_ADDRESSES));
    for (let turns = 0; turns < 50; turns++) await quiet();
    core.fail(new PicoError("corrupt", "the log was replaced"));
    for (let turns = 0; turns < 50; turns++) await quiet();
    resolve();
    expect(await settled(starting)).toBe("corrupt");
  });

  test("fenced, it answers all who wait and all who come later, though its WAL does not answer, and serves nothing from memory", async () => {
    const { clock, open } = makeHost();
    const { core, wal } = await settled(open());
    await settled(core.start(NO_ADDRESSES));
    const append = { name: "/a", close: false, matchTail: null, streamSeq: null, mimeType: null };
    const send = (seq: bigint) => {
      const producer = { producerId: "p", producerEpoch: 0n, seq };
      return codeOf(() => core.streams.append({ ...append, records: [record("x")], producer }));
    };
    await settled(core.streams.create({ ...create, name: "/a", records: [record("x")] }));
    const { streamId } = await settled(core.streams.head("/a"));
    wal.isSilent = true;
    // 100 appends, and two copies of each, which their outcome decides.
    const appends = Array.from({ length: 300 }, (_, at) => send(BigInt(at % 100)));
    const waits = Array.from({ length: 100 }, () => core.streams.wait(streamId, 1, 600_000, null));
    await clock.advance(100);
    const successor = await settled(open());
    await settled(successor.core.start(NO_ADDRESSES));
    await clock.advance(1000);
    expect(new Set(await settled(Promise.all(appends)))).toEqual(new Set(["durability"]));
    expect(new Set(await settled(Promise.all(waits)))).toEqual(new Set(["moved"]));
    expect(core.phase).toBe("stopped");
    expect(await settled(send(100n))).toBe("unavailable");
    expect(await settled(core.streams.wait(streamId, 1, 600_000, null))).toBe("moved");
    expect(await settled(codeOf(async () => core.streams.head("/a")))).toBe("unavailable");
    const from = { name: "/a", from: "start", recordsMax: 0, bytesMax: 1000 } as const;
    expect(await settled(codeOf(async () => core.streams.read(from)))).toBe("unavailable");
    expect(await bodiesAt(successor.core, "/a")).toBe(1);
    successor.core.abandon();
  });
});
