import { describe, expect, test } from "bun:test";
import type { BlockCache } from "../../src/engine/block-cache.ts";
import { LogCache } from "../../src/engine/log-cache.ts";
import type { PageBuilder } from "../../src/engine/page-builder.ts";
import { type PageBounds, StreamReader } from "../../src/engine/stream-reader.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import { isPicoError, PicoError } from "../../src/lib/errors.ts";
import type { Command } from "../../src/metadata/command.ts";
import type { StreamEntry } from "../../src/metadata/entries.ts";
import { codeOf } from "../support/code-of.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { bodiesOf } from "../support/test-node.ts";
import { CachedWal } from "./cached-wal.ts";
import { bodyName, buildObjects, namedStream, ReadOnlyStore, readersOf, type StreamInput } from "./data-object-fixtures.ts";

const SELF = { nodeId: 1, nodeEpoch: 1 };
const ALL = { recordsMax: 0, bytesMax: 1 << 20 };

/** A reader over everything that it stands on, all of it in the test's hands. */
class Shelf {
  readonly metadata = new DirectMetadata(new ManualClock());
  readonly cache = new LogCache(0);
  readonly wal = new CachedWal(this.cache, SELF);
  readonly store = new ReadOnlyStore();
  readonly reader: StreamReader;
  readonly blocks: BlockCache;
  catchUps = 0;
  /** What the view learns by its next catch-ups, one by one. */
  readonly news: (() => Promise<void> | void)[] = [];
  #nextStreamId = this.metadata.register(SELF);
  #committed = 0;

  constructor(blockCacheBytes = 1 << 20) {
    const { readers, cache } = readersOf(this.store, blockCacheBytes);
    this.blocks = cache;
    this.reader = new StreamReader(this.cache, this.metadata, readers);
    this.metadata.catchUp = async () => {
      this.catchUps += 1;
      await this.news.shift()?.();
    };
  }

  async run(command: Command): Promise<Readonly<Record<string, number>>> {
    const outcome = await this.metadata.propose(command).outcome;
    if (!outcome.applied) throw new Error(`${command.type} was refused: ${outcome.code}`);
    return outcome.facts;
  }

  async create(name: string, source?: StreamEntry, offset = 0): Promise<StreamEntry> {
    const streamId = this.#nextStreamId++;
    const fork =
      source === undefined
        ? null
        : { sourceId: source.streamId, sourceName: source.name, offset, requestedOffset: offset, requestedSubOffset: 0 };
    const settings = { contentType: "text/plain", ttlSeconds: null, expiresAtMs: null };
    await this.run({ type: "create_stream", streamId, name, settings, isClosed: false, fork });
    return this.entry(streamId);
  }

  entry(streamId: number): StreamEntry {
    const entry = this.metadata.view.streamById(streamId);
    if (entry === null) throw new Error(`no stream ${streamId}`);
    return entry;
  }

  /** Stores one object and makes it live, as an upload does, or in place of `inputs`, as a compaction does. Returns its key. */
  async upload(streams: readonly StreamInput[], level = 0, inputs: readonly number[] = []): Promise<string> {
    const random = "0123456789abcdef";
    const { firstObjectId = 0 } = await this.run({ type: "prepare_objects", randoms: [random], expiresAtMs: 2 ** 48 });
    const [object] = buildObjects(streams, { level, blockBytesTarget: 200 }, firstObjectId);
    if (object === undefined) throw new Error("no object was built");
    this.store.put(object);
    if (inputs.length > 0) await this.run({ type: "compact", inputs, outputs: [object.summary] });
    else
      await this.run({
        type: "commit",
        wal: SELF,
        from: this.#committed++,
        to: this.#committed,
        objects: [object.summary],
        closedStreams: [],
      });
    return `cluster0/data/${random}/${firstObjectId}`;
  }

  get newestObjectId(): number {
    return Math.max(...[...this.metadata.view.objects()].map(({ objectId }) => objectId));
  }

