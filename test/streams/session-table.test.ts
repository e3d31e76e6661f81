import { describe, expect, test } from "bun:test";
import { PicoError } from "../../src/lib/errors.ts";
import { PROPOSAL_WAIT_MS, SESSION_IDLE_MS } from "../../src/lib/limits.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import type { Command, ForkOrigin } from "../../src/metadata/command.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { initialTailState, SessionTable } from "../../src/streams/session-table.ts";
import type { StreamSession } from "../../src/streams/stream-session.ts";
import { codeOf } from "../support/code-of.ts";
import { gate } from "../support/gated-wal.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { record, TestNode, type TestNodeOptions } from "../support/test-node.ts";

const OTHER: RegistrationName = { nodeId: 2, nodeEpoch: 1 };

/** A store whose reads can be held back, or made to fail. */
class SlowStore extends MemoryObjectStore {
  gate: Promise<void> | null = null;
  failure: Error | null = null;
  reads = 0;

  override async read(...words: Parameters<MemoryObjectStore["read"]>): Promise<Uint8Array | null> {
    this.reads += 1;
    await this.gate;
    if (this.failure !== null) throw this.failure;
    return super.read(...words);
  }
}

/** A table of its own on a node's engine; the node's own streams are not used. */
class Desk {
  readonly opened: StreamSession[] = [];
  readonly dropped: StreamSession[] = [];
  readonly waitsEnded: StreamSession[] = [];
  readonly expired: StreamSession[] = [];
  readonly proposed: Command[] = [];
  catchUps = 0;
  onCatchUp: () => Promise<void> | void = () => {};
  /** What becomes of a stream that is due. */
  onExpire: (session: StreamSession) => Promise<boolean> | boolean = () => true;
  readonly table: SessionTable;

  private constructor(
    readonly node: TestNode,
    readonly clock: ManualClock,
    readonly store: SlowStore,
  ) {
    const isOwn = ({ nodeId }: RegistrationName) => nodeId === 1;
    this.table = new SessionTable(clock, node.metadata, node.engine, isOwn, {
      opened: (session) => void this.opened.push(session),
      waitEnded: (session) => void this.waitsEnded.push(session),
      dropped: (session) => void this.dropped.push(session),
      expire: async (session) => {
        this.expired.push(session);
        return this.onExpire(session);
      },
    });
    const { metadata } = node;
    const { propose } = metadata;
    metadata.propose = (command) => {
      this.proposed.push(command);
      return propose.call(metadata, command);
    };
    metadata.catchUp = async () => {
      this.catchUps += 1;
      await this.onCatchUp();
    };
  }

  static async open(options: TestNodeOptions = {}): Promise<Desk> {
    const clock = new ManualClock();
    const store = new SlowStore(clock);
    return new Desk(await settled(new TestNode({ clock, store, ...options }).start(1)), clock, store);
  }

  async run(command: Command): Promise<void> {
    const outcome = await settled(this.node.metadata.propose(command).outcome);
    if (!outcome.applied) throw new Error(`${command.type} was refused: ${outcome.code}`);
  }

  async create(name: string, changes: { readonly ttlSeconds?: bigint; readonly expiresAtMs?: number; readonly fork?: ForkOrigin } = {}) {
    const streamId = this.node.ids.take();
    const settings = { contentType: "text/plain", ttlSeconds: changes.ttlSeconds ?? null, expiresAtMs: changes.expiresAtMs ?? null };
    await this.run({ type: "create_stream", streamId, name, settings, isClosed: false, fork: changes.fork ?? null });
    return streamId;
  }

  /** Nobody owns the stream afterwards. */
  release(streamId: number, deadlineMs: number | null = null): Promise<void> {
    return this.run({ type: "release_stream", streamId, deadlineMs, walNumber: 0 });
  }

  /** Runs a command as the other node. */
  async asOther(command: Command): Promise<void> {
    const self = this.node.metadata.registration;
    if (this.node.metadata.view.registration(OTHER) === null) this.node.metadata.register(OTHER);
    this.node.metadata.registration = OTHER;
    try {
      await this.run(command);
    } finally {
      this.node.metadata.registration = self;
    }
  }

