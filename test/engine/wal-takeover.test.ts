import { expect, test } from "bun:test";
import { decodeSegment, isTombstone } from "../../src/engine/wal-segment-format.ts";
import { LocalDiskWal } from "../../src/engine/wal-store-local.ts";
import { inspectWal, type TakenWal, type TakeoverOptions, takeOverWal } from "../../src/engine/wal-takeover.ts";
import { WalWriter } from "../../src/engine/wal-writer.ts";
import { utf8Decoder, utf8Encoder } from "../../src/lib/bytes.ts";
import { PicoError } from "../../src/lib/errors.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import { codeOf, hastyClock, MemoryWal, OWNER, seededRandom, segmentBytes, TAKER, tombstoneBytes, turn } from "./wal-fixtures.ts";
import { MemoryDirectory } from "./wal-memory-directory.ts";

function takeover(store: MemoryWal | LocalDiskWal, position = 0, takenBy: RegistrationName = TAKER, seed = 1) {
  const options: TakeoverOptions & { takenBy: RegistrationName } = {
    store,
    clock: hastyClock,
    random: seededRandom(seed),
    registration: OWNER,
    position,
    takenBy,
  };
  return options;
}

async function bodies(taken: TakenWal): Promise<string[]> {
  const texts: string[] = [];
  for await (const { number, segment } of taken.segments()) texts.push(`${number}:${utf8Decoder.decode(segment.body)}`);
  return texts;
}

/** A WAL with these numbers; each knows all below `number - 1` to be durable unless `marks` says otherwise. */
function filled(
  numbers: readonly number[],
  marks: { durable?: (number: number) => number; trim?: (number: number) => number } = {},
): MemoryWal {
  const store = new MemoryWal();
  for (const number of numbers) {
    const durableNumber = marks.durable?.(number) ?? 0;
    const trimPoint = marks.trim?.(number) ?? 0;
    store.of(OWNER).set(number, segmentBytes(number, `b${number}`, { durableNumber, trimPoint }));
  }
  return store;
}

function damage(store: MemoryWal, number: number): void {
  const bytes = store.of(OWNER).get(number);
  if (bytes !== undefined) bytes[57] = (bytes[57] ?? 0) ^ 1;
}

function tombstones(store: MemoryWal): number[] {
  return [...store.of(OWNER)].filter(([, bytes]) => isTombstone(bytes)).map(([number]) => number);
}

test("an empty WAL ends at its position, with a tombstone directly behind", async () => {
  const store = new MemoryWal();
  const taken = await takeOverWal(takeover(store));
  expect([taken.lastNumber, taken.isFenced, await bodies(taken)]).toEqual([0, true, []]);
  expect(tombstones(store)).toEqual([1]);
  const later = filled([1, 2, 3]);
  expect((await takeOverWal(takeover(later, 3))).lastNumber).toBe(3);
  expect(tombstones(later)).toEqual([4]);
});

test("everything above the position is replayed in order, and the tombstone lies behind the last", async () => {
  const store = filled([3, 4, 5, 6], { durable: (number) => number - 1, trim: () => 2 });
  const taken = await takeOverWal(takeover(store, 3));
  expect(taken.lastNumber).toBe(6);
  expect(await bodies(taken)).toEqual(["4:b4", "5:b5", "6:b6"]);
  expect(tombstones(store)).toEqual([7]);
  const tombstone = decodeSegment(store.of(OWNER).get(7) ?? new Uint8Array(), OWNER, 7);
  expect(tombstone).toMatchObject({ tombstoneBy: TAKER, trimPoint: 3, durableNumber: 6 });
});

test("a second run finds the first one's end, whatever was written above it since", async () => {
  const store = filled([1, 2]);
  const first = await takeOverWal(takeover(store));
  store.of(OWNER).set(4, segmentBytes(4, "void"));
  const second = await takeOverWal(takeover(store, 0, { nodeId: 9, nodeEpoch: 1 }));
  expect([first.lastNumber, second.lastNumber]).toEqual([2, 2]);
  expect(await bodies(second)).toEqual(await bodies(first));
  expect(tombstones(store)).toEqual([3]);
});

test("a hole cuts the log: nothing above it is replayed", async () => {
  const store = filled([1, 2, 4, 5], { durable: () => 0 });
  const taken = await takeOverWal(takeover(store));
  expect(await bodies(taken)).toEqual(["1:b1", "2:b2"]);
  expect(tombstones(store)).toEqual([3]);
});