  async read(entry: StreamEntry, from: number, end: number, changes: Partial<PageBounds> = {}): Promise<string[]> {
    const page = await this.reader.read(entry, { ...ALL, ...changes, from, end });
    let next = from;
    for (const slice of page.slices) {
      if (slice.from !== next) throw new Error(`a page goes on at ${slice.from} instead of ${next}`);
      next = slice.to;
    }
    if (page.next !== next) throw new Error(`a page that ends at ${next} says ${page.next}`);
    return bodiesOf(page);
  }

  /** The error that a read of `[from, end)` ends in. */
  async errorOf(entry: StreamEntry, from: number, end: number): Promise<PicoError> {
    const thrown: unknown = await this.read(entry, from, end).then(
      (bodies) => bodies,
      (error: unknown) => error,
    );
    if (!isPicoError(thrown)) throw new Error(`read, or failed otherwise: ${String(thrown)}`);
    return thrown;
  }
}

/** What a page of those bodies holds, by the rules of `PageBounds`. */
function expectedPage(bodies: readonly string[], { from, end, recordsMax, bytesMax }: PageBounds): string[] {
  const page: string[] = [];
  let bytes = 0;
  for (const body of bodies.slice(from, end)) {
    if (recordsMax > 0 && page.length === recordsMax) break;
    if (page.length > 0 && bytes + body.length > bytesMax) break;
    bytes += body.length;
    page.push(body);
  }
  return page;
}

/** Every page of a stream whose records are `bodies`, from offset 0. */
async function checkAllPages(shelf: Shelf, entry: StreamEntry, bodies: readonly string[]): Promise<void> {
  const wrong: unknown[] = [];
  for (let from = 0; from <= bodies.length; from++) {
    for (let end = from; end <= bodies.length; end++) {
      for (const recordsMax of [0, 1, 3]) {
        for (const bytesMax of [1, 8, 9, 1 << 20]) {
          const bounds = { from, end, recordsMax, bytesMax };
          const found = await shelf.read(entry, from, end, bounds);
          if (!Bun.deepEquals(found, expectedPage(bodies, bounds))) wrong.push({ bounds, found });
        }
      }
    }
  }
  expect(wrong).toEqual([]);
}

function named(streamId: number, from: number, to: number): string[] {
  return Array.from({ length: to - from }, (_, at) => bodyName(streamId, from + at));
}