  async ready(name: string): Promise<StreamSession> {
    return settled(this.table.ready(name));
  }

  codeOfReady(name: string): Promise<string | null> {
    return codeOf(() => this.ready(name));
  }

  append(session: StreamSession, body: string, close = false) {
    const request = { name: session.entry.name, close, producer: { producerId: "p", producerEpoch: 1n, seq: 0n } };
    return session.append({ ...request, records: [record(body)], matchTail: null, streamSeq: null, mimeType: null });
  }

  acquires(): number {
    return this.proposed.filter(({ type }) => type === "acquire_stream").length;
  }
}

describe("a name", () => {
  test("that this view does not know is not found, behind one look at the head of the log", async () => {
    const desk = await Desk.open();
    expect(await desk.codeOfReady("/a")).toBe("not_found");
    expect(desk.catchUps).toBe(1);
    desk.onCatchUp = async () => {
      await desk.create("/a");
    };
    expect((await desk.ready("/a")).entry.name).toBe("/a");
    expect(desk.catchUps).toBe(2);
  });

  test("is not denied while the log cannot be read", async () => {
    const desk = await Desk.open();
    desk.onCatchUp = () => Promise.reject(new PicoError("unavailable", "the database is away"));
    expect(await desk.codeOfReady("/a")).toBe("unavailable");
  });

  test("of a deleted stream that forks need is gone, and asks nothing", async () => {
    const desk = await Desk.open();
    const sourceId = await desk.create("/a");
    await desk.create("/f", { fork: { sourceId, sourceName: "/a", offset: 0, requestedOffset: 0, requestedSubOffset: 0 } });
    await desk.run({ type: "delete_stream", streamId: sourceId });
    expect(await desk.codeOfReady("/a")).toBe("gone");
    expect(desk.catchUps).toBe(0);
    expect(desk.table.size).toBe(0);
  });

  test("in use is served at once and counts as used; one that is taken anew leads to the newer stream", async () => {
    const desk = await Desk.open();
    await desk.create("/a");
    const first = await desk.ready("/a");
    await desk.clock.advance(5000);
    expect(desk.table.ready("/a")).toBe(first);
    expect(first.lastUsedMs).toBe(desk.clock.monotonicMs());
    await desk.run({ type: "delete_stream", streamId: first.streamId });
    const waiting = first.waiters.wait(0, 60_000, null, desk.clock);
    desk.table.remove(first, "deleted");
    expect(await settled(waiting)).toBe("deleted");
    expect(desk.waitsEnded).toEqual([first]);
    await desk.create("/a");
    const second = await desk.ready("/a");
    expect(second.streamId).not.toBe(first.streamId);
    desk.table.remove(first, "deleted");
    expect(desk.table.byName("/a")).toBe(second);
    expect([...desk.table.sessions()]).toEqual([second]);
  });
});

