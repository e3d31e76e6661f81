import { describe, expect, test } from "bun:test";
import type { NewRecord } from "../../src/engine/record.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { PAGE_BYTES_MAX, PROPOSAL_WAIT_MS, STALL_ANSWER_MS, STREAM_IDS_PER_RESERVATION } from "../../src/lib/limits.ts";
import type { Command } from "../../src/metadata/command.ts";
import type { CreateRequest, CreateResult } from "../../src/streams/stream-service.ts";
import { codeOf } from "../support/code-of.ts";
import type { GatedWal } from "../support/gated-wal.ts";
import { gate } from "../support/gated-wal.ts";
import { ManualClock, quiet, settled } from "../support/manual-clock.ts";
import { record, TestNode, type TestNodeOptions } from "../support/test-node.ts";

interface Office {
  readonly node: TestNode;
  readonly clock: ManualClock;
  readonly wal: GatedWal;
  /** Every command since the start, in order. */
  readonly proposed: Command[];
}

async function open(options: TestNodeOptions = {}): Promise<Office> {
  const clock = new ManualClock();
  const gated = gate();
  const node = await settled(new TestNode({ clock, wal: gated.wal, ...options }).start(1));
  const proposed: Command[] = [];
  const { propose } = node.metadata;
  node.metadata.propose = (command) => {
    proposed.push(command);
    return propose.call(node.metadata, command);
  };
  return { node, clock, wal: gated.gated(), proposed };
}

const creates = ({ proposed }: Office) => proposed.filter(({ type }) => type === "create_stream").length;

function fork(sourceName: string, offset: number | null, subOffset = 0): Partial<CreateRequest> {
  return { contentType: null, fork: { sourceName, offset, subOffset } };
}

/** Records in live objects. */
function storedCount({ node }: Office): number {
  const live = [...node.metadata.view.objects()].filter(({ state }) => state === "live");
  return live.reduce((sum, { summary }) => sum + (summary?.recordCount ?? 0), 0);
}

async function turns(count = 10): Promise<void> {
  for (let turn = 0; turn < count; turn++) await quiet();
}

describe("a create", () => {
  test("without records is one command and no WAL write; what it answers is what is there", async () => {
    const office = await open();
    const { isNew, info } = await settled(office.node.create("/a", { ttlSeconds: 60n }));
    expect(isNew).toBe(true);
    expect(info).toEqual(await settled(office.node.streams.head("/a")));
    expect(office.proposed.map(({ type }) => type)).toEqual(["create_stream"]);
    expect(office.wal.creates).toBe(0);
  });

  test("with records, or closed, writes first and proposes once that is durable; the stream appears with all of it", async () => {
    for (const changes of [{ records: [record("x"), record("y")] }, { isClosed: true }, { records: [record("z")], isClosed: true }]) {
      const office = await open();
      office.wal.hold();
      const result = office.node.create("/a", changes);
      await turns();
      expect(office.wal.creates).toBe(1);
      expect(office.proposed).toEqual([]);
      expect(office.node.metadata.view.streamByName("/a")).toBeNull();
      office.wal.release();
      const { info } = await settled(result);
      const bodies = (changes.records ?? []).map(({ body }: NewRecord) => new TextDecoder().decode(body ?? undefined));
      expect(info).toMatchObject({ nextOffset: bodies.length, isClosed: changes.isClosed ?? false });
      expect(await settled(office.node.streams.head("/a"))).toEqual(info);
      expect(await settled(office.node.bodies("/a"))).toEqual(bodies);
    }
  });

  test("needs a content type unless it is a fork, and an id in reserve", async () => {
    const office = await open();
    expect(await codeOf(() => office.node.create("/a", { contentType: null }))).toBe("bad_request");
    office.node.metadata.hold();
    for (let taken = 1; taken < STREAM_IDS_PER_RESERVATION; taken++) office.node.ids.take();
    office.node.ids.take();
    expect(await codeOf(() => office.node.create("/a"))).toBe("unavailable");
    expect(creates(office)).toBe(0);
  });

  test("that the WAL refuses or loses is proposed to nobody and leaves the name free", async () => {
    const full = await open({ settings: { backlogBytesMax: 0 } });
    expect(await codeOf(() => settled(full.node.create("/a", { records: [record("x")] })))).toBe("unavailable");
    const broken = await open();
    broken.wal.failure = new PicoError("durability", "the disk is gone");
    expect(await codeOf(() => settled(broken.node.create("/a", { records: [record("x")] })))).toBe("durability");
    for (const office of [full, broken]) {
      expect(office.proposed).toEqual([]);
      expect(office.node.metadata.view.streamByName("/a")).toBeNull();
    }
    expect((await settled(full.node.create("/a"))).isNew).toBe(true);
  });

  test("whose WAL write does not end is answered in bounded time, and never appears", async () => {
    const office = await open();
    office.wal.failure = new PicoError("storage_failed", "try again");
    const code = codeOf(() => office.node.create("/a", { records: [record("x")] }));
    await office.clock.advance(STALL_ANSWER_MS + 3000);
    expect(await settled(code)).toBe("durability");
    office.wal.failure = null;
    await office.clock.advance(5000);
    expect(office.proposed).toEqual([]);
    await settled(office.node.engine.uploadNow());
    expect(storedCount(office)).toBe(0);
    expect((await settled(office.node.create("/a"))).info.nextOffset).toBe(0);
  });
});