describe("a page", () => {
  test("that is in the log cache comes at once and asks no object, entries without records between them or not", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    const { streamId } = entry;
    shelf.wal.segment({ streamId, count: 2 });
    shelf.wal.segment({ streamId, count: 0, producer: { producerId: "p", producerEpoch: 1n, seq: 0n } }, { streamId, count: 3 });
    shelf.wal.segment({ streamId, count: 0, closes: true });
    await checkAllPages(shelf, entry, named(streamId, 0, 5));
    const page = shelf.reader.read(entry, { ...ALL, from: 1, end: 5 });
    expect(page).not.toBeInstanceOf(Promise);
    expect(bodiesOf(page as PageBuilder)).toEqual(named(streamId, 1, 5));
    expect(shelf.store.reads).toEqual([]);
  });

  test("of nothing is empty and comes at once, wherever it begins", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    for (const at of [0, 7]) {
      const page = shelf.reader.read(entry, { ...ALL, from: at, end: at });
      expect(page).not.toBeInstanceOf(Promise);
      expect(page).toMatchObject({ slices: [], next: at });
    }
    expect(shelf.catchUps).toBe(0);
  });

  test("is the same wherever objects and log cache meet, at every bound on offsets, records and bytes", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    const other = await shelf.create("/b");
    const { streamId } = entry;
    await shelf.upload([namedStream(streamId, 0, 3), namedStream(other.streamId, 0, 9)]);
    await shelf.upload([namedStream(streamId, 3, 1)]);
    await shelf.upload([namedStream(other.streamId, 9, 2)]);
    await shelf.upload([namedStream(streamId, 4, 4)]);
    // The cache still has two of the records that an object has, too.
    shelf.wal.begin(streamId, emptyTailState(6));
    shelf.wal.segment({ streamId, count: 1 });
    shelf.wal.segment({ streamId, count: 3 });
    await checkAllPages(shelf, entry, named(streamId, 0, 10));
    expect(shelf.catchUps).toBe(0);
  });

  test("that begins at the trim point needs nothing of what was dropped below it", async () => {
    const shelf = new Shelf();
    const { streamId } = await shelf.create("/a");
    await shelf.run({ type: "trim_stream", streamId, startOffset: 4 });
    await shelf.upload([{ ...namedStream(streamId, 0, 6), fromOffset: 4 }]);
    expect(await shelf.read(shelf.entry(streamId), 4, 6)).toEqual(named(streamId, 4, 6));
    expect(await shelf.read(shelf.entry(streamId), 5, 6)).toEqual(named(streamId, 5, 6));
  });

  test("is whole though the cache lets go of its records while the store is asked for those before", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    const { streamId } = entry;
    await shelf.upload([namedStream(streamId, 0, 3)]);
    shelf.wal.begin(streamId, emptyTailState(3));
    const cached = shelf.wal.segment({ streamId, count: 4 });
    const { read } = shelf.store;
    shelf.store.read = async (key, range) => {
      shelf.store.read = read;
      await shelf.upload([namedStream(streamId, 3, 4)]);
      cached.isUploaded = true;
      shelf.cache.evict();
      return shelf.store.read(key, range);
    };
    expect(await shelf.read(entry, 0, 7)).toEqual(named(streamId, 0, 7));
    expect(shelf.cache.log(streamId)).toBeUndefined();
  });

  test("over many objects asks each of them few times, also with no cache of blocks", async () => {
    const objects = 40;
    const shelf = new Shelf(0);
    const entry = await shelf.create("/b");
    const neighbors = [await shelf.create("/c"), await shelf.create("/d")];
    const before = await shelf.create("/e");
    // Each object reaches from below the stream to above it, so that nothing but reading tells what it holds.
    for (let at = 0; at < objects; at++) {
      await shelf.upload([entry, ...neighbors, before].map(({ streamId }) => namedStream(streamId, at, 1)));
    }
    for (const { streamId } of [entry, before]) {
      shelf.store.reads.length = 0;
      expect(await shelf.read(shelf.entry(streamId), 0, objects)).toEqual(named(streamId, 0, objects));
      // To find out that it may hold the stream, where from, its records, and that there are no more: each a head, a leaf and a block at most.
      expect(shelf.store.reads.length).toBeLessThanOrEqual(objects * 12);
    }
  });

  test("in pages over many objects asks for each page the one that holds it, also with no cache of blocks", async () => {
    const objects = 64;
    const shelf = new Shelf(0);
    const first = await shelf.create("/b");
    const entry = await shelf.create("/c");
    const last = await shelf.create("/d");
    for (let at = 0; at < objects; at++) {
      await shelf.upload([first, entry, last].map(({ streamId }) => namedStream(streamId, at * 4, 4)));
    }
    const readsOfPages: number[] = [];
    for (let from = 0; from < objects * 4; from += 4) {
      shelf.store.reads.length = 0;
      expect(await shelf.read(entry, from, from + 4)).toEqual(named(entry.streamId, from, from + 4));
      readsOfPages.push(shelf.store.reads.length);
    }
    // The first page asks whether each object holds the stream, and finds its own by bisection: seven at most.
    expect(readsOfPages[0]).toBeLessThanOrEqual(objects + 8 * 3);
    for (const reads of readsOfPages.slice(1)) expect(reads).toBeLessThanOrEqual(8 * 3);
    const total = readsOfPages.reduce((sum, reads) => sum + reads, 0);
    expect(total).toBeLessThanOrEqual(objects * 12);
    // Read again, nearly everything is known: a page is a head, a leaf and a block.
    const readAll = async () => {
      shelf.store.reads.length = 0;
      for (let from = 0; from < objects * 4; from += 4) await shelf.read(entry, from, from + 4);
      return shelf.store.reads.length;
    };
    await readAll();
    expect(await readAll()).toBeLessThanOrEqual(objects * 4);
  });

  test("that many ask for at once costs one read of each part of the store", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    await shelf.upload([namedStream(entry.streamId, 0, 30)]);
    const pages = await Promise.all(Array.from({ length: 100 }, () => shelf.read(entry, 3, 30)));
    for (const page of pages) expect(page).toEqual(named(entry.streamId, 3, 30));
    expect(new Set(shelf.store.reads.map(({ start }) => start)).size).toBe(shelf.store.reads.length);
  });
});

