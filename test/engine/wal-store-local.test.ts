import { expect, test } from "bun:test";
import { encodeFrameHeader, scanWalFile, WAL_PAGE_BYTES } from "../../src/engine/wal-file.ts";
import { ALL_NUMBERS } from "../../src/engine/wal-store.ts";
import { LocalDiskWal } from "../../src/engine/wal-store-local.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { NodeLocalDirectory } from "../../src/storage/local-directory-node.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { codeOf, OWNER, seededRandom, segmentBytes, tombstoneBytes, turn, until } from "./wal-fixtures.ts";
import { MemoryDirectory } from "./wal-memory-directory.ts";
import { describeWalStore } from "./wal-store-contract.ts";

const FIRST_FILE_BYTES = 4 * WAL_PAGE_BYTES;
const FILE_BYTES = 8 * WAL_PAGE_BYTES;
const NEXT_LIFE = { nodeId: OWNER.nodeId, nodeEpoch: OWNER.nodeEpoch + 1 };

function open(directory: MemoryDirectory, seed = 1): Promise<LocalDiskWal> {
  return LocalDiskWal.open({ directory, random: seededRandom(seed), firstFileBytes: FIRST_FILE_BYTES, fileBytes: FILE_BYTES });
}

describeWalStore(
  "local WAL over a directory in memory",
  async () => {
    const directory = new MemoryDirectory();
    let seed = 0;
    return { open: () => open(directory, ++seed), dispose: async () => {} };
  },
  FILE_BYTES,
);

describeWalStore(
  "local WAL over a directory on disk",
  async () => {
    const folder = await makeTemporaryFolder();
    const sizes = { firstFileBytes: FIRST_FILE_BYTES, fileBytes: FILE_BYTES };
    return {
      open: () => LocalDiskWal.open({ directory: new NodeLocalDirectory(`${folder.path}/wal`), random: systemRandom, ...sizes }),
      dispose: () => folder[Symbol.asyncDispose](),
    };
  },
  FILE_BYTES,
);

async function begun(): Promise<{ directory: MemoryDirectory; wal: LocalDiskWal }> {
  const directory = new MemoryDirectory();
  const wal = await open(directory);
  await wal.begin(OWNER);
  return { directory, wal };
}

function put(wal: LocalDiskWal, number: number, body = `body ${number}`): Promise<"created" | "exists"> {
  return wal.create(OWNER, number, segmentBytes(number, body));
}