describe("a database that does not answer", () => {
  test("has creates with records refused before their WAL write; others wait their turn", async () => {
    const office = await open();
    office.node.metadata.isAnswerOverdue = true;
    expect(await codeOf(() => settled(office.node.create("/a", { records: [record("x")] })))).toBe("unavailable");
    expect(await codeOf(() => settled(office.node.create("/a", { isClosed: true })))).toBe("unavailable");
    expect(office.wal.creates).toBe(0);
    expect(office.proposed).toEqual([]);
    expect((await settled(office.node.create("/a"))).isNew).toBe(true);
  });

  test("has what was not sent taken back: nothing appears, and the upload drops the records", async () => {
    const office = await open();
    await settled(office.node.create("/b"));
    office.node.metadata.hold();
    const codes = [{ records: [record("x")] }, {}].map((changes, at) => codeOf(() => office.node.create(`/${at}`, changes)));
    await turns();
    await office.clock.advance(PROPOSAL_WAIT_MS - 1);
    expect(office.node.metadata.heldCount).toBe(2);
    await office.clock.advance(1);
    expect(await settled(Promise.all(codes))).toEqual(["unavailable", "unavailable"]);
    office.node.metadata.release();
    await settled(office.node.append("/b", "y"));
    await settled(office.node.engine.uploadNow());
    for (const name of ["/0", "/1"]) expect(office.node.metadata.view.streamByName(name)).toBeNull();
    expect(storedCount(office)).toBe(1);
  });

  test("but has the create leaves it open: the upload waits, and the stream appears with its records when the answer comes", async () => {
    const office = await open();
    const { metadata } = office.node;
    const { propose } = metadata;
    const answer = Promise.withResolvers<void>();
    metadata.propose = (command) => {
      if (command.type !== "create_stream") return propose.call(metadata, command);
      const outcome = answer.promise.then(() => propose.call(metadata, command).outcome);
      return { outcome, isSent: true, withdraw: () => false };
    };
    const code = codeOf(() => office.node.create("/a", { records: [record("x"), record("y")] }));
    await turns();
    await office.clock.advance(PROPOSAL_WAIT_MS);
    expect(await settled(code)).toBe("unavailable");
    const uploaded = office.node.engine.uploadNow();
    await office.clock.advance(60_000);
    expect(office.node.engine.committedNumber).toBe(0);
    answer.resolve();
    await settled(uploaded);
    expect(storedCount(office)).toBe(2);
    expect(await settled(office.node.bodies("/a"))).toEqual(["x", "y"]);
    expect(await settled(office.node.append("/a", "z"))).toMatchObject({ startOffset: 2 });
  });

  test("before the node dies: no stream, no record, and the name is free", async () => {
    const office = await open();
    const { metadata } = office.node;
    const { propose } = metadata;
    metadata.propose = (command) => {
      if (command.type !== "create_stream") return propose.call(metadata, command);
      return { outcome: new Promise(() => {}), isSent: true, withdraw: () => false };
    };
    void office.node.create("/a", { records: [record("x")] }).catch(() => {});
    await turns();
    expect(office.wal.creates).toBe(1);
    const next = await settled(office.node.restart());
    metadata.propose = propose;
    expect(next.metadata.view.streamByName("/a")).toBeNull();
    expect(storedCount(office)).toBe(0);
    expect((await settled(next.create("/a"))).info.nextOffset).toBe(0);
  });
});