describe("a fork", () => {
  /** "/a" holds 0 to 8, "/f" leaves it at 4, "/g" leaves "/f" at 6, and "/early" leaves "/f" at 2, which is still the records of "/a". */
  async function family() {
    const shelf = new Shelf();
    const a = await shelf.create("/a");
    const f = await shelf.create("/f", a, 4);
    const g = await shelf.create("/g", f, 6);
    const early = await shelf.create("/early", f, 2);
    await shelf.upload([namedStream(a.streamId, 0, 3), namedStream(f.streamId, 4, 1), namedStream(early.streamId, 2, 2)]);
    for (const [{ streamId }, at, count] of [
      [a, 3, 5],
      [f, 5, 4],
      [g, 6, 2],
    ] as const) {
      shelf.wal.begin(streamId, emptyTailState(at));
      shelf.wal.segment({ streamId, count });
    }
    return { shelf, a, f, g, early };
  }

  test("has its source's records below the fork offset and its own from there on, also as a fork of a fork", async () => {
    const { shelf, a, f, g, early } = await family();
    await checkAllPages(shelf, a, named(a.streamId, 0, 8));
    await checkAllPages(shelf, f, [...named(a.streamId, 0, 4), ...named(f.streamId, 4, 9)]);
    await checkAllPages(shelf, g, [...named(a.streamId, 0, 4), ...named(f.streamId, 4, 6), ...named(g.streamId, 6, 8)]);
    await checkAllPages(shelf, early, [...named(a.streamId, 0, 2), ...named(early.streamId, 2, 4)]);
  });

  test("at offset 0 has nothing of its source", async () => {
    const { shelf, a } = await family();
    const fork = await shelf.create("/zero", a, 0);
    shelf.wal.segment({ streamId: fork.streamId, count: 2 });
    await checkAllPages(shelf, fork, named(fork.streamId, 0, 2));
  });

  test("without records of its own ends at the fork offset, though the source goes on", async () => {
    const { shelf, a } = await family();
    const fork = await shelf.create("/none", a, 5);
    await checkAllPages(shelf, fork, named(a.streamId, 0, 5));
  });

  test("reads on when its source is trimmed or deleted", async () => {
    const { shelf, a, f } = await family();
    await shelf.run({ type: "trim_stream", streamId: a.streamId, startOffset: 8 });
    await shelf.run({ type: "delete_stream", streamId: a.streamId });
    await checkAllPages(shelf, f, [...named(a.streamId, 0, 4), ...named(f.streamId, 4, 9)]);
  });

  test("that is deleted, its source with it, while it is read, is not found", async () => {
    const { shelf, a } = await family();
    await shelf.run({ type: "delete_stream", streamId: shelf.metadata.view.streamByName("/g")?.streamId ?? 0 });
    await shelf.run({ type: "delete_stream", streamId: shelf.metadata.view.streamByName("/early")?.streamId ?? 0 });
    await shelf.run({ type: "delete_stream", streamId: a.streamId });
    const fork = shelf.metadata.view.streamByName("/f");
    if (fork === null) throw new Error("no fork");
    const { read } = shelf.store;
    shelf.store.read = async (key, range) => {
      shelf.store.read = read;
      await shelf.run({ type: "delete_stream", streamId: fork.streamId });
      return shelf.store.read(key, range);
    };
    expect((await shelf.errorOf(fork, 0, 9)).code).toBe("not_found");
    expect(shelf.metadata.view.streamById(a.streamId)).toBeNull();
  });
});

