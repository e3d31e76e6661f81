import { describe, expect, test } from "bun:test";
import { CompactionTooSlow, UnusableInputs } from "../../src/engine/compactor.ts";
import type { TailState } from "../../src/engine/tail-state.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { PREPARED_OBJECT_TTL_MS } from "../../src/lib/limits.ts";
import type { ObjectEntry } from "../../src/metadata/entries.ts";
import { codeOf } from "../support/code-of.ts";
import { settled } from "../support/manual-clock.ts";
import { CompactionBench, named, SMALL } from "./compaction-fixture.ts";
import { bodyName, namedStream, type StreamInput } from "./data-object-fixtures.ts";
import { Chance } from "./record-fixtures.ts";

/** The same stream, without records. */
function stateOnly(streamId: number, nextOffset: number): StreamInput {
  return { ...namedStream(streamId, 0, nextOffset), batches: [] };
}

function tailOf({ tail }: StreamInput): TailState {
  return tail;
}

describe("a merge", () => {
  test("gives back every stream's records and newest tail state, in one run of disjoint objects, whatever the sizes", async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const chance = new Chance(seed);
      const bench = new CompactionBench({
        ...SMALL,
        objectBytesTarget: 600 + chance.below(5000),
        blockBytesTarget: 100 + chance.below(400),
        windowBytesMax: 50 + chance.below(2000),
      });
      const ids = await bench.createMany(1 + chance.below(12));
      const ends = new Map(ids.map((id) => [id, 0]));
      const tails = new Map<number, TailState>();
      for (let upload = 0; upload < 2 + chance.below(6); upload++) {
        const streams = ids
          .filter(() => chance.happens(0.6))
          .map((id) => {
            const count = chance.happens(0.2) ? 0 : chance.below(12);
            const stream = namedStream(id, ends.get(id) ?? 0, count, chance.happens(0.1) ? chance.below(900) : 0);
            const tail = { ...stream.tail, changeNumber: upload + 1 };
            ends.set(id, tail.nextOffset);
            tails.set(id, tail);
            return { ...stream, tail };
          });
        if (streams.length > 0) await bench.upload(streams);
      }
      const inputs = bench.live();
      if (inputs.length === 0) continue;
      const records = bench.records();
      expect(await settled(bench.compact(inputs))).toBe("done");
      const run = bench.live();
      expect(run.map(({ summary }) => summary?.level)).toEqual(run.map(() => 1));
      expect(bench.records()).toBe(records);
      expect(bench.inState("destroyed")).toBe(inputs.length);
      expect(bench.inState("prepared")).toBe(0);
      for (const [id, end] of ends) {
        const trimmed = (await bench.read(id, 0, end)).map((body) => body.replace(/\.+$/, ""));
        expect(trimmed).toEqual(named(id, 0, end));
        expect(await bench.tail(id)).toEqual(tails.get(id) ?? null);
      }
    }
  });

  test("of one object alone gives the same object", async () => {
    const bench = new CompactionBench();
    const [a = 0, b = 0] = await bench.createMany(2);
    const [object] = await bench.upload([namedStream(a, 0, 3), namedStream(b, 0, 2)]);
    if (object === undefined) throw new Error("no object");
    const before = await bench.store.read(bench.keyOf(object));
    await settled(bench.compact([object], 0));
    const [rewritten] = bench.live();
    if (rewritten === undefined) throw new Error("no object");
    const after = await bench.store.read(bench.keyOf(rewritten));
    // All but the id in the footer, and its checksum.
    expect(after?.length).toBe(before?.length ?? 0);
    expect(rewritten.summary).toEqual(object.summary === null ? null : { ...object.summary, objectId: rewritten.objectId });
  });

  test("drops streams that were deleted, and what is trimmed, also within a batch", async () => {
    const bench = new CompactionBench();
    const [kept = 0, deleted = 0, trimmed = 0] = await bench.createMany(3);
    const first = await bench.upload([namedStream(kept, 0, 4), namedStream(deleted, 0, 40), namedStream(trimmed, 0, 40)]);
    const second = await bench.upload([namedStream(deleted, 40, 5), namedStream(trimmed, 40, 5)]);
    await bench.delete(deleted);
    await bench.trim(trimmed, 37);
    await settled(bench.compact([...first, ...second]));
    expect(bench.records()).toBe(4 + 8);
    expect(await bench.read(trimmed, 37, 45)).toEqual(named(trimmed, 37, 45));
    expect(await bench.tail(deleted)).toBeNull();
  });

  test("of streams that are all deleted leaves nothing", async () => {
    const bench = new CompactionBench();
    const ids = await bench.createMany(3);
    const inputs = await bench.upload(ids.map((id) => namedStream(id, 0, 5)));
    for (const id of ids) await bench.delete(id);
    await settled(bench.compact(inputs));
    expect(bench.live()).toEqual([]);
    expect(bench.inState("destroyed")).toBe(inputs.length);
  });

  test("carries the tail state on where no record is left, through any number of merges", async () => {
    const bench = new CompactionBench();
    const [streamId = 0, other = 0] = await bench.createMany(2);
    const stream = namedStream(streamId, 0, 6);
    await bench.upload([stream]);
    await bench.upload([stateOnly(other, 3)]);
    await bench.trim(streamId, 6);
    for (let level = 1; level < 4; level++) {
      await settled(bench.compact(bench.live(), level));
      expect(bench.records()).toBe(0);
      expect(await bench.tail(streamId)).toEqual(tailOf(stream));
      expect(await bench.tail(other)).toEqual(tailOf(stateOnly(other, 3)));
    }
  });

  test("chooses the tail state with the highest change number, not that of the newest object", async () => {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    const closed = { ...namedStream(streamId, 0, 3).tail, changeNumber: 9, isClosed: true };
    await bench.upload([{ ...namedStream(streamId, 0, 3), tail: closed }]);
    await bench.upload([{ ...stateOnly(streamId, 3), tail: { ...closed, changeNumber: 8, isClosed: false } }]);
    await settled(bench.compact(bench.live()));
    expect(await bench.tail(streamId)).toEqual(closed);
  });

  test("takes records whose tail state is in an object that is no input, and one that is older than the records", async () => {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    const old = await bench.upload([namedStream(streamId, 0, 2)]);
    // One stream over several objects: only the last of them has its tail state.
    const long = await bench.upload([namedStream(streamId, 2, 200)]);
    expect(long.length).toBeGreaterThan(2);
    const [head] = long;
    if (head === undefined) throw new Error("no object");
    await settled(bench.compact([head]));
    expect(await bench.read(streamId, 0, 202)).toEqual(named(streamId, 0, 202));
    const moved = bench.live().filter(({ summary }) => summary?.level === 1);
    await settled(bench.compact([...old, ...moved], 2));
    expect(await bench.read(streamId, 0, 202)).toEqual(named(streamId, 0, 202));
    expect(await bench.tail(streamId)).toEqual(tailOf(namedStream(streamId, 2, 200)));
    await settled(bench.compact(bench.live(), 3));
    expect(await bench.read(streamId, 0, 202)).toEqual(named(streamId, 0, 202));
    expect(await bench.tail(streamId)).toEqual(tailOf(namedStream(streamId, 2, 200)));
  });

  test("keeps for forks what their source has trimmed, and of a deleted source nothing that no fork reads", async () => {
    const bench = new CompactionBench();
    const source = await bench.create();
    const fork = await bench.create(source, 30);
    await bench.upload([namedStream(source, 0, 40)]);
    await bench.upload([namedStream(source, 40, 20), namedStream(fork, 30, 5)]);
    await bench.trim(source, 50);
    await settled(bench.compact(bench.live()));
    expect(bench.records()).toBe(65);
    await bench.trim(fork, 12);
    await bench.delete(source);
    await settled(bench.compact(bench.live(), 2));
    expect(bench.records()).toBe(18 + 5);
    expect(await bench.read(fork, 12, 35)).toEqual([...named(source, 12, 30), ...named(fork, 30, 35)]);
  });

  test("moves records larger than a block, and than an object", async () => {
    const bench = new CompactionBench();
    const [a = 0, b = 0] = await bench.createMany(2);
    const bodies = (id: number, from: number, to: number, bytes: number) =>
      Array.from({ length: to - from }, (_, at) => bodyName(id, from + at).padEnd(bytes, "."));
    await bench.upload([namedStream(a, 0, 3, 900), namedStream(b, 0, 1, 5000)]);
    await bench.upload([namedStream(a, 3, 2, 4000), namedStream(b, 1, 3)]);
    await settled(bench.compact(bench.live()));
    expect(await bench.read(a, 0, 5)).toEqual([...bodies(a, 0, 3, 900), ...bodies(a, 3, 5, 4000)]);
    expect(await bench.read(b, 0, 4)).toEqual([...bodies(b, 0, 1, 5000), ...named(b, 1, 4)]);
  });

  test("does not read the blocks of a long stream that is gone", async () => {
    const bench = new CompactionBench({ ...SMALL, objectBytesTarget: 1 << 20, windowBytesMax: 1000 });
    const [dead = 0, trimmed = 0, kept = 0] = await bench.createMany(3);
    const inputs = await bench.upload([namedStream(dead, 0, 4000), namedStream(trimmed, 0, 4000), namedStream(kept, 0, 10)]);
    await bench.delete(dead);
    await bench.trim(trimmed, 3990);
    bench.store.reads.length = 0;
    await settled(bench.compact(inputs));
    const bytes = bench.store.reads.reduce((sum, { start, end }) => sum + (end - start), 0);
    expect(bytes).toBeLessThan(90_000);
    expect(bench.records()).toBe(20);
  });
});