describe("a name that is taken", () => {
  const existing: Partial<CreateRequest> = { ttlSeconds: 60n, records: [record("x")] };

  test("is answered as it is where all settings agree, and is a conflict with tail and type where one does not", async () => {
    const office = await open();
    await settled(office.node.create("/a", existing));
    const count = creates(office);
    const again = await settled(office.node.create("/a", { ...existing, contentType: "TEXT/plain; charset=utf-8", records: [] }));
    expect(again).toEqual({ isNew: false, info: await settled(office.node.streams.head("/a")) });
    expect(again.info.nextOffset).toBe(1);
    const others = [{ contentType: "text/html" }, { ttlSeconds: 61n }, { isClosed: true }, fork("/a", 0)];
    for (const change of others) {
      const error: unknown = await settled(office.node.create("/a", { ...existing, ...change }).catch((thrown: unknown) => thrown));
      expect(error).toMatchObject({ code: "conflict", facts: { tail: 1, contentType: "text/plain" } });
    }
    expect(creates(office)).toBe(count);
    await settled(office.node.append("/a", "", { records: [], close: true }));
    expect(await codeOf(() => settled(office.node.create("/a", existing)))).toBe("conflict");
    expect((await settled(office.node.create("/a", { ...existing, isClosed: true }))).isNew).toBe(false);
  });

  test("by another create at the same time goes to one; what the others wrote is dropped", async () => {
    const office = await open();
    const results = await settled(
      Promise.all([0, 1, 2, 3].map((at) => office.node.create("/a", { records: [record(`${at}a`), record(`${at}b`)] }))),
    );
    expect(results.filter(({ isNew }) => isNew).length).toBe(1);
    expect(new Set(results.map(({ info }) => info.streamId)).size).toBe(1);
    const bodies = await settled(office.node.bodies("/a"));
    expect(bodies.length).toBe(2);
    await settled(office.node.engine.uploadNow());
    expect(storedCount(office)).toBe(2);
    expect(await settled(office.node.bodies("/a"))).toEqual(bodies);
    const other = await settled(
      Promise.all([codeOf(() => office.node.create("/b")), codeOf(() => office.node.create("/b", { ttlSeconds: 5n }))]),
    );
    expect(new Set(other)).toEqual(new Set(["conflict", null]));
  });

  test("by a stream past its deadline is free: the new stream has none of its records", async () => {
    const office = await open();
    const first = await settled(office.node.create("/a", { expiresAtMs: office.clock.nowMs() + 50, records: [record("old")] }));
    await office.clock.advance(50);
    const second = await settled(office.node.create("/a"));
    expect(second.isNew).toBe(true);
    expect(second.info.streamId).not.toBe(first.info.streamId);
    expect(await settled(office.node.bodies("/a"))).toEqual([]);
  });

  test("by a stream that went between the refusal and the look at it is unavailable, for one more try", async () => {
    const office = await open();
    const { metadata } = office.node;
    const { info } = await settled(office.node.create("/a"));
    await settled(office.node.streams.delete("/a"));
    const { propose } = metadata;
    metadata.propose = (command) => {
      if (command.type !== "create_stream") return propose.call(metadata, command);
      const facts = { streamId: info.streamId, isDeleted: 0 };
      return { outcome: Promise.resolve({ applied: false, code: "name_taken", facts }), isSent: true, withdraw: () => false };
    };
    expect(await codeOf(() => settled(office.node.create("/a")))).toBe("unavailable");
  });

  test("by a deleted stream that forks need is gone, and a conflict for a fork of it, also where the delete is only on its way", async () => {
    for (const isUnderWay of [false, true]) {
      const office = await open();
      await settled(office.node.create("/a"));
      await settled(office.node.create("/f", fork("/a", 0)));
      if (isUnderWay) office.node.metadata.hold();
      const deleted = office.node.streams.delete("/a");
      if (!isUnderWay) await settled(deleted);
      const codes = [codeOf(() => office.node.create("/a")), codeOf(() => office.node.create("/g", fork("/a", 0)))];
      await turns();
      office.node.metadata.release();
      await settled(deleted);
      expect([isUnderWay, ...(await settled(Promise.all(codes)))]).toEqual([isUnderWay, "gone", "conflict"]);
      expect(office.node.metadata.view.streamByName("/g")).toBeNull();
    }
  });
});