async function readNumbers(wal: LocalDiskWal): Promise<number[]> {
  const numbers = await wal.list(OWNER, 0);
  const whole: number[] = [];
  for (const number of numbers) {
    if (Buffer.from((await wal.read(OWNER, number)) ?? []).equals(segmentBytes(number, `body ${number}`))) whole.push(number);
  }
  return whole;
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

test("opening the WAL and reading another life's segments changes no byte, whatever the files hold", async () => {
  const { directory, wal } = await begun();
  for (const number of range(1, 40)) await put(wal, number);
  directory.kill();
  const before = directory.snapshot();
  const changes = directory.changes.length;
  const again = await open(directory, 2);
  expect(await readNumbers(again)).toEqual(range(1, 40));
  await again.close();
  expect(directory.snapshot()).toEqual(before);
  expect(directory.changes.length).toBe(changes);
});

test("every acknowledged segment is there after a power cut over many files, recycled ones too", async () => {
  for (let seed = 1; seed <= 40; seed++) {
    const random = seededRandom(seed);
    const directory = new MemoryDirectory();
    const wal = await open(directory, seed);
    await wal.begin(OWNER);
    const acknowledged = new Set<number>();
    let number = 0;
    let trimmed = 0;
    for (let round = 0; round < 60; round++) {
      const pair = [++number, ++number];
      await Promise.all(pair.map((each) => put(wal, each)));
      for (const each of pair) acknowledged.add(each);
      if (random.fraction() < 0.2) {
        trimmed = number - Math.floor(random.fraction() * 8);
        expect(await wal.trim(OWNER, trimmed)).toEqual([]);
      }
      await turn(1);
    }
    const files = new Set(directory.changes.filter((change) => change.startsWith("create")));
    expect(files.size).toBeGreaterThanOrEqual(4);
    // The last two are written and their syncs never come back.
    directory.onSync = () => new Promise<void>(() => {});
    void put(wal, number + 1);
    void put(wal, number + 2);
    await turn();
    directory.powerCut(random);
    const again = await open(directory, seed + 1000);
    const found = new Set(await readNumbers(again));
    for (const each of acknowledged) if (each > trimmed) expect([seed, each, found.has(each)]).toEqual([seed, each, true]);
  }
});

test("trimmed files of full size are used again, and frames of their earlier use are not listed", async () => {
  for (const last of range(50, 70)) {
    const { directory, wal } = await begun();
    for (const number of range(1, last)) {
      await put(wal, number);
      await turn(1);
      await wal.trim(OWNER, number - 3);
    }
    // Without reuse so many frames take 2 first files and at least 7 of full size.
    expect(directory.changes.filter((change) => change.startsWith("create")).length).toBeLessThanOrEqual(7);
    directory.kill();
    const again = await open(directory, 2);
    expect(await again.list(OWNER, last - 3)).toEqual(range(last - 2, last));
    // Numbers rise within one use of a file; a rest of an earlier use would make them fall.
    for (const name of directory.files.keys()) {
      const numbers = (await scanWalFile(await directory.open(name), name, OWNER)).map(({ number }) => number);
      expect(numbers).toEqual([...numbers].sort((left, right) => left - right));
    }
  }
});

test("a life that has ended leaves no file: those it wrote to, spares and retired ones go, and its numbers stay taken", async () => {
  const { directory, wal } = await begun();
  for (const number of range(1, 60)) {
    await put(wal, number);
    if (number % 20 === 0) await wal.trim(OWNER, number - 3);
  }
  expect(directory.files.size).toBeGreaterThan(2);
  expect(await wal.trim(OWNER, ALL_NUMBERS)).toEqual([]);
  expect([...directory.files.keys()]).toEqual([]);
  expect(await put(wal, 61)).toBe("exists");
  expect(await wal.registrationsWithSegments()).toEqual([]);
  await wal.close();
});

test("files of an ended life that the disk does not give up are told, empty ones too, and go with the next trim", async () => {
  const { directory, wal } = await begun();
  directory.onRemove = () => {
    throw new PicoError("storage_failed", "busy");
  };
  expect(await wal.trim(OWNER, ALL_NUMBERS)).toEqual([
    { number: 0, reason: "busy" },
    { number: 0, reason: "busy" },
  ]);
  directory.onRemove = () => {};
  expect(await wal.trim(OWNER, ALL_NUMBERS)).toEqual([]);
  expect([...directory.files.keys()]).toEqual([]);
  await wal.close();
});

test("a first file that a larger frame left unused goes at the next trim", async () => {
  const { directory, wal } = await begun();
  const first = [...directory.files.keys()];
  const large = "x".repeat(FIRST_FILE_BYTES);
  for (const number of range(1, 4)) await put(wal, number, large);
  await wal.trim(OWNER, 0);
  const left = [...directory.files.keys()];
  expect(first.filter((name) => left.includes(name))).toEqual([]);
  expect(await wal.list(OWNER, 0)).toEqual(range(1, 4));
});

test("a power cut during the first frame of a file never makes the file unreadable", async () => {
  for (let seed = 1; seed <= 60; seed++) {
    const { directory, wal } = await begun();
    let number = 0;
    for (; number < 40 && seed % 2 === 0; number++) {
      await put(wal, number + 1);
      await turn(1);
      await wal.trim(OWNER, number - 3);
    }
    const steady = number;
    // Then frames are written until both lanes wait for a sync that never comes, in files of any age.
    directory.onSync = () => (seed % 3 === 0 || number > steady + (seed % 14) ? new Promise<void>(() => {}) : undefined);
    for (let at = 0; at < 16; at++) {
      void put(wal, ++number);
      await turn(1);
    }
    directory.powerCut(seededRandom(seed));
    const again = await open(directory, 2);
    const listed = await again.list(OWNER, steady - 3);
    expect([seed, listed.slice(0, Math.min(3, steady))]).toEqual([seed, range(steady - 2, steady).filter((each) => each > 0)]);
  }
});

test("a trimmed number stays taken", async () => {
  const { wal } = await begun();
  for (const number of range(1, 20)) await put(wal, number);
  await wal.trim(OWNER, 15);
  for (const number of [1, 15]) {
    expect(await put(wal, number)).toBe("exists");
    expect(await wal.create(OWNER, number, tombstoneBytes(number))).toBe("exists");
  }
});

test("a failed sync ends the store although the next sync would succeed, and nothing of that batch is acknowledged", async () => {
  const { directory, wal } = await begun();
  for (const number of range(1, 12)) await put(wal, number);
  let syncs = 0;
  directory.onSync = () => {
    if (++syncs === 1) throw new PicoError("storage_failed", "EIO");
  };
  const outcomes = await Promise.all([codeOf(put(wal, 13)), codeOf(put(wal, 14))]);
  expect(outcomes).toEqual(["durability", "durability"]);
  const before = directory.snapshot();
  expect(await codeOf(put(wal, 13))).toBe("durability");
  expect(await codeOf(put(wal, 15))).toBe("durability");
  expect(await codeOf(wal.trim(OWNER, 12))).toBe("durability");
  expect(await codeOf(wal.begin(OWNER))).toBe("durability");
  expect(directory.snapshot()).toEqual(before);
  directory.powerCut(seededRandom(3));
  const again = await open(directory, 2);
  expect((await readNumbers(again)).slice(0, 12)).toEqual(range(1, 12));
});

test("what reads back after a failed sync survives a power cut only once it is written again", async () => {
  for (const seed of range(1, 20)) {
    const { directory, wal } = await begun();
    for (const number of range(1, 6)) await put(wal, number);
    directory.onSync = () => {
      throw new PicoError("storage_failed", "EIO");
    };
    expect(await codeOf(put(wal, 7))).toBe("durability");
    directory.kill();
    const next = await open(directory, 2);
    const seen = await readNumbers(next);
    expect(seen).toEqual(range(1, 7));
    const before = directory.snapshot();
    await next.persist(OWNER);
    expect(directory.snapshot()).toEqual(before);
    directory.powerCut(seededRandom(seed));
    expect(await readNumbers(await open(directory, 3))).toEqual(seen);
  }
});

test("a failed write ends the store", async () => {
  const { directory, wal } = await begun();
  directory.onWrite = () => {
    throw new PicoError("storage_full", "the file system copies on write and is full");
  };
  expect(await codeOf(put(wal, 1))).toBe("durability");
  directory.onWrite = () => {};
  expect(await codeOf(put(wal, 2))).toBe("durability");
});

test("a failed sync of a file's header ends the store at the roll-over although the next sync would succeed", async () => {
  const { directory, wal } = await begun();
  const names = new Set(directory.files.keys());
  let failures = 0;
  directory.onSync = (name) => {
    if (!names.has(name) && ++failures === 1) throw new PicoError("storage_failed", "EIO");
  };
  let number = 0;
  let outcome = "none";
  while (outcome === "none" && number < 20) outcome = await codeOf(put(wal, ++number));
  expect([outcome, failures]).toEqual(["durability", 1]);
  expect(await codeOf(put(wal, number))).toBe("durability");
});

test("a failed sync of a tombstone ends the store although the next sync would succeed, and it is not confirmed", async () => {
  const { directory, wal } = await begun();
  await put(wal, 1);
  let syncs = 0;
  directory.onSync = () => {
    if (++syncs === 1) throw new PicoError("storage_failed", "EIO");
  };
  expect(await codeOf(wal.create(OWNER, 2, tombstoneBytes(2)))).toBe("durability");
  expect(await codeOf(wal.create(OWNER, 2, tombstoneBytes(2)))).toBe("durability");
});

test("a full disk refuses the create that needs a file, and the same number is taken once there is room", async () => {
  const { directory, wal } = await begun();
  directory.capacityBytes = 2 * FIRST_FILE_BYTES;
  let number = 0;
  let outcome = "none";
  while (outcome === "none") outcome = await codeOf(put(wal, ++number));
  expect(outcome).toBe("storage_full");
  expect(await codeOf(put(wal, number))).toBe("storage_full");
  // No half-prepared file stays behind.
  expect(directory.files.size).toBe(2);
  expect(await readNumbers(wal)).toEqual(range(1, number - 1));
  directory.capacityBytes = Number.POSITIVE_INFINITY;
  for (const each of range(number, number + 20)) expect(await put(wal, each)).toBe("created");
  expect(await readNumbers(wal)).toEqual(range(1, number + 20));
});

test("a half-prepared file that cannot be removed is removed before the next is made", async () => {
  const { directory, wal } = await begun();
  directory.capacityBytes = 2 * FIRST_FILE_BYTES;
  directory.onRemove = () => {
    throw new PicoError("storage_failed", "EIO");
  };
  let number = 0;
  while ((await codeOf(put(wal, ++number))) === "none");
  const leftovers = directory.files.size - 2;
  expect(leftovers).toBeGreaterThan(0);
  directory.onRemove = () => {};
  directory.capacityBytes = Number.POSITIVE_INFINITY;
  expect(await put(wal, number)).toBe("created");
  await until(() => [...directory.files.values()].every(({ cached }) => cached.length > 0));
});

test("a life can begin later where the disk is full, and what is there can be read meanwhile", async () => {
  const { directory, wal } = await begun();
  for (const number of range(1, 5)) await put(wal, number);
  directory.kill();
  directory.capacityBytes = 0;
  const again = await open(directory, 2);
  expect(await codeOf(again.begin(NEXT_LIFE))).toBe("storage_full");
  expect(await readNumbers(again)).toEqual(range(1, 5));
  expect(await codeOf(again.create(OWNER, 6, tombstoneBytes(6)))).toBe("storage_full");
  expect(await again.list(OWNER, 5)).toEqual([]);
  directory.capacityBytes = Number.POSITIVE_INFINITY;
  await again.begin(NEXT_LIFE);
  expect(await again.create(NEXT_LIFE, 1, segmentBytes(1, "x", { registration: NEXT_LIFE }))).toBe("created");
  expect(await again.create(OWNER, 6, tombstoneBytes(6))).toBe("created");
});

test("an epoch whose files are there already does not begin", async () => {
  const { directory } = await begun();
  directory.kill();
  expect(await codeOf((await open(directory, 2)).begin(OWNER))).toBe("storage_failed");
});

test("a second process is refused by the lock", async () => {
  const { directory } = await begun();
  expect(await codeOf(open(directory, 2))).toBe("locked");
});

test("a bad page hides no frame but its own, in whatever file it is", async () => {
  const { directory, wal } = await begun();
  for (const number of range(1, 24)) await put(wal, number);
  directory.kill();
  const intact = new Map([...directory.files].map(([name, { cached }]) => [name, cached.slice()]));
  for (const [name, bytes] of intact) {
    for (let page = 0; page * WAL_PAGE_BYTES < bytes.length; page++) {
      const inode = directory.files.get(name);
      inode?.cached.set(bytes);
      inode?.cached.fill(page % 2 === 0 ? 0 : 0xa5, page * WAL_PAGE_BYTES, (page + 1) * WAL_PAGE_BYTES);
      const again = await open(directory, 2);
      const readable = await readNumbers(again);
      expect(readable.length).toBeGreaterThanOrEqual(page === 0 ? 24 : 23);
      await again.close();
    }
    directory.files.get(name)?.cached.set(bytes);
  }
});

test("a file without readable header and first frame is named, not taken for empty", async () => {
  const { directory, wal } = await begun();
  for (const number of range(1, 4)) await put(wal, number);
  directory.kill();
  const [name, inode] = [...directory.files][0] ?? ["", null];
  inode?.cached.fill(0xa5, 0, 2 * WAL_PAGE_BYTES);
  const again = await open(directory, 2);
  const failure = await again.list(OWNER, 0).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "corrupt", facts: { where: `${directory.path}/${name}` } });
});

