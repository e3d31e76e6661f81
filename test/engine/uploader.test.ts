import { describe, expect, spyOn, test } from "bun:test";
import { BlockCache } from "../../src/engine/block-cache.ts";
import { DataObjectReaders } from "../../src/engine/data-object-readers.ts";
import { DataObjectWriter } from "../../src/engine/data-object-writer.ts";
import { type CachedSegment, LogCache } from "../../src/engine/log-cache.ts";
import { StreamReader } from "../../src/engine/stream-reader.ts";
import type { TailState } from "../../src/engine/tail-state.ts";
import { Uploader, type UploadSource } from "../../src/engine/uploader.ts";
import { type ErrorCode, PicoError } from "../../src/lib/errors.ts";
import {
  MIB,
  OBJECT_BYTES_TARGET,
  OBJECT_CREATE_MS_MAX,
  OBJECT_GIVE_UP_MS,
  PREPARED_OBJECT_TTL_MS,
  UPLOAD_RETRY_MS_MAX,
  WORK_SLICE_STEPS,
} from "../../src/lib/limits.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import type { Command } from "../../src/metadata/command.ts";
import type { ObjectEntry } from "../../src/metadata/entries.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { codeOf } from "../support/code-of.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { silentLog } from "../support/silent-log.ts";
import { bodiesOf } from "../support/test-node.ts";
import { CachedWal } from "./cached-wal.ts";
import { bodyName } from "./data-object-fixtures.ts";

const SELF = { nodeId: 1, nodeEpoch: 1 };

/** Fails before or behind what it does, as the test says, and remembers what was asked of it. */
class MoodyStore extends MemoryObjectStore {
  readonly creates: { readonly key: string; readonly bytes: Uint8Array }[] = [];
  /** Errors of the next creates; `null`: none. Those of the second list come behind the effect. */
  readonly refusals: (Error | null)[] = [];
  readonly losses: (Error | null)[] = [];
  readonly readFailures: Error[] = [];
  /** Runs before each create. */
  before: (key: string, bytes: Uint8Array) => Promise<void> | void = () => {};
  underWay = 0;
  underWayMost = 0;

  override async create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    this.creates.push({ key, bytes: bytes.slice() });
    this.underWay += 1;
    this.underWayMost = Math.max(this.underWayMost, this.underWay);
    try {
      await this.before(key, bytes);
      const refusal = this.refusals.shift();
      if (refusal) throw refusal;
      const outcome = await super.create(key, bytes);
      const loss = this.losses.shift();
      if (loss) throw loss;
      return outcome;
    } finally {
      this.underWay -= 1;
    }
  }

  override async read(...words: Parameters<MemoryObjectStore["read"]>): Promise<Uint8Array | null> {
    const failure = this.readFailures.shift();
    if (failure !== undefined) throw failure;
    return super.read(...words);
  }
}

/** An uploader over a log cache that the test fills. Streams are created before they are written. */
class Dock {
  readonly clock = new ManualClock();
  readonly metadata = new DirectMetadata(this.clock);
  readonly store = new MoodyStore(this.clock);
  readonly cache = new LogCache(0);
  readonly wal = new CachedWal(this.cache, SELF);
  readonly aborted = new AbortController();
  readonly uploader = new Uploader({
    clusterId: "c",
    clock: this.clock,
    random: new SeededRandom(5),
    log: silentLog,
    metadata: this.metadata,
    store: this.store,
  });
  readonly proposed: Command[] = [];
  #nextStreamId = this.metadata.register(SELF);

  constructor() {
    const { propose } = this.metadata;
    this.metadata.propose = (command) => {
      this.proposed.push(command);
      return propose.call(this.metadata, command);
    };
  }

  takeId(): number {
    return this.#nextStreamId++;
  }

  async run(command: Command): Promise<void> {
    const outcome = await this.metadata.propose(command).outcome;
    if (!outcome.applied) throw new Error(`${command.type} was refused: ${outcome.code}`);
  }