describe("opening", () => {
  test("acquires and loads a stream once, however many ask", async () => {
    const desk = await Desk.open();
    const streamId = await desk.create("/a");
    await settled(desk.append(await desk.ready("/a"), "x"));
    await settled(desk.node.engine.uploadNow());
    await desk.clock.advance(SESSION_IDLE_MS);
    desk.table.sweep();
    await desk.run({ type: "release_stream", streamId, deadlineMs: null, walNumber: desk.node.engine.committedNumber });
    desk.opened.length = 0;
    const sessions = Array.from({ length: 50 }, () => desk.table.ready("/a"));
    expect(desk.table.isNeeded(streamId)).toBe(true);
    const [first, ...others] = await settled(Promise.all(sessions));
    for (const other of others) expect(other).toBe(first as StreamSession);
    expect(desk.acquires()).toBe(1);
    expect(desk.opened).toEqual([first as StreamSession]);
    expect(desk.store.reads).toBeLessThanOrEqual(3);
    expect(first?.info().nextOffset).toBe(1);
    expect(desk.node.metadata.view.streamById(streamId)?.owner).toEqual({ nodeId: 1, nodeEpoch: 1 });
  });

  test("is refused for a stream of another node, alive or in recovery, and for one on its way to it", async () => {
    const desk = await Desk.open();
    const streamId = await desk.create("/a");
    const moving = await desk.create("/moving");
    await desk.release(streamId);
    await desk.asOther({ type: "acquire_stream", streamId });
    expect(await desk.codeOfReady("/a")).toBe("unavailable");
    await desk.run({ type: "start_transfer", streamId: moving, toNodeId: 2, deadlineMs: desk.clock.nowMs() + 60_000 });
    await desk.release(moving);
    expect(await desk.codeOfReady("/moving")).toBe("unavailable");
    await desk.run({ type: "fence", victim: OTHER });
    expect(await desk.codeOfReady("/a")).toBe("unavailable");
    expect(desk.table.size).toBe(0);
    await desk.run({ type: "end", victim: OTHER, lastNumber: 0, heir: null });
    expect((await desk.ready("/a")).streamId).toBe(streamId);
    expect((await desk.ready("/moving")).streamId).toBe(moving);
  });

  test("removes a stream that is past its deadline in place of acquiring it", async () => {
    const desk = await Desk.open();
    const streamId = await desk.create("/a", { ttlSeconds: 10n });
    await desk.release(streamId, desk.clock.nowMs() + 10_000);
    await desk.clock.advance(10_000);
    expect(await desk.codeOfReady("/a")).toBe("not_found");
    expect(desk.node.metadata.view.streamById(streamId)).toBeNull();
  });

  test("waits a bounded time for the database, and takes back what was not sent", async () => {
    const desk = await Desk.open();
    const streamId = await desk.create("/a");
    await desk.release(streamId);
    desk.node.metadata.hold();
    const codes = [0, 1].map(() => codeOf(() => desk.table.ready("/a")));
    let isOver = false;
    void Promise.all(codes).then(() => {
      isOver = true;
    });
    await desk.clock.advance(PROPOSAL_WAIT_MS - 1);
    expect(isOver).toBe(false);
    await desk.clock.advance(1);
    expect(await settled(Promise.all(codes))).toEqual(["unavailable", "unavailable"]);
    desk.node.metadata.release();
    await quiet();
    expect(desk.node.metadata.view.streamById(streamId)?.owner).toBeNull();
    expect((await desk.ready("/a")).streamId).toBe(streamId);
  });

  test("that the store fails fails for all who wait, keeps nothing, and works the next time", async () => {
    const desk = await Desk.open();
    const streamId = await desk.create("/a");
    await settled(desk.append(await desk.ready("/a"), "x"));
    await settled(desk.node.engine.uploadNow());
    await desk.clock.advance(SESSION_IDLE_MS);
    desk.table.sweep();
    desk.store.failure = new PicoError("storage_failed", "the store is down");
    const codes = Array.from({ length: 3 }, () => desk.codeOfReady("/a"));
    expect(await Promise.all(codes)).toEqual(["storage_failed", "storage_failed", "storage_failed"]);
    expect(desk.table.size).toBe(0);
    expect(desk.table.isNeeded(streamId)).toBe(false);
    desk.store.failure = null;
    expect((await desk.ready("/a")).info().nextOffset).toBe(1);
  });

  test("leaves no session of a stream that went, wholly or elsewhere, while its tail state was read", async () => {
    for (const end of ["deleted", "kept", "moved"] as const) {
      const desk = await Desk.open();
      const streamId = await desk.create("/a");
      if (end === "kept")
        await desk.create("/f", { fork: { sourceId: streamId, sourceName: "/a", offset: 0, requestedOffset: 0, requestedSubOffset: 0 } });
      await settled(desk.append(await desk.ready("/a"), "x"));
      await settled(desk.node.engine.uploadNow());
      await desk.clock.advance(SESSION_IDLE_MS);
      desk.table.sweep();
      const reading = Promise.withResolvers<void>();
      desk.store.gate = reading.promise;
      const code = codeOf(() => desk.table.ready("/a"));
      await quiet();
      expect(desk.table.isNeeded(streamId)).toBe(true);
      if (end === "moved") {
        await desk.run({ type: "release_stream", streamId, deadlineMs: null, walNumber: 0 });
        await desk.asOther({ type: "acquire_stream", streamId });
      } else await desk.run({ type: "delete_stream", streamId });
      reading.resolve();
      expect(await settled(code)).toBe({ deleted: "not_found", kept: "gone", moved: "unavailable" }[end]);
      expect(desk.table.size).toBe(0);
      expect(desk.opened.length).toBe(1);
    }
  });

  test("knows the tail state again, producers and the close included, before the upload and after it", async () => {
    for (const isUploaded of [false, true]) {
      const desk = await Desk.open();
      await desk.create("/a");
      const first = await desk.ready("/a");
      await settled(desk.append(first, "x", true));
      if (isUploaded) await settled(desk.node.engine.uploadNow());
      desk.table.remove(first, "moved");
      const again = await desk.ready("/a");
      expect(again).not.toBe(first);
      expect(again.info()).toEqual(first.info());
      expect(again.isDurablyClosed).toBe(true);
      expect(again.producer("p")).toMatchObject({ lastSeq: 0n });
      expect(await settled(desk.append(again, "x", true))).toMatchObject({ kind: "duplicate", nextOffset: 1 });
    }
  });
});