test("any subset of trimmed segments may be gone below the position", async () => {
  for (let subset = 0; subset < 32; subset++) {
    const numbers = [1, 2, 3, 4, 5].filter((number) => subset & (1 << (number - 1)));
    const store = filled([...numbers, 6, 7, 8], { durable: (number) => number - 1, trim: (number) => (number > 5 ? 5 : 0) });
    const taken = await takeOverWal(takeover(store, 5));
    expect(await bodies(taken)).toEqual(["6:b6", "7:b7", "8:b8"]);
  }
});

test("a missing or bad number that a segment knew to be durable or trimmed is damage, named before anything is written", async () => {
  const cases: { store: MemoryWal; number: number }[] = [
    { store: filled([1, 3], { durable: (number) => (number === 3 ? 2 : 0) }), number: 2 },
    { store: filled([1, 2, 5], { durable: (number) => (number === 5 ? 3 : 0) }), number: 3 },
    { store: filled([4, 5], { trim: () => 3 }), number: 1 },
    { store: filled([1, 2, 3], { durable: (number) => number - 1 }), number: 2 },
  ];
  const bad = cases[3]?.store;
  if (bad !== undefined) damage(bad, 2);
  for (const { store, number } of cases) {
    const before = store.of(OWNER).size;
    const failure = await takeOverWal(takeover(store)).catch((error: unknown) => error);
    expect(failure).toMatchObject({ code: "corrupt", facts: { number } });
    expect(await codeOf(inspectWal(takeover(store)))).toBe("corrupt");
    expect([store.of(OWNER).size, tombstones(store)]).toEqual([before, []]);
  }
});

test("a tombstone that a live segment has passed is damage, not an end", async () => {
  const store = filled([1, 3], { durable: (number) => (number === 3 ? 2 : 0) });
  store.of(OWNER).set(2, tombstoneBytes(2));
  expect(await codeOf(takeOverWal(takeover(store)))).toBe("corrupt");
});

test("a bad segment above all marks is a torn tail: the log ends below it, and its writer is fenced behind it", async () => {
  const store = filled([1, 2, 3, 4], { durable: (number) => Math.min(2, number - 1) });
  damage(store, 3);
  const taken = await takeOverWal(takeover(store));
  expect([taken.lastNumber, await bodies(taken)]).toEqual([2, ["1:b1", "2:b2"]]);
  expect(tombstones(store)).toEqual([5]);
  // The same answer where the torn segment reads well the next time.
  damage(store, 3);
  const again = await takeOverWal(takeover(store));
  expect([again.lastNumber, await bodies(again)]).toEqual([2, ["1:b1", "2:b2"]]);
});

test("a bad tombstone ends the log as a torn segment does", async () => {
  const store = filled([1, 2]);
  store.of(OWNER).set(3, new Uint8Array(68));
  const taken = await takeOverWal(takeover(store));
  expect(taken.lastNumber).toBe(2);
  expect(tombstones(store)).toEqual([4]);
});

test("a read that returns other bytes once is not taken for damage", async () => {
  const store = filled([1, 2, 3], { durable: (number) => number - 1 });
  const read = store.read.bind(store);
  let reads = 0;
  store.read = async (registration, number) => {
    const bytes = await read(registration, number);
    if (++reads === 2 && bytes !== null) bytes[57] = 0;
    return bytes;
  };
  expect((await takeOverWal(takeover(store))).lastNumber).toBe(3);
});

test("a newer program's segment stops the takeover before anything is written", async () => {
  const store = filled([1]);
  const newer = await Bun.file(`${import.meta.dir}/golden/wal-segment-newer-version.bin`).bytes();
  store.of(OWNER).set(2, newer);
  expect(await codeOf(takeOverWal(takeover(store)))).toBe("incompatible");
  expect(store.of(OWNER).size).toBe(2);
});

test("inspecting says what would be replayed and writes nothing", async () => {
  const store = filled([1, 2, 4]);
  store.beforeCreate = () => {
    throw new Error("nothing may be written");
  };
  const seen = await inspectWal(takeover(store));
  expect([seen.lastNumber, seen.isFenced, await bodies(seen)]).toEqual([2, false, ["1:b1", "2:b2"]]);
  store.of(OWNER).set(3, tombstoneBytes(3));
  expect((await inspectWal(takeover(store))).isFenced).toBe(true);
});

test("a segment that changes between survey and replay is an error, not a shorter log", async () => {
  const store = filled([1, 2, 3]);
  const taken = await takeOverWal(takeover(store));
  expect(await bodies(taken)).toEqual(["1:b1", "2:b2", "3:b3"]);
  store.of(OWNER).set(2, segmentBytes(2, "another"));
  expect(await codeOf(bodies(taken))).toBe("corrupt");
  store.of(OWNER).delete(2);
  expect(await codeOf(bodies(taken))).toBe("corrupt");
});