  async create(source?: number, offset = 0, streamId = this.takeId()): Promise<number> {
    const settings = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null };
    const fork =
      source === undefined ? null : { sourceId: source, sourceName: `/${source}`, offset, requestedOffset: 0, requestedSubOffset: 0 };
    await this.run({ type: "create_stream", streamId, name: `/${streamId}`, settings, isClosed: false, fork });
    return streamId;
  }

  source(segments: readonly CachedSegment[], changes: Partial<UploadSource> = {}): UploadSource {
    return { wal: SELF, from: this.committed(), to: this.wal.number, segments, ...changes };
  }

  upload(segments: readonly CachedSegment[], changes: Partial<UploadSource> = {}): Promise<void> {
    return this.uploader.upload(this.source(segments, changes), this.aborted.signal);
  }

  committed(wal: RegistrationName = SELF): number {
    return this.metadata.view.registration(wal)?.committedNumber ?? -1;
  }

  live(): ObjectEntry[] {
    return [...this.metadata.view.objects()].filter(({ state }) => state === "live");
  }

  commits(): number {
    return this.proposed.filter(({ type }) => type === "commit").length;
  }

  /** What the objects alone hold of `[from, end)`. */
  async stored(streamId: number, from: number, end: number): Promise<string[]> {
    const entry = this.metadata.view.streamById(streamId);
    if (entry === null) throw new Error(`no stream ${streamId}`);
    return bodiesOf(await this.#reader().read(entry, { from, end, recordsMax: 0, bytesMax: 1 << 20 }));
  }

  storedTail(streamId: number): Promise<TailState | null> {
    return this.#reader().readTailState(streamId);
  }

  #reader(): StreamReader {
    return new StreamReader(new LogCache(0), this.metadata, new DataObjectReaders(this.store, new BlockCache(MIB), "c"));
  }
}

function named(streamId: number, from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, at) => bodyName(streamId, from + at));
}

function failure(code: ErrorCode): PicoError {
  return new PicoError(code, "as the test says");
}