describe("a frozen session", () => {
  test("is waited for, and served once it thaws", async () => {
    const desk = await Desk.open();
    await desk.create("/a");
    const session = await desk.ready("/a");
    const timers = desk.clock.timerCount;
    const thaw = Promise.withResolvers<void>();
    session.frozen = thaw.promise;
    const ready = desk.table.ready("/a");
    await desk.clock.advance(PROPOSAL_WAIT_MS - 10);
    session.frozen = null;
    thaw.resolve();
    expect(await settled(ready)).toBe(session);
    expect(desk.clock.timerCount).toBe(timers);
  });

  test("is waited for no longer than a proposal, and leaves no timer", async () => {
    const desk = await Desk.open();
    await desk.create("/a");
    const session = await desk.ready("/a");
    const timers = desk.clock.timerCount;
    session.frozen = new Promise(() => {});
    const code = codeOf(() => desk.table.ready("/a"));
    await desk.clock.advance(PROPOSAL_WAIT_MS);
    expect(await settled(code)).toBe("unavailable");
    expect(desk.clock.timerCount).toBe(timers);
  });
});

describe("a deadline", () => {
  test("counts from its very millisecond on, by the database's clock, while that is steady", async () => {
    const desk = await Desk.open();
    await desk.create("/a");
    const session = await desk.ready("/a");
    expect(desk.table.isDue(session)).toBe(false);
    session.deadlineMs = desk.clock.nowMs() + 5000;
    await desk.clock.advance(4999);
    expect(desk.table.isDue(session)).toBe(false);
    expect(desk.table.ready("/a")).toBe(session);
    await desk.clock.advance(1);
    expect(desk.table.isDue(session)).toBe(true);
    desk.node.metadata.isDatabaseClockSteady = false;
    expect(desk.table.isDue(session)).toBe(false);
    desk.node.metadata.isDatabaseClockSteady = true;
    desk.node.metadata.databaseOffsetMs = -1;
    expect(desk.table.isDue(session)).toBe(false);
  });

  test("that slides does not come while somebody waits; an absolute one does", async () => {
    const desk = await Desk.open();
    await desk.create("/sliding", { ttlSeconds: 10n });
    await desk.create("/absolute", { expiresAtMs: desk.clock.nowMs() + 10_000 });
    const due: boolean[] = [];
    for (const name of ["/sliding", "/absolute"]) {
      const session = await desk.ready(name);
      session.deadlineMs = desk.clock.nowMs();
      const stop = new AbortController();
      const waiting = session.waiters.wait(0, 1_000_000, stop.signal, desk.clock);
      due.push(desk.table.isDue(session));
      stop.abort();
      await waiting;
      expect(desk.table.isDue(session)).toBe(true);
    }
    expect(due).toEqual([false, true]);
  });

  test("reached has the stream removed; it is served only if the removal says that it is not due", async () => {
    const desk = await Desk.open();
    const streamId = await desk.create("/a");
    const session = await desk.ready("/a");
    session.deadlineMs = desk.clock.nowMs();
    expect(await desk.ready("/a")).toBe(session);
    desk.onExpire = () => false;
    expect(await desk.codeOfReady("/a")).toBe("unavailable");
    desk.onExpire = async () => {
      await desk.run({ type: "delete_stream", streamId });
      desk.table.remove(session, "deleted");
      return false;
    };
    expect(await desk.codeOfReady("/a")).toBe("not_found");
    expect(desk.expired).toEqual([session, session, session]);
  });
});