test("a store that refuses three calls of ten and loses answers is taken over all the same", async () => {
  for (let seed = 1; seed <= 30; seed++) {
    const random = seededRandom(seed);
    const store = filled(
      Array.from({ length: 60 }, (_, at) => at + 1),
      { durable: (number) => number - 1 },
    );
    const misbehave = () => {
      if (random.fraction() < 0.3) throw new PicoError("storage_failed", "503");
    };
    store.beforeList = misbehave;
    store.beforeRead = misbehave;
    store.beforeCreate = misbehave;
    store.afterCreate = () => {
      if (random.fraction() < 0.5) throw new PicoError("unknown_outcome", "time-out");
    };
    const taken = await takeOverWal(takeover(store, 0, TAKER, seed));
    expect([seed, taken.lastNumber, (await bodies(taken)).length]).toEqual([seed, 60, 60]);
  }
});

test("a store that never answers well ends the takeover with its error", async () => {
  const store = filled([1]);
  store.beforeList = () => {
    throw new PicoError("storage_failed", "503");
  };
  expect(await codeOf(takeOverWal(takeover(store)))).toBe("storage_failed");
});

test("reads of a takeover are bounded", async () => {
  const store = filled(Array.from({ length: 100 }, (_, at) => at + 1));
  let underWay = 0;
  let most = 0;
  store.beforeRead = async () => {
    most = Math.max(most, ++underWay);
    await turn(1);
    underWay--;
  };
  const taken = await takeOverWal(takeover(store));
  for await (const { number } of taken.segments()) expect(number).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(8);
});

interface Race {
  readonly acknowledged: Map<number, string>;
  readonly results: { lastNumber: number; bodies: string[] }[];
  readonly end: string | null;
}

/** An owner that writes as fast as the store lets it, and takers that come at random moments, all over one slow store. */
async function race(seed: number, takers: number): Promise<Race> {
  const random = seededRandom(seed);
  const store = new MemoryWal(1 + Math.floor(random.fraction() * 4));
  const stall = async () => {
    for (let left = Math.floor(random.fraction() * 6); left > 0; left--) await turn(1);
    if (random.fraction() < 0.1) throw new PicoError("storage_failed", "503");
  };
  store.beforeCreate = stall;
  store.afterCreate = async () => {
    if (random.fraction() < 0.1) throw new PicoError("unknown_outcome", "time-out");
    if (random.fraction() < 0.3) await turn(1 + Math.floor(random.fraction() * 5));
  };
  store.beforeRead = stall;
  store.beforeList = stall;
  const acknowledged = new Map<number, string>();
  let end: string | null = null;
  const writer = new WalWriter({
    store,
    registration: OWNER,
    clock: hastyClock,
    random,
    onDurable: (segment) => acknowledged.set(segment.number, utf8Decoder.decode(segment.bytes.subarray(56))),
    onFenced: (error) => {
      end = error.code;
    },
    onFailed: (error) => {
      end = error.code;
    },
  });
  const results: Race["results"] = [];
  const take = async (at: number) => {
    await turn(1 + Math.floor(random.fraction() * 60));
    const taken = await takeOverWal(takeover(store, 0, { nodeId: 10 + at, nodeEpoch: 1 }, seed * 10 + at));
    results.push({ lastNumber: taken.lastNumber, bodies: await bodies(taken) });
  };
  const taking = Promise.all(Array.from({ length: takers }, (_, at) => take(at)));
  for (let at = 0; at < 60 && writer.failure === null; at++) {
    writer.append((out) => out.bytes(utf8Encoder.encode(`entry ${at}`)));
    if (random.fraction() < 0.7) await turn(1);
  }
  await taking;
  for (let at = 0; at < 400 && writer.failure === null; at++) {
    writer.append((out) => out.bytes(utf8Encoder.encode("late")));
    await turn(1);
  }
  return { acknowledged, results, end };
}

test("takers that race a fast owner agree, lose nothing acknowledged, and the owner is fenced", async () => {
  for (let seed = 1; seed <= 120; seed++) {
    const { acknowledged, results, end } = await race(seed, 1 + (seed % 3));
    expect([seed, end]).toEqual([seed, "fenced_node"]);
    const [first] = results;
    for (const result of results) expect([seed, result]).toEqual([seed, first ?? result]);
    for (const [number, text] of acknowledged) {
      expect([seed, number, first?.bodies[number - 1]]).toEqual([seed, number, `${number}:${text}`]);
    }
  }
});