describe("an upload", () => {
  test("of an interval without entries, or of streams that nobody knows, commits it without an object", async () => {
    const dock = new Dock();
    await dock.upload([], { from: 0, to: 3 });
    expect(dock.committed()).toBe(3);
    const deleted = await dock.create();
    const segment = dock.wal.segment({ streamId: deleted, count: 3 }, { streamId: dock.takeId(), count: 1 });
    await dock.run({ type: "delete_stream", streamId: deleted });
    await dock.upload([segment], { from: 3, to: 4 });
    expect(dock.committed()).toBe(4);
    expect(dock.store.creates).toEqual([]);
    expect(dock.live()).toEqual([]);
  });

  test("brings each stream's records and tail state into one object of level 0, in the order of ids, and says what closed", async () => {
    const dock = new Dock();
    // So that the order of numbers is not that of digits.
    for (let id = dock.takeId(); id < 8; id = dock.takeId());
    const [a, b, c] = [await dock.create(), await dock.create(), await dock.create()];
    expect([a, b, c]).toEqual([9, 10, 11]);
    const producer = { producerId: "p", producerEpoch: 3n, seq: 7n };
    const segments = [
      dock.wal.segment({ streamId: c, count: 2 }, { streamId: a, count: 1 }),
      dock.wal.segment({ streamId: b, count: 0, producer }, { streamId: a, count: 2, closes: true }),
      dock.wal.segment({ streamId: c, count: 1, producer }),
    ];
    await dock.upload(segments);
    const [object, ...others] = dock.live();
    expect(others).toEqual([]);
    expect(object?.summary).toMatchObject({ level: 0, streamCount: 3, recordCount: 6, first: { streamId: a, offset: 0 } });
    expect(object?.summary?.last).toEqual({ streamId: c, offset: 2 });
    expect(object?.preparedUntilMs).toBe(dock.metadata.databaseNowMs() + PREPARED_OBJECT_TTL_MS);
    expect(dock.store.creates.map(({ key }) => key)).toEqual([`c/data/${object?.random}/${object?.objectId}`]);
    expect(await dock.stored(a, 0, 3)).toEqual(named(a, 0, 3));
    expect(await dock.stored(c, 0, 3)).toEqual(named(c, 0, 3));
    for (const streamId of [a, b, c]) expect(await dock.storedTail(streamId)).toEqual(dock.wal.tail(streamId));
    expect([a, b, c].map((streamId) => dock.metadata.view.streamById(streamId)?.isClosed)).toEqual([true, false, false]);
    expect(dock.committed()).toBe(3);
  });

  test("drops what is trimmed, up to the trim point exactly, and keeps the tail state also where no record is left", async () => {
    for (let startOffset = 0; startOffset <= 6; startOffset++) {
      const dock = new Dock();
      const streamId = await dock.create();
      const segments = [2, 3, 1].map((count) => dock.wal.segment({ streamId, count }));
      await dock.run({ type: "trim_stream", streamId, startOffset });
      await dock.upload(segments);
      expect(dock.live()[0]?.summary?.recordCount).toBe(6 - startOffset);
      expect(await dock.stored(streamId, startOffset, 6)).toEqual(named(streamId, startOffset, 6));
      expect(await dock.storedTail(streamId)).toEqual(dock.wal.tail(streamId));
    }
  });

  test("keeps everything that a fork may need: of a source trimmed, deleted, or both", async () => {
    for (const isDeleted of [false, true]) {
      const dock = new Dock();
      const source = await dock.create();
      const fork = await dock.create(source, 2);
      const segment = dock.wal.segment({ streamId: source, count: 4 });
      await dock.run({ type: "trim_stream", streamId: source, startOffset: 4 });
      if (isDeleted) await dock.run({ type: "delete_stream", streamId: source });
      await dock.upload([segment]);
      expect(await dock.stored(source, 0, 4)).toEqual(named(source, 0, 4));
      expect(await dock.stored(fork, 0, 2)).toEqual(named(source, 0, 2));
    }
  });

  test("of a later interval finds the base of a stream before it where that is cached still", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    await dock.upload([dock.wal.segment({ streamId, count: 2 })]);
    await dock.upload([dock.wal.segment({ streamId, count: 2 })]);
    expect(dock.live().map(({ summary }) => summary?.recordCount)).toEqual([2, 2]);
    expect(await dock.stored(streamId, 0, 4)).toEqual(named(streamId, 0, 4));
    expect(await dock.storedTail(streamId)).toEqual(dock.wal.tail(streamId));
  });

  test("of a stream that has no base anywhere is corrupt, and nothing is committed", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    const first = dock.wal.segment({ streamId, count: 1 });
    const segment = dock.wal.segment({ streamId, count: 1 });
    first.isUploaded = true;
    dock.cache.evict();
    expect(await codeOf(() => dock.upload([segment]))).toBe("corrupt");
    expect(dock.commits()).toBe(0);
  });

  test("holds the interval's state of a stream that is appended to meanwhile, and gives appends their turns", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    const count = WORK_SLICE_STEPS * 4;
    const segments = Array.from({ length: count }, () => dock.wal.segment({ streamId, count: 1 }));
    const source = dock.source(segments);
    const tail = dock.wal.tail(streamId);
    const upload = dock.uploader.upload(source, dock.aborted.signal);
    // Each entry is gone through twice, for the tail state and for its records, with four pauses each.
    for (let turn = 0; turn < 7; turn++) {
      dock.wal.segment({ streamId, count: 1 });
      await quiet();
    }
    expect(dock.store.creates).toEqual([]);
    await upload;
    expect(dock.live()[0]?.summary?.recordCount).toBe(count);
    expect(await dock.storedTail(streamId)).toEqual(tail);
  });
});

describe("large uploads", () => {
  test("are stored object by object, one at a time, each before the next is built, and committed once all are there", async () => {
    const dock = new Dock();
    const [a, b] = [await dock.create(), await dock.create()];
    const bodyBytes = 4 * MIB;
    const segments = Array.from({ length: 20 }, (_, at) => dock.wal.segment({ streamId: at < 19 ? a : b, count: 1, bodyBytes }));
    const added = spyOn(DataObjectWriter.prototype, "add");
    const addedAtCreate: number[] = [];
    dock.store.before = () => void addedAtCreate.push(added.mock.calls.length);
    const objectsAtCommit: number[] = [];
    const { propose } = dock.metadata;
    dock.metadata.propose = (command) => {
      if (command.type === "commit") objectsAtCommit.push(dock.store.creates.length - dock.store.underWay);
      return propose.call(dock.metadata, command);
    };
    await dock.upload(segments);
    added.mockRestore();
    expect(dock.live().length).toBe(2);
    expect(objectsAtCommit).toEqual([2]);
    expect(dock.store.underWayMost).toBe(1);
    for (const { bytes } of dock.store.creates) expect(bytes.length).toBeLessThanOrEqual(OBJECT_BYTES_TARGET);
    // Drafts that wait are memory: the first is stored before the stream's later records are added.
    expect(addedAtCreate[0]).toBeLessThanOrEqual(OBJECT_BYTES_TARGET / bodyBytes);
    expect((await dock.stored(a, 15, 16))[0]?.slice(0, 20)).toBe(bodyName(a, 15).padEnd(20, "."));
    expect(await dock.storedTail(b)).toEqual(dock.wal.tail(b));
  }, 60_000);
});