test("a file that a crash left unfinished holds nothing and hides nothing", async () => {
  const { directory, wal } = await begun();
  for (const number of range(1, 3)) await put(wal, number);
  directory.kill();
  for (const [at, size] of [0, 17, WAL_PAGE_BYTES, WAL_PAGE_BYTES + 5, FILE_BYTES].entries()) {
    await directory.create(`${OWNER.nodeId}-${OWNER.nodeEpoch}-${90 + at}.wal`, size);
  }
  expect(await readNumbers(await open(directory, 2))).toEqual([1, 2, 3]);
});

test("bytes within a segment that look like a frame never pass for one", async () => {
  const { directory, wal } = await begun();
  const body = new Uint8Array(3 * WAL_PAGE_BYTES);
  // The body begins 48 + 56 bytes into its first page; a frame is put where the second and third page begin.
  for (const page of [1, 2]) {
    const at = page * WAL_PAGE_BYTES - 48 - 56;
    encodeFrameHeader(body.subarray(at), OWNER, 99, 60, BigInt(page));
    body.set(segmentBytes(99, "abcd"), at + 48);
  }
  await wal.create(OWNER, 1, segmentBytes(1, body));
  directory.kill();
  const again = await open(directory, 2);
  expect(await again.list(OWNER, 0)).toEqual([1]);
});