test("an owner that paused before a create, over takeover, trim and all, is refused by the tombstone that stays", async () => {
  const store = new MemoryWal();
  let resume = () => {};
  const ends: string[] = [];
  const durable: number[] = [];
  const writer = new WalWriter({
    store,
    registration: OWNER,
    clock: hastyClock,
    random: seededRandom(1),
    onDurable: (segment) => durable.push(segment.number),
    onFenced: (error) => ends.push(error.code),
    onFailed: (error) => ends.push(error.code),
  });
  writer.append((out) => out.u8(1));
  await turn();
  store.beforeCreate = () =>
    new Promise<void>((resolve) => {
      resume = resolve;
      store.beforeCreate = () => {};
    });
  writer.append((out) => out.u8(2));
  await turn();
  expect((await takeOverWal(takeover(store))).lastNumber).toBe(1);
  store.of(OWNER).delete(1);
  resume();
  await turn(10);
  expect([durable, ends]).toEqual([[1], ["fenced_node"]]);
});

test("after a power cut the local WAL replays every acknowledged segment, gives the same answer again, and loses nothing to the next cut", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = seededRandom(seed);
    const directory = new MemoryDirectory();
    const open = (at: number) =>
      LocalDiskWal.open({ directory, random: seededRandom(seed * 100 + at), firstFileBytes: 4 * 4096, fileBytes: 8 * 4096 });
    const wal = await open(0);
    await wal.begin(OWNER);
    const acknowledged: string[] = [];
    const writer = new WalWriter({
      store: wal,
      registration: OWNER,
      clock: hastyClock,
      random,
      onDurable: (segment) => acknowledged.push(`${segment.number}:${utf8Decoder.decode(segment.bytes.subarray(56))}`),
      onFenced: () => {},
      onFailed: () => {},
    });
    const stopAt = 5 + Math.floor(random.fraction() * 30);
    for (let at = 0; at < 40; at++) {
      if (at === stopAt) directory.onSync = () => new Promise<void>(() => {});
      writer.append((out) => out.bytes(utf8Encoder.encode(`${at}`.repeat(1 + Math.floor(random.fraction() * 3000)))));
      await turn(1 + Math.floor(random.fraction() * 2));
    }
    let survivors: string[] | null = null;
    for (let life = 1; life <= 3; life++) {
      // After the first cut the next lives die with or without their power.
      if (life === 1 || random.fraction() < 0.5) directory.powerCut(random);
      else directory.kill();
      const again = await open(life);
      const found = await bodies(await takeOverWal(takeover(again)));
      expect([seed, found.slice(0, acknowledged.length)]).toEqual([seed, acknowledged]);
      survivors ??= found;
      expect([seed, life, found]).toEqual([seed, life, survivors]);
    }
  }
});

test("what a killed process wrote and never synced is made durable before it is replayed", async () => {
  const directory = new MemoryDirectory();
  const wal = await LocalDiskWal.open({ directory, random: seededRandom(1), firstFileBytes: 16 * 4096, fileBytes: 16 * 4096 });
  await wal.begin(OWNER);
  directory.onSync = () => new Promise<void>(() => {});
  void wal.create(OWNER, 1, segmentBytes(1, "b1"));
  await turn();
  directory.kill();
  const again = await LocalDiskWal.open({ directory, random: seededRandom(2) });
  expect(await bodies(await inspectWal(takeover(again)))).toEqual(["1:b1"]);
  directory.powerCut({ bytes: (length) => new Uint8Array(length), fraction: () => 0.99 });
  const third = await LocalDiskWal.open({ directory, random: seededRandom(3) });
  expect(await bodies(await inspectWal(takeover(third)))).toEqual(["1:b1"]);
});

/** As a store in the page cache of one host. */
class LocalMemoryWal extends MemoryWal {
  override readonly kind = "local";
}

test("on a local disk a power cut may take what a takeover had read and nobody acknowledged; the log then ends below it", async () => {
  const taken = filled([1, 2, 3], { durable: (number) => number - 1 });
  const store = new LocalMemoryWal();
  for (const [number, bytes] of taken.of(OWNER)) store.of(OWNER).set(number, bytes);
  expect((await takeOverWal(takeover(store))).lastNumber).toBe(3);
  store.of(OWNER).delete(3);
  const again = await takeOverWal(takeover(store));
  expect([again.lastNumber, await bodies(again)]).toEqual([2, ["1:b1", "2:b2"]]);
  // What an intact segment knew to be durable is damage there too.
  store.of(OWNER).delete(1);
  expect(await codeOf(takeOverWal(takeover(store)))).toBe("corrupt");
});