describe("a create on its way", () => {
  test("holds up the interval until it is decided: created, refused or failed", async () => {
    for (const end of ["created", "refused", "failed"]) {
      const dock = new Dock();
      const [known, undecided] = [await dock.create(), dock.takeId()];
      const segment = dock.wal.segment({ streamId: known, count: 1 }, { streamId: undecided, count: 2 });
      const decided = Promise.withResolvers<void>();
      dock.uploader.hold(undecided, decided.promise);
      const upload = dock.upload([segment]);
      for (let turn = 0; turn < 5; turn++) await quiet();
      expect(dock.store.creates).toEqual([]);
      if (end === "created") await dock.create(undefined, 0, undecided);
      if (end === "failed") decided.reject(failure("unavailable"));
      else decided.resolve();
      await settled(upload);
      expect(dock.live()[0]?.summary?.recordCount).toBe(end === "created" ? 3 : 1);
      expect(dock.committed()).toBe(1);
    }
  });

  test("holds up no interval that does not carry it", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    dock.uploader.hold(dock.takeId(), new Promise(() => {}));
    await settled(dock.upload([dock.wal.segment({ streamId, count: 1 })]));
    expect(dock.committed()).toBe(1);
  });

  test("that is never decided keeps nobody waiting once the node stops", async () => {
    const dock = new Dock();
    const undecided = dock.takeId();
    dock.uploader.hold(undecided, new Promise(() => {}));
    const upload = codeOf(() => dock.upload([dock.wal.segment({ streamId: undecided, count: 1 })]));
    await quiet();
    dock.aborted.abort();
    expect(await settled(upload)).toBe("unavailable");
    expect(dock.commits()).toBe(0);
  });
});

