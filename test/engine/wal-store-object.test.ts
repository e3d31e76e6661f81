import { expect, test } from "bun:test";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { PicoError } from "../../src/lib/errors.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { FileObjectStore } from "../../src/storage/file-object-store.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import type { DeleteOutcome, ListPage, ObjectStore } from "../../src/storage/object-store.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { codeOf, OWNER, segmentBytes, tombstoneBytes } from "./wal-fixtures.ts";
import { describeWalStore } from "./wal-store-contract.ts";

describeWalStore(
  "object WAL over a memory store",
  async () => {
    const objects = new MemoryObjectStore(systemClock);
    return { open: async () => new ObjectWal(objects, "test"), dispose: () => objects.close() };
  },
  64 * 1024,
);

describeWalStore(
  "object WAL over a file store",
  async () => {
    const folder = await makeTemporaryFolder();
    const objects = await FileObjectStore.open({ path: `${folder.path}/objects`, clock: systemClock, random: systemRandom });
    return {
      open: async () => new ObjectWal(objects, "test"),
      dispose: async () => {
        await objects.close();
        await folder[Symbol.asyncDispose]();
      },
    };
  },
  64 * 1024,
);

/** A memory store whose lists run backwards and whose deletes can be refused, key by key or whole. */
class UnkindStore implements ObjectStore {
  readonly description = "unkind";
  readonly deletedKeys: string[] = [];
  refuses: (key: string) => boolean = () => false;
  failsWholeDelete = false;
  failsRead = false;
  readonly #inner = new MemoryObjectStore(systemClock);

  create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    return this.#inner.create(key, bytes);
  }

  async read(key: string): Promise<Uint8Array | null> {
    if (this.failsRead) throw new PicoError("storage_failed", "no read");
    return this.#inner.read(key);
  }

  size(key: string): Promise<number | null> {
    return this.#inner.size(key);
  }

  async list(prefix: string, options: { after: string | null; limit: number }): Promise<ListPage> {
    const page = await this.#inner.list(prefix, { after: options.after, limit: Math.min(3, options.limit) });
    return { objects: [...page.objects].reverse(), next: page.next };
  }

  async delete(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    if (this.failsWholeDelete) throw new PicoError("unknown_outcome", "no answer");
    this.deletedKeys.push(...keys);
    const outcomes = await this.#inner.delete(keys.filter((key) => !this.refuses(key)));
    const refused = keys.filter((key) => this.refuses(key));
    return [...outcomes, ...refused.map((key) => ({ key, deleted: false as const, code: "AccessDenied", message: "locked" }))];
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}

const keyOf = (number: number) => `test/wal/3/1760000000000/${String(number).padStart(16, "0")}`;

async function filled(count: number): Promise<{ objects: UnkindStore; wal: ObjectWal }> {
  const objects = new UnkindStore();
  const wal = new ObjectWal(objects, "test");
  for (let number = 1; number <= count; number++) await wal.create(OWNER, number, segmentBytes(number, `body ${number}`));
  return { objects, wal };
}

test("keys are cluster, node, epoch and padded number", async () => {
  const { objects } = await filled(1);
  expect(await objects.size(keyOf(1))).not.toBeNull();
});

test("numbers are sorted even where the store lists in another order", async () => {
  const { wal } = await filled(11);
  expect(await wal.list(OWNER, 4)).toEqual([5, 6, 7, 8, 9, 10, 11]);
});

test("a key of a batch that the store refused to delete is reported and stays", async () => {
  const { objects, wal } = await filled(5);
  objects.refuses = (key) => key === keyOf(2);
  expect(await wal.trim(OWNER, 4)).toEqual([{ number: 2, reason: "AccessDenied: locked" }]);
  expect(await wal.list(OWNER, 0)).toEqual([2, 5]);
  objects.refuses = () => false;
  expect(await wal.trim(OWNER, 4)).toEqual([]);
  expect(await wal.list(OWNER, 0)).toEqual([5]);
});

test("a delete without an answer is reported for every key of it", async () => {
  const { objects, wal } = await filled(3);
  objects.failsWholeDelete = true;
  expect((await wal.trim(OWNER, 3)).map(({ number }) => number)).toEqual([1, 2, 3]);
  expect(await wal.list(OWNER, 0)).toEqual([1, 2, 3]);
});

test("what has a tombstone's size and cannot be read or decoded is never deleted", async () => {
  const { objects, wal } = await filled(2);
  await wal.create(OWNER, 3, tombstoneBytes(3));
  const broken = tombstoneBytes(4);
  broken[40] = 0xff;
  await wal.create(OWNER, 4, broken);
  const refused = await wal.trim(OWNER, 4);
  expect(refused.map(({ number }) => number)).toEqual([4]);
  objects.failsRead = true;
  expect((await wal.trim(OWNER, 4)).map(({ number }) => number)).toEqual([3, 4]);
  expect(objects.deletedKeys).toEqual([keyOf(1), keyOf(2)]);
});

test("what is listed, has a tombstone's size and reads as absent is never deleted", async () => {
  const { objects, wal } = await filled(2);
  await wal.create(OWNER, 3, tombstoneBytes(3));
  objects.read = async () => null;
  expect((await wal.trim(OWNER, 3)).map(({ number }) => number)).toEqual([3]);
  expect(objects.deletedKeys).toEqual([keyOf(1), keyOf(2)]);
});

test("a trim asks before each delete whether it may go on, and names what it leaves", async () => {
  const objects = new MemoryObjectStore(systemClock);
  const wal = new ObjectWal(objects, "test");
  for (let number = 1; number <= 2500; number++) await wal.create(OWNER, number, segmentBytes(number, ""));
  let asked = 0;
  const left = await wal.trim(OWNER, 2500, async () => ++asked < 2);
  expect([left.length, left[0]?.number]).toEqual([1500, 1001]);
  expect((await wal.list(OWNER, 0)).length).toBe(1500);
});

test("more segments than one delete may take are trimmed in several", async () => {
  const objects = new MemoryObjectStore(systemClock);
  const wal = new ObjectWal(objects, "test");
  for (let number = 1; number <= 2500; number++) await wal.create(OWNER, number, segmentBytes(number, ""));
  expect(await wal.trim(OWNER, 2400)).toEqual([]);
  expect((await wal.list(OWNER, 0)).length).toBe(100);
});

test("a list that fails in a later page fails whole", async () => {
  const { objects, wal } = await filled(8);
  const list = objects.list.bind(objects);
  let pages = 0;
  objects.list = async (prefix, options) => {
    if (++pages === 2) throw new PicoError("storage_failed", "503");
    return list(prefix, options);
  };
  expect(await codeOf(wal.list(OWNER, 0))).toBe("storage_failed");
});
