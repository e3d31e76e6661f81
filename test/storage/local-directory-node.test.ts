/**
 * What these tests cannot show: a power cut. That a file's contents, its entry in the directory and the
 * directory's own entry are synced before an answer is asserted here by failing each of those syncs; that
 * a disk keeps what it confirmed is its own promise. The simulator drops whatever was not synced.
 */
import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import fs from "node:fs";
import fsPromises from "node:fs/promises";
import { join } from "node:path";
import { isPicoError } from "../../src/lib/errors.ts";
import { NodeLocalDirectory } from "../../src/storage/local-directory-node.ts";
import { startLockHolder } from "./lock-holder.ts";
import { mountSmallDisk } from "./small-disk.ts";
import { makeTemporaryFolder, type TemporaryFolder } from "./temporary-folder.ts";
import { watchEntries } from "./watched-entries.ts";

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return isPicoError(error) ? error.code : `not a PicoError: ${String(error)}`;
  }
  return "resolved";
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const diskError = () => Object.assign(new Error("EIO: i/o error"), { code: "EIO" });

describe("local directory", () => {
  let folder: TemporaryFolder;
  let directory: NodeLocalDirectory;
  beforeEach(async () => {
    folder = await makeTemporaryFolder();
    directory = new NodeLocalDirectory(join(folder.path, "deep/wal"));
    await directory.lock();
  });
  afterEach(async () => {
    await directory.unlock();
    await folder[Symbol.asyncDispose]();
  });

  test("a created file is zero-filled, of its size, and listed alone", async () => {
    const file = await directory.create("wal-1", 3_000_000);
    expect(file.sizeBytes).toBe(3_000_000);
    expect(Buffer.compare(await file.read(0, 4_000_000), new Uint8Array(3_000_000))).toBe(0);
    expect(await directory.list()).toEqual(["wal-1"]);
    await file.close();
    await (await directory.create("empty", 0)).close();
    expect(await directory.list()).toEqual(["empty", "wal-1"]);
  });

  test("what was written reads back at its position, in the same and in a later opening", async () => {
    const file = await directory.create("a", 100);
    file.write([bytesOf("one"), new Uint8Array(0), bytesOf("two"), bytesOf("three")], 10);
    file.write([], 5);
    await file.sync();
    expect(await file.read(8, 15)).toEqual(bytesOf("\0\0onetwothree\0\0"));
    await file.close();
    const again = await directory.open("a");
    expect(again.sizeBytes).toBe(100);
    expect(await again.read(10, 11)).toEqual(bytesOf("onetwothree"));
    expect(await again.read(90, 50)).toHaveLength(10);
    expect(await again.read(200, 5)).toHaveLength(0);
    await again.close();
  });

  test("thousands of parts are written in one call", async () => {
    const parts = Array.from({ length: 5000 }, (_, i) => Uint8Array.of(i % 256, i >> 8, 7));
    const file = await directory.create("a", 15_000);
    file.write(parts, 0);
    expect(Buffer.compare(await file.read(0, 15_000), Buffer.concat(parts))).toBe(0);
    await file.close();
  });

  test("short writes are completed, wherever they end", async () => {
    const file = await directory.create("a", 64);
    const real = fs.writevSync;
    const short = spyOn(fs, "writevSync").mockImplementation((fd, buffers, position) => {
      // Takes at most five bytes at a time.
      const all = Buffer.concat(buffers.map((part) => new Uint8Array(part.buffer, part.byteOffset, part.byteLength)));
      return real(fd, [all.subarray(0, 5)], position);
    });
    try {
      file.write([bytesOf("abcdefg"), bytesOf("hij"), bytesOf("k"), bytesOf("lmnopqrstuvw")], 3);
      expect(short.mock.calls.length).toBe(5);
    } finally {
      short.mockRestore();
    }
    expect(await file.read(3, 23)).toEqual(bytesOf("abcdefghijklmnopqrstuvw"));
    await file.close();
  });

  test("a write outside the file is a broken invariant and changes nothing", async () => {
    const file = await directory.create("a", 10);
    expect(() => file.write([bytesOf("abc")], 8)).toThrow("broken invariant");
    expect(() => file.write([bytesOf("abc")], -1)).toThrow("broken invariant");
    expect(await file.read(0, 10)).toEqual(new Uint8Array(10));
    await file.close();
  });

  test("a name is created once; a missing one cannot be opened; removing it twice is no error", async () => {
    const file = await directory.create("a", 10);
    file.write([bytesOf("kept")], 0);
    expect(await codeOf(directory.create("a", 10))).toBe("storage_failed");
    expect(await file.read(0, 4)).toEqual(bytesOf("kept"));
    await file.close();
    expect(await codeOf(directory.open("b"))).toBe("storage_failed");
    await directory.remove("a");
    await directory.remove("a");
    expect(await directory.list()).toEqual([]);
  });

  test.each(["", ".", "..", "a/b", "~lock", "a\0b"])("the name %j is refused", async (name) => {
    expect(await codeOf(directory.create(name, 1))).toBe("storage_failed");
    expect(await codeOf(directory.open(name))).toBe("storage_failed");
    expect(await codeOf(directory.remove(name))).toBe("storage_failed");
  });

  test("a closed file refuses everything, and closing waits for what is under way", async () => {
    const file = await directory.create("a", 10);
    file.write([bytesOf("x")], 0);
    const syncing = file.sync();
    const reading = file.read(0, 1);
    await Promise.resolve();
    await file.close();
    await syncing;
    expect(await reading).toEqual(bytesOf("x"));
    expect(() => file.write([bytesOf("y")], 0)).toThrow("closed");
    expect(await codeOf(file.sync())).toBe("storage_failed");
    expect(await codeOf(file.read(0, 1))).toBe("storage_failed");
    await file.close();
  });

  test("after a failed sync the file takes no write and confirms no sync, though the disk is well again", async () => {
    const real = fsPromises.open;
    let failures = 1;
    const opened = spyOn(fsPromises, "open").mockImplementation(async (...parameters) => {
      const handle = await real(...parameters);
      const datasync = handle.datasync.bind(handle);
      handle.datasync = () => {
        failures -= 1;
        return failures === 0 ? Promise.reject(diskError()) : datasync();
      };
      return handle;
    });
    try {
      const file = await directory.create("a", 10);
      file.write([bytesOf("x")], 0);
      // The second is asked for while the first is under way, and must not pass for it.
      expect(await Promise.all([codeOf(file.sync()), codeOf(file.sync())])).toEqual(["storage_failed", "storage_failed"]);
      expect(failures).toBe(0);
      expect(() => file.write([bytesOf("y")], 0)).toThrow("sync failed");
      expect(await codeOf(file.sync())).toBe("storage_failed");
      expect(failures).toBe(0);
      await file.close();
    } finally {
      opened.mockRestore();
    }
  });

  test.each([1, 2])("where sync number %d of a create fails, the create fails", async (failing) => {
    const real = fsPromises.open;
    let syncs = 0;
    const opened = spyOn(fsPromises, "open").mockImplementation(async (...parameters) => {
      const handle = await real(...parameters);
      const sync = handle.sync.bind(handle);
      handle.sync = () => {
        syncs += 1;
        return syncs === failing ? Promise.reject(diskError()) : sync();
      };
      return handle;
    });
    try {
      expect(await codeOf(directory.create("a", 10))).toBe("storage_failed");
      // Once for the contents, once for the entry.
      expect(syncs).toBe(failing);
    } finally {
      opened.mockRestore();
    }
  });

  test("the folder is on the disk when its lock is taken, with the folders that were made for it", async () => {
    using entries = watchEntries();
    const other = new NodeLocalDirectory(join(folder.path, "new/wal"));
    await other.lock();
    expect([...entries.unsynced]).toEqual([]);
    expect(entries.synced).toContain(folder.path);
    await other.unlock();
  });

  test("a removal whose directory sync fails is not confirmed", async () => {
    await (await directory.create("a", 10)).close();
    const opened = spyOn(fsPromises, "open").mockRejectedValue(diskError());
    try {
      expect(await codeOf(directory.remove("a"))).toBe("storage_failed");
    } finally {
      opened.mockRestore();
    }
  });

  test("a file whose creation was cut short is not listed, and goes at the next lock", async () => {
    const leftover = join(directory.path, "~new-a");
    fs.writeFileSync(leftover, "half");
    expect(await directory.list()).toEqual([]);
    await directory.unlock();
    await directory.lock();
    expect(fs.existsSync(leftover)).toBe(false);
    await (await directory.create("a", 10)).close();
  });

  test("a second process is refused by name until the first dies, and the lock's files are never listed", async () => {
    await directory.unlock();
    const holder = await startLockHolder(join(directory.path, "~lock"));
    try {
      const refusal = await directory.lock().catch((error: unknown) => error);
      expect(refusal).toMatchObject({ code: "locked", facts: { holder: holder.pid } });
      expect(await directory.list()).toEqual([]);
    } finally {
      await holder.kill();
    }
    await directory.lock();
    expect(await directory.list()).toEqual([]);
    const twin = new NodeLocalDirectory(directory.path);
    expect(await codeOf(twin.lock())).toBe("locked");
    await twin.unlock();
    expect(await codeOf(new NodeLocalDirectory(directory.path).lock())).toBe("locked");
  }, 20_000);

  test("a full disk refuses a file whole and gives its space back; with space again it is created", async () => {
    const disk = await mountSmallDisk(4096);
    if (typeof disk === "string") return void console.log(`skipped: ${disk}`);
    await using _ = disk;
    const small = new NodeLocalDirectory(join(disk.path, "wal"));
    await small.lock();
    await (await small.create("first", 2_000_000)).close();
    expect(await codeOf(small.create("second", 3_000_000))).toBe("storage_full");
    expect(await small.list()).toEqual(["first"]);
    await (await small.create("smaller", 1_000_000)).close();
    await small.remove("first");
    await (await small.create("second", 3_000_000)).close();
    expect(await small.list()).toEqual(["second", "smaller"]);
    await small.unlock();
  });
});