describe("a store that fails", () => {
  test("is asked again with the same key and the same bytes, and nothing is committed before it has them", async () => {
    for (const code of ["storage_failed", "storage_full", "unknown_outcome"] as const) {
      const dock = new Dock();
      const streamId = await dock.create();
      const segment = dock.wal.segment({ streamId, count: 3 });
      dock.store.refusals.push(...Array.from({ length: 4 }, () => failure(code)));
      const upload = dock.upload([segment]);
      for (let turn = 0; turn < 5; turn++) await quiet();
      expect(dock.store.creates.length).toBe(1);
      await dock.clock.advance(UPLOAD_RETRY_MS_MAX);
      await settled(upload);
      const [first, ...others] = dock.store.creates;
      expect(others.length).toBe(4);
      for (const other of others) expect(other).toEqual(first ?? { key: "", bytes: new Uint8Array() });
      expect(dock.commits()).toBe(1);
      expect(await dock.stored(streamId, 0, 3)).toEqual(named(streamId, 0, 3));
      expect(dock.clock.timerCount).toBe(0);
    }
  });

  test("and goes on failing gets the whole upload again, under other keys, for as long as it takes", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    const segment = dock.wal.segment({ streamId, count: 3 });
    dock.store.refusals.push(...Array.from({ length: 52 }, () => failure("storage_full")));
    const upload = dock.upload([segment]);
    await dock.clock.advance(60 * UPLOAD_RETRY_MS_MAX);
    await settled(upload);
    const keys = dock.store.creates.map(({ key }) => key);
    expect(keys.length).toBe(53);
    expect(new Set(keys).size).toBe(11);
    expect(dock.live().map(({ summary }) => summary?.recordCount)).toEqual([3]);
    expect(dock.commits()).toBe(1);
    // Each failed try gave its object up at once.
    expect([...dock.metadata.view.objects()].filter(({ state }) => state === "destroyed").length).toBe(10);
    expect([...dock.metadata.view.preparedObjects()]).toEqual([]);
  });

  test("for so long that the preparation would expire is not asked again for that object: the next try prepares another", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    dock.store.before = () => {
      dock.store.before = () => {};
      dock.clock.stall(PREPARED_OBJECT_TTL_MS - OBJECT_CREATE_MS_MAX + 1);
      throw failure("storage_failed");
    };
    const upload = dock.upload([dock.wal.segment({ streamId, count: 3 })]);
    await quiet();
    await dock.clock.advance(2 * UPLOAD_RETRY_MS_MAX);
    await settled(upload);
    expect(dock.store.creates.length).toBe(2);
    expect(new Set(dock.store.creates.map(({ key }) => key)).size).toBe(2);
    expect(dock.live().length).toBe(1);
  });

  test("leaves an object prepared that the database cannot be told of, and a stop does not wait for that", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    dock.store.before = () => {
      dock.metadata.hold();
      throw failure("corrupt");
    };
    const upload = codeOf(() => dock.upload([dock.wal.segment({ streamId, count: 1 })]));
    await dock.clock.advance(OBJECT_GIVE_UP_MS);
    expect(await settled(upload)).toBe("corrupt");
    dock.metadata.release();
    await quiet();
    // The command was withdrawn.
    expect([...dock.metadata.view.preparedObjects()].length).toBe(1);
    expect(dock.clock.timerCount).toBe(0);
  });

  test("whose answer is lost has the object: it is recognised and committed once", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    dock.store.losses.push(failure("unknown_outcome"));
    // Reading back fails at first, too.
    dock.store.readFailures.push(failure("storage_failed"));
    const upload = dock.upload([dock.wal.segment({ streamId, count: 3 })]);
    await dock.clock.advance(UPLOAD_RETRY_MS_MAX);
    await settled(upload);
    expect(new Set(dock.store.creates.map(({ key }) => key)).size).toBe(1);
    expect(dock.live().length).toBe(1);
    expect(await dock.stored(streamId, 0, 3)).toEqual(named(streamId, 0, 3));
  });

  test("and has other bytes under the key is corrupt, and nothing is committed", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    dock.store.before = async (key, bytes) => {
      dock.store.before = () => {};
      const other = bytes.slice();
      other[20] = (other[20] ?? 0) ^ 1;
      await dock.store.create(key, other);
    };
    expect(await codeOf(() => settled(dock.upload([dock.wal.segment({ streamId, count: 3 })])))).toBe("corrupt");
    expect(dock.commits()).toBe(0);
  });

  test("with anything else than a failure of the store ends the upload at once", async () => {
    for (const error of [failure("corrupt"), failure("fenced_node"), new TypeError("a fault of ours")]) {
      const dock = new Dock();
      const streamId = await dock.create();
      dock.store.refusals.push(error);
      const thrown: unknown = await settled(dock.upload([dock.wal.segment({ streamId, count: 1 })]).catch((reason: unknown) => reason));
      expect(thrown).toBe(error);
      expect(dock.store.creates.length).toBe(1);
    }
  });
});