describe("an object that the store does not have", () => {
  test("is looked for in a newer view, which knows what replaced it", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    const replaced = await shelf.upload([namedStream(entry.streamId, 0, 4)]);
    const input = shelf.newestObjectId;
    shelf.store.objects.delete(replaced);
    shelf.news.push(async () => {
      await shelf.upload([namedStream(entry.streamId, 0, 4)], 1, [input]);
    });
    expect(await shelf.read(entry, 1, 4)).toEqual(named(entry.streamId, 1, 4));
    expect(shelf.catchUps).toBe(1);
  });

  test("may happen for each object of a long page: only searches that get no further are counted", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    const { streamId } = entry;
    for (let at = 0; at < 6; at++) {
      shelf.store.objects.delete(await shelf.upload([namedStream(streamId, at, 1)]));
      const input = shelf.newestObjectId;
      shelf.news.push(async () => {
        await shelf.upload([namedStream(streamId, at, 1)], 1, [input]);
      });
    }
    expect(await shelf.read(entry, 0, 6)).toEqual(named(streamId, 0, 6));
    expect(shelf.catchUps).toBe(6);
  });

  test("is damage where it is live still, named by its key, and the stream is not shorter for it", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    await shelf.upload([namedStream(entry.streamId, 0, 2)]);
    const key = await shelf.upload([namedStream(entry.streamId, 2, 2)]);
    shelf.store.objects.delete(key);
    const error = await shelf.errorOf(entry, 0, 4);
    expect(error).toMatchObject({ code: "corrupt", facts: { where: `stream ${entry.streamId}, offset 2` } });
    expect(error.message).toContain(key);
    expect(shelf.catchUps).toBe(2);
    expect(await shelf.read(entry, 0, 2)).toEqual(named(entry.streamId, 0, 2));
  });

  test("harms no read that does without it", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    const other = await shelf.create("/b");
    await shelf.upload([namedStream(entry.streamId, 0, 3)]);
    shelf.store.objects.delete(await shelf.upload([namedStream(entry.streamId, 3, 1), namedStream(other.streamId, 0, 3)]));
    expect(await shelf.read(entry, 0, 3)).toEqual(named(entry.streamId, 0, 3));
    expect(shelf.catchUps).toBe(0);
  });
});

describe("a record that no object holds", () => {
  test("is damage, at the offset where the hole begins, whatever lies behind it", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    await shelf.upload([namedStream(entry.streamId, 0, 3)]);
    await shelf.upload([namedStream(entry.streamId, 5, 3)]);
    shelf.wal.begin(entry.streamId, emptyTailState(10));
    shelf.wal.segment({ streamId: entry.streamId, count: 2 });
    expect(await shelf.errorOf(entry, 0, 12)).toMatchObject({ code: "corrupt", facts: { where: `stream ${entry.streamId}, offset 3` } });
    expect(await shelf.errorOf(entry, 5, 12)).toMatchObject({ code: "corrupt", facts: { where: `stream ${entry.streamId}, offset 8` } });
    expect(await shelf.read(entry, 5, 8)).toEqual(named(entry.streamId, 5, 8));
    expect(await shelf.read(entry, 10, 12)).toEqual(named(entry.streamId, 10, 12));
  });

  test("of a stream deleted meanwhile is not damage: the stream is not found", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    shelf.news.push(async () => {
      await shelf.run({ type: "delete_stream", streamId: entry.streamId });
    });
    expect((await shelf.errorOf(entry, 0, 1)).code).toBe("not_found");
    expect(shelf.catchUps).toBe(1);
  });

  test("of a stream deleted meanwhile that forks keep is gone: they need not need that one", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    const fork = await shelf.create("/f", entry, 1);
    shelf.news.push(async () => {
      await shelf.run({ type: "delete_stream", streamId: entry.streamId });
    });
    expect((await shelf.errorOf(entry, 1, 2)).code).toBe("gone");
    expect((await shelf.errorOf(fork, 0, 1)).code).toBe("corrupt");
  });

  test("and was trimmed meanwhile is gone, and the start is named; the one at the new start is damage still", async () => {
    for (const { startOffset, code } of [
      { startOffset: 2, code: "offset_gone" },
      { startOffset: 1, code: "corrupt" },
    ]) {
      const shelf = new Shelf();
      const entry = await shelf.create("/a");
      shelf.news.push(async () => {
        await shelf.run({ type: "trim_stream", streamId: entry.streamId, startOffset });
      });
      const error = await shelf.errorOf(entry, 1, 3);
      expect(error.code).toBe(code as PicoError["code"]);
      if (code === "offset_gone") expect(error.facts.start).toBe(2);
    }
  });
});