test("a torn tombstone still holds its number", async () => {
  const { directory, wal } = await begun();
  await put(wal, 1);
  directory.kill();
  const again = await open(directory, 2);
  directory.onSync = (name) => (name.endsWith(".end") ? new Promise<void>(() => {}) : undefined);
  void again.create(OWNER, 2, tombstoneBytes(2));
  await turn();
  directory.powerCut({ bytes: (length) => new Uint8Array(length), fraction: () => 0.99 });
  const third = await open(directory, 3);
  expect(await third.list(OWNER, 0)).toEqual([1, 2]);
  expect(await third.create(OWNER, 2, tombstoneBytes(2))).toBe("exists");
});

test("a file that cannot be removed is reported with its numbers and tried again", async () => {
  const { directory, wal } = await begun();
  for (const number of range(1, 20)) await put(wal, number);
  directory.onRemove = () => {
    throw new PicoError("storage_failed", "EPERM");
  };
  const refused = await wal.trim(OWNER, 20);
  expect(refused.length).toBeGreaterThan(0);
  expect(refused[0]).toMatchObject({ reason: "EPERM" });
  directory.onRemove = () => {};
  expect(await wal.trim(OWNER, 20)).toEqual([]);
});

test("two syncs overlap, and a third create waits for a free file", async () => {
  const directory = new MemoryDirectory();
  const wal = await LocalDiskWal.open({ directory, random: seededRandom(1), firstFileBytes: 64 * WAL_PAGE_BYTES });
  await wal.begin(OWNER);
  const releases: (() => void)[] = [];
  directory.onSync = () => new Promise<void>((resolve) => releases.push(resolve));
  const creates = [put(wal, 1), put(wal, 2), put(wal, 3)];
  await turn();
  expect(releases.length).toBe(2);
  releases[1]?.();
  expect(await creates[1]).toBe("created");
  await turn();
  expect(releases.length).toBe(3);
  releases[2]?.();
  expect(await creates[2]).toBe("created");
  releases[0]?.();
  expect(await creates[0]).toBe("created");
});