describe("a removal that fails at once", () => {
  test("is asked for once by each who waits, though each finds the stream frozen by another", async () => {
    const desk = await Desk.open();
    await desk.create("/a");
    const session = await desk.ready("/a");
    session.deadlineMs = desk.clock.nowMs();
    desk.onExpire = () => {
      if (desk.expired.length > 3) throw new Error("asked again");
      const frozen = quiet().then(() => {
        if (session.frozen === frozen) session.frozen = null;
      });
      session.frozen = frozen;
      return false;
    };
    expect(await Promise.all([1, 2, 3].map(() => desk.codeOfReady("/a")))).toEqual(Array(3).fill("unavailable"));
    expect(desk.expired).toHaveLength(3);
  });
});

describe("a removal under way of a stream without a session", () => {
  test("lets nobody open it until its outcome is applied, or it failed", async () => {
    for (const end of ["applied", "refused", "failed"]) {
      const desk = await Desk.open();
      const streamId = await desk.create("/a");
      const removal = Promise.withResolvers<void>();
      desk.table.withhold(streamId, removal.promise);
      const code = codeOf(() => desk.table.ready("/a"));
      for (let turn = 0; turn < 5; turn++) await quiet();
      expect(desk.table.isNeeded(streamId)).toBe(false);
      if (end === "applied") await desk.run({ type: "delete_stream", streamId });
      if (end === "failed") removal.reject(new PicoError("unavailable", "withdrawn"));
      else removal.resolve();
      expect(await settled(code)).toBe(end === "applied" ? "not_found" : null);
      expect(desk.table.size).toBe(end === "applied" ? 0 : 1);
    }
  });

  test("is waited for no longer than a proposal; an older one does not lift a newer one", async () => {
    const desk = await Desk.open();
    const streamId = await desk.create("/a");
    const older = Promise.withResolvers<void>();
    desk.table.withhold(streamId, older.promise);
    desk.table.withhold(streamId, new Promise(() => {}));
    older.resolve();
    await quiet();
    const code = codeOf(() => desk.table.ready("/a"));
    await desk.clock.advance(PROPOSAL_WAIT_MS - 1);
    expect(desk.table.size).toBe(0);
    await desk.clock.advance(1);
    expect(await settled(code)).toBe("unavailable");
  });
});