describe("a store or a database that does not answer", () => {
  test("passes its error on, is not asked again by itself, and leaves nothing in the way of the next read", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    await shelf.upload([namedStream(entry.streamId, 0, 3)]);
    shelf.store.failure = new PicoError("storage_failed", "the store is down");
    expect(await codeOf(() => shelf.read(entry, 0, 3))).toBe("storage_failed");
    expect(await codeOf(() => shelf.reader.readTailState(entry.streamId))).toBe("storage_failed");
    expect(shelf.catchUps).toBe(0);
    shelf.store.failure = null;
    expect(await shelf.read(entry, 0, 3)).toEqual(named(entry.streamId, 0, 3));
  });

  test("makes no damage of what only a newer view could tell", async () => {
    const shelf = new Shelf();
    const entry = await shelf.create("/a");
    shelf.store.objects.delete(await shelf.upload([namedStream(entry.streamId, 0, 3)]));
    const away = () => Promise.reject(new PicoError("unavailable", "the database is away"));
    shelf.news.push(away, away);
    expect(await codeOf(() => shelf.read(entry, 0, 3))).toBe("unavailable");
    expect(await codeOf(() => shelf.reader.readTailState(entry.streamId))).toBe("unavailable");
  });
});

describe("a sequential reader", () => {
  const BODY_BYTES = 1000;
  const RECORDS = 400;
  const PAGE = { bytesMax: 10 * BODY_BYTES };

  /** A stream over four objects, each of which holds nothing else. */
  async function longStream(blockCacheBytes?: number) {
    const shelf = new Shelf(blockCacheBytes);
    const entry = await shelf.create("/a");
    const { streamId } = entry;
    for (let from = 0; from < RECORDS; from += RECORDS / 4) await shelf.upload([namedStream(streamId, from, RECORDS / 4, BODY_BYTES)], 1);
    const page = async (from: number) => (await shelf.read(entry, from, RECORDS, PAGE)).length;
    return { shelf, entry, page };
  }

  /** Until nothing that nobody waits for is under way. */
  async function settle(shelf: Shelf): Promise<void> {
    for (let turn = 0; turn < 1000; turn++) await Promise.resolve();
    expect(shelf.blocks.fetchCount).toBe(0);
  }

  /** Reads all of it by pages; `between` them what is under way comes to its end. */
  async function readAll({ shelf, page }: Awaited<ReturnType<typeof longStream>>, between = settle): Promise<void> {
    for (let from = 0; from < RECORDS; ) {
      from += await page(from);
      await between(shelf);
    }
  }

  /** Bytes of records asked of the store, those that were asked twice, and requests, per object the first (its head) not counted. */
  function blockReads(shelf: Shelf): { readonly bytes: number; readonly again: number; readonly requests: number } {
    const ends = new Map<string, number>();
    let bytes = 0;
    let again = 0;
    let requests = 0;
    for (const { key, start, end } of shelf.store.reads.toSorted((left, right) => left.start - right.start)) {
      if (end === shelf.store.objects.get(key)?.length) continue;
      const reached = ends.get(key) ?? 0;
      requests += 1;
      bytes += end - start;
      again += Math.max(0, Math.min(end, reached) - start);
      ends.set(key, Math.max(end, reached));
    }
    return { bytes, again, requests };
  }

  test("finds the next page on its way before it asks for it, and waits for nothing that is fetched for later", async () => {
    const { shelf, page } = await longStream();
    await page(0);
    const first = shelf.store.reads.length;
    const { read } = shelf.store;
    const held = Promise.withResolvers<void>();
    const lateReads: number[] = [];
    let isPageAsked = true;
    shelf.store.read = async (key, range) => {
      if (isPageAsked) {
        isPageAsked = false;
        return read.call(shelf.store, key, range);
      }
      lateReads.push(range?.start ?? 0);
      const bytes = await read.call(shelf.store, key, range);
      await held.promise;
      return bytes;
    };
    expect(await page(10)).toBe(10);
    for (let turn = 0; turn < 100; turn++) await Promise.resolve();
    expect(lateReads).toHaveLength(1);
    expect(shelf.store.reads.length).toBe(first + 2);
    const third = page(20);
    for (let turn = 0; turn < 100; turn++) await Promise.resolve();
    // It waits for the same fetch.
    expect(lateReads).toHaveLength(1);
    held.resolve();
    expect(await third).toBe(10);
    expect(blockReads(shelf).again).toBe(0);
  });

  test("makes the store give each byte once, by few requests", async () => {
    const scene = await longStream();
    await readAll(scene);
    const { bytes, again, requests } = blockReads(scene.shelf);
    expect(again).toBe(0);
    expect(bytes / (RECORDS * BODY_BYTES)).toBeWithin(1, 1.5);
    // A page of ten records takes several blocks; what is ahead of a reader grows to many pages.
    expect(requests).toBeLessThan(RECORDS / 10 / 2);
  });

  test("finds the beginning of the next object when it comes to the end of one", async () => {
    const { shelf, page } = await longStream();
    for (let from = 0; from < RECORDS / 4; from += 10) {
      await page(from);
      await settle(shelf);
    }
    const before = shelf.store.reads.length;
    const { read } = shelf.store;
    shelf.store.read = () => Promise.reject(new Error("nothing more is needed"));
    expect(await page(RECORDS / 4)).toBe(10);
    expect(shelf.store.reads.length).toBe(before);
    shelf.store.read = read;
  });

  test("that asks for single pages costs what these take", async () => {
    const { shelf, entry, page } = await longStream();
    for (let reader = 0; reader < 20; reader++) {
      await page(0);
      await settle(shelf);
    }
    for (const from of [150, 350, 70, 230]) {
      await page(from);
      await settle(shelf);
    }
    expect(shelf.blocks.aheadBytes).toBe(0);
    // The first page of an object costs a block more: whether it is the right one.
    expect(blockReads(shelf).bytes).toBeLessThan(5 * (PAGE.bytesMax * 2 + 3 * 200));
    // The second page in a row brings no more than that again.
    const before = blockReads(shelf).bytes;
    await shelf.read(entry, 160, RECORDS, PAGE);
    await settle(shelf);
    expect(blockReads(shelf).bytes - before).toBeLessThan(2 * (PAGE.bytesMax * 2 + 2 * 200));
  });

  test("with too small a cache for it has nothing fetched ahead, and no byte twice because of it", async () => {
    for (const cacheBytes of [0, 3000, 10_000, 30_000, 100_000]) {
      const scene = await longStream(cacheBytes);
      let aheadMax = 0;
      await readAll(scene, async (shelf) => {
        await settle(shelf);
        aheadMax = Math.max(aheadMax, shelf.blocks.aheadBytes);
      });
      expect(aheadMax).toBeLessThanOrEqual(cacheBytes / 4);
      const { bytes } = blockReads(scene.shelf);
      const whole = await longStream(cacheBytes);
      // As many readers who are strangers to each other: none is sequential.
      for (let from = 0; from < RECORDS; from += 10) {
        await whole.page(from);
        await whole.page(0);
      }
      expect(bytes).toBeLessThanOrEqual(blockReads(whole.shelf).bytes);
    }
  });

  test("among many slow ones keeps what is ahead of all of them bounded", async () => {
    const cacheBytes = 400_000;
    const { shelf, page } = await longStream(cacheBytes);
    const { read } = shelf.store;
    let most = 0;
    shelf.store.read = async (key, range) => {
      most = Math.max(most, shelf.blocks.aheadBytes);
      return read.call(shelf.store, key, range);
    };
    const positions = Array.from({ length: 30 }, (_, at) => at * 13);
    for (let round = 0; round < 6; round++) {
      await Promise.all(
        positions.map(async (from, at) => {
          positions[at] = from + (await page(from));
        }),
      );
      expect(shelf.blocks.aheadBytes).toBeLessThanOrEqual(cacheBytes / 4);
    }
    expect(most).toBeWithin(1, cacheBytes / 4 + 1);
  });

  test("does not see that what was fetched ahead failed, was missing or damaged, and is told where it is so still", async () => {
    const failures: ((key: string, bytes: Uint8Array | null) => Uint8Array | null)[] = [
      () => {
        throw new PicoError("storage_failed", "the store is down");
      },
      () => null,
      (_, bytes) => bytes?.map((byte) => byte ^ 1) ?? null,
    ];
    for (const [at, fail] of failures.entries()) {
      const { shelf, page } = await longStream();
      await page(0);
      const { read } = shelf.store;
      let reads = 0;
      let isFailing = true;
      const held = Promise.withResolvers<void>();
      shelf.store.read = async (key, range) => {
        const bytes = await read.call(shelf.store, key, range);
        reads += 1;
        if (reads === 1 || !isFailing) return bytes;
        await held.promise;
        return fail(key, bytes);
      };
      expect(await page(10)).toBe(10);
      for (let turn = 0; turn < 100; turn++) await Promise.resolve();
      const waiting = page(20);
      for (let turn = 0; turn < 100; turn++) await Promise.resolve();
      isFailing = false;
      held.resolve();
      expect(await waiting).toBe(10);
      await settle(shelf);
      expect(await page(30)).toBe(10);
      await settle(shelf);
      expect(shelf.catchUps).toBe(0);
      isFailing = true;
      expect(await codeOf(() => readAllFrom(40))).toBe(at === 0 ? "storage_failed" : "corrupt");

      async function readAllFrom(start: number): Promise<void> {
        for (let from = start; from < RECORDS; ) from += await page(from);
      }
    }
  });

  test("of a fork has nothing fetched of its source from the fork offset on", async () => {
    const { shelf, entry } = await longStream();
    const fork = await shelf.create("/f", entry, 60);
    shelf.wal.begin(fork.streamId, emptyTailState(60));
    shelf.wal.segment({ streamId: fork.streamId, count: 5 });
    for (let from = 0; from < 60; from += 10) {
      await shelf.read(fork, from, 65, PAGE);
      await settle(shelf);
    }
    expect(blockReads(shelf).bytes / (60 * BODY_BYTES)).toBeWithin(1, 1.6);
  });
});