describe("inputs that are damaged", () => {
  /** Two objects of one stream; what a merge of them came to, and which objects it names. */
  async function failed(harm: (bench: CompactionBench, inputs: readonly ObjectEntry[]) => Promise<void>): Promise<readonly number[]> {
    const bench = new CompactionBench();
    const [a = 0, b = 0] = await bench.createMany(2);
    const inputs = [
      ...(await bench.upload([namedStream(a, 0, 30), namedStream(b, 0, 5)])),
      ...(await bench.upload([namedStream(a, 30, 30), namedStream(b, 5, 5)])),
    ];
    await harm(bench, inputs);
    const thrown: unknown = await settled(bench.compact(inputs)).catch((error: unknown) => error);
    expect(bench.live()).toEqual([...inputs]);
    expect(bench.inState("prepared")).toBe(0);
    if (!(thrown instanceof UnusableInputs)) throw new Error(`not named: ${String(thrown)}`);
    return thrown.objectIds.map((objectId) => inputs.findIndex((input) => input.objectId === objectId));
  }

  test("at any byte that is under a checksum are named, and replaced by nothing", async () => {
    for (let at = 8; at < 1500; at += 31) {
      const named = await failed(async (bench, inputs) => {
        const [, second] = inputs;
        if (second === undefined) throw new Error("no second object");
        await bench.store.damage(bench.keyOf(second), Math.min(at, (second.summary?.sizeBytes ?? 0) - 1));
      });
      expect(named).toEqual([1]);
    }
  });

  test("cut short, or missing though they are live, are named", async () => {
    for (const bytes of [new Uint8Array(100), null]) {
      const named = await failed(async (bench, [first]) => {
        if (first !== undefined) bench.store.instead.set(bench.keyOf(first), bytes);
      });
      expect(named).toEqual([0]);
    }
  });

  test("that hold the same offsets of a stream are both named", async () => {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    const inputs = [...(await bench.upload([namedStream(streamId, 0, 30)])), ...(await bench.upload([namedStream(streamId, 20, 30)]))];
    const thrown: unknown = await settled(bench.compact(inputs)).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(UnusableInputs);
    expect(thrown instanceof UnusableInputs ? [...thrown.objectIds].sort() : []).toEqual(inputs.map(({ objectId }) => objectId));
    expect(bench.live()).toEqual(inputs);
    expect(bench.inState("prepared")).toBe(0);
  });

  test("that were replaced meanwhile, by the word of a newer view, are no damage", async () => {
    const bench = new CompactionBench();
    const streamId = await bench.create();
    const inputs = await bench.upload([namedStream(streamId, 0, 5)]);
    const objectIds = inputs.map(({ objectId }) => objectId);
    for (const input of inputs) bench.store.instead.set(bench.keyOf(input), null);
    bench.metadata.catchUp = async () => void (await bench.run({ type: "destroy_objects", objectIds }));
    expect(await settled(bench.compact(inputs))).toBe("void");
  });
});

