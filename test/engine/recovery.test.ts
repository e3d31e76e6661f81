import { describe, expect, test } from "bun:test";
import type { TailState } from "../../src/engine/tail-state.ts";
import { emptyTailState } from "../../src/engine/tail-state-format.ts";
import { encodeWalEntry } from "../../src/engine/wal-entry.ts";
import { encodeSegmentHeader, reserveSegmentHeader } from "../../src/engine/wal-segment-format.ts";
import type { WalStore } from "../../src/engine/wal-store.ts";
import { ByteWriter } from "../../src/lib/bytes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { isPicoError, PicoError } from "../../src/lib/errors.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { codeOf } from "../support/code-of.ts";
import { holdUpload } from "../support/held-upload.ts";
import { record, TestNode } from "../support/test-node.ts";

interface ForgedEntry {
  readonly streamId: number;
  readonly baseOffset: number;
  readonly changeNumber: number;
  readonly base: TailState | null;
}

/** A node that died with `segments` as its whole WAL, and the stream "/a". */
async function deadNode(forge: (streamId: number) => readonly (ForgedEntry | null)[]): Promise<TestNode> {
  const node = await new TestNode().start(1);
  const { info } = await node.create("/a");
  node.kill();
  for (const [at, entry] of forge(info.streamId).entries()) {
    if (entry !== null) await node.wal.create(SELF, at + 1, segmentOf(at + 1, entry));
  }
  return node;
}

const SELF: RegistrationName = { nodeId: 1, nodeEpoch: 1 };

function segmentOf(number: number, { streamId, baseOffset, changeNumber, base }: ForgedEntry): Uint8Array {
  const out = new ByteWriter(1024);
  reserveSegmentHeader(out);
  const head = { streamId, changeNumber, nextOffset: baseOffset + 1, timestampMs: 5, base, producer: null, streamSeq: null, closes: false };
  encodeWalEntry(out, head, [record(`offset ${baseOffset}`)]);
  const bytes = out.copy();
  encodeSegmentHeader(bytes, { registration: SELF, number, trimPoint: 0, durableNumber: number - 1 });
  return bytes;
}

async function refusal(node: TestNode): Promise<PicoError> {
  const error: unknown = await node
    .successor()
    .start(2)
    .catch((thrown: unknown) => thrown);
  if (!isPicoError(error)) throw new Error(`recovery was not refused: ${String(error)}`);
  return error;
}

const first = (streamId: number): ForgedEntry => ({ streamId, baseOffset: 0, changeNumber: 1, base: emptyTailState() });

describe("a log that was trimmed further than what was committed", () => {
  test("a WAL that begins above the committed position stops recovery, which names the segment", async () => {
    const node = await deadNode((streamId) => [null, { ...first(streamId), baseOffset: 1, changeNumber: 2, base: null }]);
    const error = await refusal(node);
    expect(error.code).toBe("corrupt");
    expect(error.message).toContain("segment 1 ");
    expect(node.metadata.view.registration(SELF)?.state).toBe("fenced");
  });

  test("a stream whose entries have a hole stops recovery, which names stream and segment and uploads nothing", async () => {
    const node = await deadNode((streamId) => [first(streamId), { streamId, baseOffset: 5, changeNumber: 6, base: null }]);
    const error = await refusal(node);
    const entry = node.metadata.view.streamByName("/a");
    expect(error.code).toBe("corrupt");
    expect(error.message).toContain(`stream ${entry?.streamId} `);
    expect(error.facts.where).toContain("segment 2");
    expect([...node.metadata.view.objects()]).toEqual([]);
    expect(node.metadata.view.registration(SELF)?.state).toBe("fenced");
  });

  test("a stream whose offsets go on where its changes do not is a hole too", async () => {
    const node = await deadNode((streamId) => [first(streamId), { streamId, baseOffset: 1, changeNumber: 3, base: null }]);
    expect((await refusal(node)).code).toBe("corrupt");
  });

  test("a stream that goes on in the log without its beginning stops recovery", async () => {
    const node = await deadNode((streamId) => [{ streamId, baseOffset: 3, changeNumber: 4, base: null }]);
    const error = await refusal(node);
    expect(error.code).toBe("corrupt");
    expect(error.message).toContain("without its tail state");
  });

  test("where its state says that records lie below which no object holds, they are damage, and those above are served", async () => {
    const base = { ...emptyTailState(5), changeNumber: 5 };
    const node = await deadNode((streamId) => [{ streamId, baseOffset: 5, changeNumber: 6, base }]);
    const next = await node.successor().start(2);
    expect(await codeOf(() => next.bodies("/a", 0))).toBe("corrupt");
    expect(await next.bodies("/a", 5)).toEqual(["offset 5"]);
  });
});