describe("a fork", () => {
  /** "/a" holds "aaaa", "bb", "" and "cccc", and the first is trimmed. */
  async function source(contentType = "text/plain", options: TestNodeOptions = {}): Promise<Office> {
    const office = await open(options);
    await settled(office.node.create("/a", { contentType }));
    for (const body of ["aaaa", "bb", "", "cccc"]) await settled(office.node.append("/a", body));
    await settled(office.node.streams.trim("/a", 1n));
    return office;
  }

  const forkOf = async (office: Office, name: string, changes: Partial<CreateRequest>): Promise<CreateResult> =>
    settled(office.node.create(name, changes));

  test("takes every offset from the source's start to its tail, and none beyond", async () => {
    const office = await source();
    const bodies = ["bb", "", "cccc"];
    for (const offset of [1, 2, 3, 4]) {
      const { info } = await forkOf(office, `/f${offset}`, fork("/a", offset));
      expect(info).toMatchObject({ startOffset: 1, nextOffset: offset, isClosed: false });
      expect(info).toEqual(await settled(office.node.streams.head(`/f${offset}`)));
      expect(await settled(office.node.bodies(`/f${offset}`))).toEqual(bodies.slice(0, offset - 1));
      expect(await settled(office.node.append(`/f${offset}`, "own"))).toMatchObject({ startOffset: offset });
    }
    for (const offset of [0, 5]) {
      const error: unknown = await forkOf(office, "/bad", fork("/a", offset)).catch((thrown: unknown) => thrown);
      expect(error).toMatchObject({ code: "bad_request", facts: { start: 1, tail: 4 } });
    }
    expect((await forkOf(office, "/tail", fork("/a", null))).info).toMatchObject({
      nextOffset: 4,
      fork: { offset: 4, requestedOffset: null },
    });
    expect(office.wal.creates).toBe(4 + 4);
  });

  test("with bytes of a record begins with them as its own; a whole record is the source's, more is refused", async () => {
    const office = await source();
    // Sub-offset, then what the fork holds; null: refused.
    const cases: [offset: number, subOffset: number, bodies: string[] | null, own: number][] = [
      [1, 0, [], 0],
      [1, 1, ["b"], 1],
      [1, 2, ["bb"], 0],
      [1, 3, null, 0],
      [2, 1, null, 0],
      [3, 3, ["bb", "", "ccc"], 1],
      [3, 4, ["bb", "", "cccc"], 0],
      [4, 0, ["bb", "", "cccc"], 0],
      [4, 1, null, 0],
    ];
    for (const isUploaded of [false, true]) {
      if (isUploaded) await settled(office.node.engine.uploadNow());
      for (const [offset, subOffset, bodies, own] of cases) {
        const name = `/${isUploaded}/${offset}-${subOffset}`;
        const before = office.wal.creates;
        if (bodies === null) {
          expect([name, await codeOf(() => forkOf(office, name, fork("/a", offset, subOffset)))]).toEqual([name, "bad_request"]);
        } else {
          const { info } = await forkOf(office, name, fork("/a", offset, subOffset));
          expect(info.nextOffset).toBe(1 + bodies.length);
          expect(info.fork).toMatchObject({ offset: 1 + bodies.length - own, requestedOffset: offset, requestedSubOffset: subOffset });
          expect(await settled(office.node.bodies(name))).toEqual(bodies);
          expect((await forkOf(office, name, fork("/a", offset, subOffset))).isNew).toBe(false);
          expect(await codeOf(() => forkOf(office, name, fork("/a", offset, subOffset + 1)))).toBe("conflict");
        }
        expect(office.wal.creates - before).toBe(own);
      }
    }
  });

  test("of a JSON stream counts its sub-offset in records, up to the tail", async () => {
    for (const contentType of ["application/json", "application/problem+json; v=1"]) {
      const office = await source(contentType);
      for (const [offset, subOffset] of [
        [1, 0],
        [1, 1],
        [2, 2],
        [4, 0],
      ] as const) {
        const name = `/${offset}-${subOffset}`;
        const { info } = await forkOf(office, name, fork("/a", offset, subOffset));
        expect(info.fork).toMatchObject({ offset: offset + subOffset, requestedOffset: offset, requestedSubOffset: subOffset });
        expect(info.nextOffset).toBe(offset + subOffset);
      }
      for (const [offset, subOffset] of [
        [1, 4],
        [4, 1],
      ] as const)
        expect(await codeOf(() => forkOf(office, "/bad", fork("/a", offset, subOffset)))).toBe("bad_request");
    }
  });

  test("puts records of the request behind a partial first one, and can be born closed", async () => {
    const office = await source();
    const { info } = await forkOf(office, "/f", { ...fork("/a", 3, 2), records: [record("x"), record("y")], isClosed: true });
    expect(info).toMatchObject({ nextOffset: 6, isClosed: true });
    expect(await settled(office.node.bodies("/f"))).toEqual(["bb", "", "cc", "x", "y"]);
    expect(await settled(office.node.bodies("/a"))).toEqual(["bb", "", "cccc"]);
  });

  test("inside a record larger than any page has the bytes asked for, and a record without a body has none", async () => {
    const office = await open();
    await settled(office.node.create("/a"));
    await settled(office.node.append("/a", "x".repeat(PAGE_BYTES_MAX + 10)));
    await settled(office.node.append("/a", "", { records: [{ key: null, headers: [{ name: "h", value: null }], body: null }] }));
    await forkOf(office, "/f", fork("/a", 0, PAGE_BYTES_MAX + 9));
    expect((await settled(office.node.bodies("/f"))).map(({ length }) => length)).toEqual([PAGE_BYTES_MAX + 9]);
    expect(await codeOf(() => forkOf(office, "/g", fork("/a", 1, 1)))).toBe("bad_request");
  });

  test("has what is durable of its source, and not what is on its way", async () => {
    const office = await source();
    office.wal.hold();
    const late = office.node.append("/a", "late");
    await turns();
    expect((await forkOf(office, "/f", fork("/a", null))).info.nextOffset).toBe(4);
    expect(await codeOf(() => forkOf(office, "/g", fork("/a", 5)))).toBe("bad_request");
    office.wal.release();
    await settled(late);
    expect((await forkOf(office, "/h", fork("/a", null))).info.nextOffset).toBe(5);
    expect(await settled(office.node.bodies("/f"))).toEqual(["bb", "", "cccc"]);
  });

  test("inherits neither close nor producers nor Stream-Seq", async () => {
    const office = await source();
    const producer = { producerId: "p", producerEpoch: 1n, seq: 0n };
    await settled(office.node.append("/a", "last", { producer, streamSeq: "9", close: true }));
    expect((await forkOf(office, "/f", fork("/a", null))).info.isClosed).toBe(false);
    expect(await settled(office.node.append("/f", "own", { producer, streamSeq: "1" }))).toMatchObject({
      kind: "appended",
      startOffset: 5,
    });
  });

  test("has its source's content type, and the lifetime that it names, else its source's", async () => {
    const office = await open();
    const at = office.clock.nowMs() + 100_000;
    await settled(office.node.create("/none", { contentType: "text/plain; charset=utf-8" }));
    await settled(office.node.create("/ttl", { ttlSeconds: 60n }));
    await settled(office.node.create("/at", { expiresAtMs: at }));
    const cases: [source: string, named: Partial<CreateRequest>, ttlSeconds: bigint | null, expiresAtMs: number | null][] = [
      ["/none", {}, null, null],
      ["/none", { ttlSeconds: 5n }, 5n, null],
      ["/none", { expiresAtMs: at + 1 }, null, at + 1],
      ["/ttl", {}, 60n, null],
      ["/ttl", { ttlSeconds: 5n }, 5n, null],
      ["/ttl", { expiresAtMs: at + 1 }, null, at + 1],
      ["/at", {}, null, at],
      ["/at", { ttlSeconds: 5n }, 5n, null],
      ["/at", { expiresAtMs: at + 1 }, null, at + 1],
    ];
    for (const [number, [source, named, ttlSeconds, expiresAtMs]] of cases.entries()) {
      const { info } = await forkOf(office, `/f${number}`, { ...fork(source, null), ...named });
      expect(info.settings).toMatchObject({ ttlSeconds, expiresAtMs });
    }
    expect((await forkOf(office, "/same", fork("/none", 0))).info.settings.contentType).toBe("text/plain; charset=utf-8");
    expect((await forkOf(office, "/own", { ...fork("/none", 0), contentType: "Text/Plain" })).info.settings.contentType).toBe("Text/Plain");
    expect(await codeOf(() => forkOf(office, "/other", { ...fork("/none", 0), contentType: "text/html" }))).toBe("conflict");
  });

  test("of nothing, or of itself, is not found", async () => {
    const office = await open();
    expect(await codeOf(() => forkOf(office, "/f", fork("/missing", null)))).toBe("not_found");
    expect(await codeOf(() => forkOf(office, "/f", fork("/f", null)))).toBe("not_found");
    expect(creates(office)).toBe(0);
  });

  test("whose source is deleted or trimmed while it is made is answered as if it had been asked for after that", async () => {
    const ends: [end: "deleted" | "kept" | "trimmed", code: string][] = [
      ["deleted", "not_found"],
      ["kept", "conflict"],
      ["trimmed", "bad_request"],
    ];
    for (const [end, code] of ends) {
      const office = await source();
      if (end === "kept") await forkOf(office, "/first", fork("/a", 1));
      office.wal.hold();
      const made = codeOf(() => office.node.create("/f", fork("/a", 3, 2)));
      await turns();
      if (end === "trimmed") await settled(office.node.streams.trim("/a", 4n));
      else await settled(office.node.streams.delete("/a"));
      office.wal.release();
      expect([end, await settled(made)]).toEqual([end, code]);
      expect(office.node.metadata.view.streamByName("/f")).toBeNull();
      await settled(office.node.engine.uploadNow());
      expect(storedCount(office)).toBe(end === "kept" ? 4 : 0);
    }
  });
});