describe("a sweep", () => {
  /** A session of one uploaded record that was used just now. */
  async function used(options: TestNodeOptions = {}) {
    const desk = await Desk.open(options);
    await desk.create("/a");
    const session = await desk.ready("/a");
    await settled(desk.append(session, "x"));
    await settled(desk.node.engine.uploadNow());
    session.lastUsedMs = desk.clock.monotonicMs();
    return { desk, session };
  }

  test("drops a session at its idle limit, not a millisecond before, and its log with it", async () => {
    const { desk, session } = await used();
    await desk.clock.advance(SESSION_IDLE_MS - 1);
    desk.table.sweep();
    expect(desk.table.size).toBe(1);
    await desk.clock.advance(1);
    desk.table.sweep();
    expect(desk.table.size).toBe(0);
    expect(desk.table.byName("/a")).toBeUndefined();
    expect(desk.dropped).toEqual([session]);
    expect(desk.node.engine.cache.streamCount).toBe(0);
    expect(desk.node.metadata.view.streamByName("/a")?.owner).toEqual({ nodeId: 1, nodeEpoch: 1 });
  });

  test("spares a session that is waited on, frozen, or asked for since", async () => {
    const { desk, session } = await used();
    await desk.clock.advance(SESSION_IDLE_MS);
    const stop = new AbortController();
    const waiting = session.waiters.wait(1, 1_000_000, stop.signal, desk.clock);
    desk.table.sweep();
    expect(desk.table.size).toBe(1);
    stop.abort();
    await waiting;
    session.frozen = Promise.resolve();
    desk.table.sweep();
    expect(desk.table.size).toBe(1);
    session.frozen = null;
    void desk.table.ready("/a");
    desk.table.sweep();
    expect(desk.table.size).toBe(1);
    await desk.clock.advance(SESSION_IDLE_MS);
    desk.table.sweep();
    expect(desk.table.size).toBe(0);
  });

  test("spares a session whose last entry is not uploaded, or not even durable", async () => {
    const gated = gate();
    const { desk, session } = await used({ wal: gated.wal });
    await desk.clock.advance(SESSION_IDLE_MS);
    gated.gated().hold();
    const request = { name: "/a", close: false, producer: null, matchTail: null, streamSeq: null, mimeType: null };
    const appended = session.append({ ...request, records: [record("y")] });
    await quiet();
    expect(desk.table.canDrop(session)).toBe(false);
    desk.table.sweep();
    gated.gated().release();
    await settled(appended);
    expect(desk.table.canDrop(session)).toBe(false);
    desk.table.sweep();
    expect(desk.table.size).toBe(1);
    await settled(desk.node.engine.uploadNow());
    expect(desk.table.canDrop(session)).toBe(true);
    desk.table.sweep();
    expect(desk.table.size).toBe(0);
    expect((await desk.ready("/a")).info().nextOffset).toBe(2);
  });

  test("drops any number of idle sessions beside those that stay", async () => {
    const desk = await Desk.open();
    for (let at = 0; at < 40; at++) {
      await desk.create(`/${at}`);
      await desk.ready(`/${at}`);
    }
    await desk.clock.advance(SESSION_IDLE_MS);
    for (let at = 0; at < 40; at += 3) void desk.table.ready(`/${at}`);
    desk.table.sweep();
    expect(Array.from(desk.table.sessions(), ({ entry }) => Number(entry.name.slice(1)) % 3)).toEqual(Array(14).fill(0));
    expect(desk.dropped.length).toBe(26);
  });
});

describe("the state that a stream begins with", () => {
  test("is empty, and for a fork its offset and the time of the last record that it inherits", async () => {
    const desk = await Desk.open();
    const sourceId = await desk.create("/a");
    const source = await desk.ready("/a");
    for (const at of [0, 1, 2]) {
      const request = { name: "/a", close: false, producer: null, matchTail: null, streamSeq: "s", mimeType: null };
      await settled(source.append({ ...request, streamSeq: `s${at}`, records: [record("x")] }));
      await desk.clock.advance(1000);
    }
    const firstMs = desk.clock.nowMs() - 3000;
    const { engine, metadata } = desk.node;
    expect(await initialTailState(engine, source.entry)).toMatchObject({ nextOffset: 0, lastTimestampMs: 0, changeNumber: 0 });
    for (const offset of [0, 1, 3]) {
      const fork = { sourceId, sourceName: "/a", offset, requestedOffset: offset, requestedSubOffset: 0 };
      const streamId = await desk.create(`/fork-${offset}`, { fork });
      const entry = metadata.view.streamById(streamId);
      if (entry === null) throw new Error("no fork");
      const lastTimestampMs = offset === 0 ? 0 : firstMs + (offset - 1) * 1000;
      expect(await settled(initialTailState(engine, entry))).toMatchObject({ nextOffset: offset, lastTimestampMs, streamSeq: null });
      expect((await desk.ready(`/fork-${offset}`)).nextOffset).toBe(offset);
    }
  });
});