describe("a recovery that is tried again", () => {
  /** Reads of this number fail from the second on: the takeover sees it, the replay does not. */
  function breakingOffAt(number: number) {
    const breakage = { isOn: true };
    const wrap = (wal: WalStore): WalStore => {
      let reads = 0;
      const read = async (registration: RegistrationName, asked: number) => {
        if (asked === number && ++reads > 1 && breakage.isOn) throw new PicoError("unavailable", "the store is away");
        return wal.read(registration, asked);
      };
      return new Proxy(wal, {
        get: (target, key) => {
          if (key === "read") return read;
          const value: unknown = Reflect.get(target, key);
          return typeof value === "function" ? value.bind(target) : value;
        },
      });
    };
    return { breakage, wrap };
  }

  test("goes on where its replay broke off: every record is there once", async () => {
    const node = await new TestNode().start(1);
    await node.create("/a");
    // More than a takeover keeps from its check to its replay.
    const big = "x".repeat(24 * 1024 * 1024);
    for (const body of ["0", "1", "2", "3"]) await node.append("/a", body + big);
    node.kill();
    const { breakage, wrap } = breakingOffAt(4);
    const next = node.successor({ wal: wrap });
    const self = { nodeId: 1, nodeEpoch: 2 };
    next.metadata.register(self);
    const recovery = next.recovery(SELF);
    expect(await codeOf(() => recovery.run(self))).toBe("unavailable");
    breakage.isOn = false;
    await recovery.run(self);
    const log = [...next.metadata.view.objects()].filter(({ state }) => state === "live");
    expect(log.reduce((sum, { summary }) => sum + (summary?.recordCount ?? 0), 0)).toBe(4);
  });

  test("leaves the WAL whole until all of it is committed", async () => {
    const node = await new TestNode({ settings: { segmentBytes: 1 } }).start(1);
    await node.create("/a");
    for (const body of ["0", "1", "2"]) await node.append("/a", body);
    node.kill();
    const upload = holdUpload(node.store);
    const next = node.successor();
    const starting = next.start(2);
    await upload.begun;
    await next.engine.trimmer.trimNow();
    expect(await next.wal.list(SELF, 0)).toEqual([1, 2, 3, 4]);
    upload.letGo();
    await starting;
    await next.engine.trimmer.trimNow();
    // The tombstone.
    expect(await next.wal.list(SELF, 0)).toEqual([4]);
  });

  test("after an upload that failed half-way, commits each record once", async () => {
    class Failing extends MemoryObjectStore {
      creates = 0;
      override async create(key: string, bytes: Uint8Array) {
        if (key.includes("/data/") && ++this.creates <= 2) throw new PicoError("storage_full", "no space");
        return super.create(key, bytes);
      }
    }
    const node = await new TestNode({ store: new Failing(systemClock) }).start(1);
    await node.create("/a");
    for (const body of ["0", "1", "2"]) await node.append("/a", body);
    const next = await node.restart();
    expect(await next.bodies("/a")).toEqual(["0", "1", "2"]);
    const live = [...next.metadata.view.objects()].filter(({ state }) => state === "live");
    expect(live.reduce((sum, { summary }) => sum + (summary?.recordCount ?? 0), 0)).toBe(3);
  });
});