describe("the tail state in objects", () => {
  test("is none for a stream that was never uploaded, beside others that were", async () => {
    const shelf = new Shelf();
    const [a, b, c] = [await shelf.create("/a"), await shelf.create("/b"), await shelf.create("/c")];
    expect(await shelf.reader.readTailState(b.streamId)).toBeNull();
    await shelf.upload([namedStream(a.streamId, 0, 2), namedStream(c.streamId, 0, 2)]);
    expect(await shelf.reader.readTailState(b.streamId)).toBeNull();
    expect(shelf.catchUps).toBe(0);
  });

  test("is the one with the highest change number, in whatever order and level the objects were committed", async () => {
    const states = [3, 9, 5].map((changeNumber) => ({ ...emptyTailState(4), changeNumber, isClosed: changeNumber === 9 }));
    for (const levels of [
      [0, 0, 0],
      [1, 0, 0],
      [0, 2, 1],
      [0, 0, 1],
    ]) {
      const shelf = new Shelf();
      const { streamId } = await shelf.create("/a");
      for (const [at, tail] of states.entries()) await shelf.upload([{ streamId, tail, batches: [] }], levels[at]);
      expect(await shelf.reader.readTailState(streamId)).toMatchObject({ changeNumber: 9, isClosed: true });
    }
  });

  test("of a missing object is looked for in a newer view, and is never an older one instead", async () => {
    const shelf = new Shelf();
    const { streamId } = await shelf.create("/a");
    await shelf.upload([namedStream(streamId, 0, 2)]);
    const key = await shelf.upload([namedStream(streamId, 2, 3)]);
    const input = shelf.newestObjectId;
    shelf.store.objects.delete(key);
    await expect(shelf.reader.readTailState(streamId)).rejects.toThrow(key);
    expect(await codeOf(() => shelf.reader.readTailState(streamId))).toBe("corrupt");
    expect(shelf.catchUps).toBe(4);
    shelf.news.push(
      () => {},
      async () => {
        await shelf.upload([namedStream(streamId, 2, 3)], 1, [input]);
      },
    );
    expect(await shelf.reader.readTailState(streamId)).toMatchObject({ nextOffset: 5, changeNumber: 5 });
    expect(shelf.catchUps).toBe(6);
  });
});