describe("a metadata log that refuses", () => {
  test("a commit for certain frees its objects, and one whose outcome is open leaves them: they may be live", async () => {
    for (const code of ["unavailable", "unknown_outcome"] as const) {
      const dock = new Dock();
      const streamId = await dock.create();
      const { propose } = dock.metadata;
      dock.metadata.propose = (command) => {
        if (command.type !== "commit") return propose.call(dock.metadata, command);
        dock.metadata.propose = propose;
        const outcome = Promise.reject(failure(code));
        outcome.catch(() => {});
        return { outcome, isSent: true, withdraw: () => false };
      };
      const upload = dock.upload([dock.wal.segment({ streamId, count: 1 })]);
      await quiet();
      await quiet();
      expect([...dock.metadata.view.preparedObjects()].length).toBe(code === "unavailable" ? 0 : 1);
      await dock.clock.advance(UPLOAD_RETRY_MS_MAX);
      await settled(upload);
      expect(dock.live().length).toBe(1);
    }
  });

  test("a commit at another position means that the interval is not ours any more", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    const segment = dock.wal.segment({ streamId, count: 1 });
    for (const [from, to] of [
      [1, 2],
      [0, 0],
    ] as const) {
      expect(await codeOf(() => settled(dock.upload([segment], { from, to })))).toBe("fenced_node");
    }
    expect(dock.committed()).toBe(0);
    expect(dock.live()).toEqual([]);
  });

  test("two uploads of one interval commit it once; the later one is told that it lost", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    const segments = [dock.wal.segment({ streamId, count: 4 })];
    const codes = await settled(Promise.all([0, 1].map(() => codeOf(() => dock.upload(segments)))));
    expect(codes.sort()).toEqual(["fenced_node", null] as string[]);
    expect(dock.live().map(({ summary }) => summary?.recordCount)).toEqual([4]);
    expect(await dock.stored(streamId, 0, 4)).toEqual(named(streamId, 0, 4));
  });

  test("the WAL of a registration that lives belongs to it, and to its recoverer once it is fenced", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    const segment = dock.wal.segment({ streamId, count: 2 });
    dock.metadata.register({ nodeId: 2, nodeEpoch: 1 });
    expect(await codeOf(() => settled(dock.upload([segment])))).toBe("fenced_node");
    await dock.run({ type: "fence", victim: SELF });
    await settled(dock.upload([segment]));
    expect(dock.committed()).toBe(1);
    expect(await dock.stored(streamId, 0, 2)).toEqual(named(streamId, 0, 2));
    dock.metadata.registration = SELF;
    expect(await codeOf(() => settled(dock.upload([dock.wal.segment({ streamId, count: 1 })])))).toBe("fenced_node");
    expect(dock.store.creates.length).toBe(2);
  });

  test("a commit of objects that were given up meanwhile has them written again, under new keys", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    dock.store.before = async (key) => {
      dock.store.before = () => {};
      await dock.run({ type: "destroy_objects", objectIds: [Number(key.split("/").at(-1))] });
    };
    const upload = dock.upload([dock.wal.segment({ streamId, count: 2 })]);
    await dock.clock.advance(UPLOAD_RETRY_MS_MAX);
    await settled(upload);
    expect(dock.commits()).toBe(2);
    expect(new Set(dock.store.creates.map(({ key }) => key)).size).toBe(2);
    expect(dock.live().map(({ summary }) => summary?.recordCount)).toEqual([2]);
    expect(await dock.stored(streamId, 0, 2)).toEqual(named(streamId, 0, 2));
  });

  test("a proposal that was certainly not taken is made again", async () => {
    for (const type of ["prepare_objects", "commit"]) {
      const dock = new Dock();
      const streamId = await dock.create();
      const { propose } = dock.metadata;
      let refusals = 2;
      dock.metadata.propose = (command) => {
        if (command.type !== type || refusals-- <= 0) return propose.call(dock.metadata, command);
        return { outcome: Promise.reject(failure("unavailable")), isSent: false, withdraw: () => false };
      };
      const upload = dock.upload([dock.wal.segment({ streamId, count: 2 })]);
      await dock.clock.advance(UPLOAD_RETRY_MS_MAX);
      await settled(upload);
      expect(dock.committed()).toBe(1);
      expect(dock.live().map(({ summary }) => summary?.recordCount)).toEqual([2]);
    }
  });
});

describe("a node that stops", () => {
  test("ends an upload that waits to try again, of one object or as a whole; nothing follows", async () => {
    for (const tries of [1, 5]) {
      const dock = new Dock();
      const streamId = await dock.create();
      dock.store.refusals.push(...Array.from({ length: 100 }, () => failure("storage_failed")));
      const upload = codeOf(() => dock.upload([dock.wal.segment({ streamId, count: 2 })]));
      await quiet();
      while (dock.store.creates.length < tries) await dock.clock.advance(10);
      dock.aborted.abort();
      expect(await settled(upload)).toBe("unavailable");
      expect(dock.store.creates.length).toBe(tries);
      await dock.clock.advance(10 * UPLOAD_RETRY_MS_MAX);
      expect(dock.store.creates.length).toBe(tries);
      expect(dock.commits()).toBe(0);
      expect(dock.clock.timerCount).toBe(0);
    }
  });

  test("meanwhile lets the answer of the store decide nothing: what fails is not tried again", async () => {
    const dock = new Dock();
    const streamId = await dock.create();
    dock.store.before = () => dock.aborted.abort();
    dock.store.refusals.push(failure("storage_failed"));
    expect(await codeOf(() => settled(dock.upload([dock.wal.segment({ streamId, count: 2 })])))).toBe("unavailable");
    expect(dock.store.creates.length).toBe(1);
  });
});