describe("a merge that cannot end", () => {
  async function start(settings = SMALL) {
    const bench = new CompactionBench(settings);
    const ids = await bench.createMany(4);
    const inputs = [
      ...(await bench.upload(ids.map((id) => namedStream(id, 0, 40)))),
      ...(await bench.upload(ids.map((id) => namedStream(id, 40, 40)))),
    ];
    return { bench, inputs };
  }

  test("because an input was replaced gives its objects up and is void", async () => {
    const { bench, inputs } = await start();
    let creates = 0;
    bench.store.before = async (call) => {
      if (call === "create" && ++creates === 2) await bench.run({ type: "destroy_objects", objectIds: [inputs[0]?.objectId ?? 0] });
    };
    expect(await settled(bench.compact(inputs))).toBe("void");
    expect(bench.inState("prepared")).toBe(0);
    expect(bench.live()).toEqual(inputs.slice(1));
  });

  test("because its command comes behind one that replaced an input gives its objects up and is void", async () => {
    const { bench, inputs } = await start();
    const { propose } = bench.metadata;
    bench.metadata.propose = (command) => {
      const other = { type: "destroy_objects", objectIds: [inputs[0]?.objectId ?? 0] } as const;
      if (command.type === "compact") propose.call(bench.metadata, other);
      return propose.call(bench.metadata, command);
    };
    expect(await settled(bench.compact(inputs))).toBe("void");
    expect(bench.inState("prepared")).toBe(0);
    expect(bench.live()).toEqual(inputs.slice(1));
  });

  test("because the store refuses, the lease is lost or the node stops gives its objects up", async () => {
    for (const end of ["store", "lease", "stop"]) {
      const { bench, inputs } = await start();
      let creates = 0;
      bench.store.before = (call) => {
        if (call !== "create" || ++creates < 2) return;
        if (end === "store") throw new PicoError("storage_full", "as the test says");
        if (end === "lease") bench.isAllowed = false;
        else bench.aborted.abort();
      };
      const code = codeOf(() => bench.compact(inputs));
      await bench.clock.advance(100_000);
      expect(await settled(code)).toBe(end === "store" ? "storage_full" : "unavailable");
      expect(bench.inState("prepared")).toBe(0);
      expect(bench.live()).toEqual(inputs);
    }
  });

  test("before its objects expire says so, and gives them up", async () => {
    const { bench, inputs } = await start();
    let creates = 0;
    bench.store.before = (call) => {
      if (call === "create" && ++creates === 2) bench.clock.stall(PREPARED_OBJECT_TTL_MS + 1);
    };
    const thrown: unknown = await settled(bench.compact(inputs)).catch((error: unknown) => error);
    expect(thrown).toBeInstanceOf(CompactionTooSlow);
    expect(bench.inState("prepared")).toBe(0);
    expect(bench.live()).toEqual(inputs);
  });

  test("by a command whose answer never came leaves everything: the inputs may be replaced", async () => {
    const { bench, inputs } = await start();
    const { propose } = bench.metadata;
    bench.metadata.propose = (command) => {
      const proposal = propose.call(bench.metadata, command);
      if (command.type !== "compact") return proposal;
      const outcome = proposal.outcome.then(() => Promise.reject(new PicoError("unknown_outcome", "as the test says")));
      outcome.catch(() => {});
      return { outcome, isSent: true, withdraw: () => false };
    };
    expect(await settled(bench.compact(inputs))).toBe("void");
    expect(bench.inState("destroyed")).toBe(inputs.length);
    expect(bench.live().every(({ summary }) => summary?.level === 1)).toBe(true);
  });

  test("by a command whose answer is lost and that is applied later gives nothing up: its objects are live then", async () => {
    const { bench, inputs } = await start();
    const { propose } = bench.metadata;
    bench.metadata.propose = (command) => {
      if (command.type !== "compact") return propose.call(bench.metadata, command);
      bench.metadata.hold();
      propose.call(bench.metadata, command);
      const outcome = Promise.reject(new PicoError("unknown_outcome", "as the test says"));
      outcome.catch(() => {});
      return { outcome, isSent: true, withdraw: () => false };
    };
    expect(await settled(codeOf(() => bench.compact(inputs)))).toBe("unknown_outcome");
    bench.metadata.release();
    expect(bench.inState("destroyed")).toBe(inputs.length);
    expect(bench.records()).toBe(4 * 80);
  });
});
