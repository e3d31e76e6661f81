import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { PicoError } from "../../src/lib/errors.ts";
import { ProcessLock } from "../../src/storage/process-lock.ts";
import { startLockHolder } from "./lock-holder.ts";
import { makeTemporaryFolder, type TemporaryFolder } from "./temporary-folder.ts";

function refusalOf(path: string): PicoError {
  try {
    ProcessLock.acquire(path).release();
  } catch (error) {
    if (error instanceof PicoError) return error;
    throw error;
  }
  throw new Error("the lock was granted");
}

describe("process lock", () => {
  let folder: TemporaryFolder;
  let path: string;
  beforeEach(async () => {
    folder = await makeTemporaryFolder();
    path = join(folder.path, "lock");
  });
  afterEach(async () => {
    await folder[Symbol.asyncDispose]();
  });

  test("a second holder in this process is refused, until the first releases", () => {
    const lock = ProcessLock.acquire(path);
    expect(refusalOf(path)).toMatchObject({ code: "locked", facts: { holder: process.pid } });
    // The refusal itself must not have loosened it.
    expect(refusalOf(path).code).toBe("locked");
    lock.release();
    lock.release();
    ProcessLock.acquire(path).release();
  });

  test("another process that holds it is named, also while it is paused; its death frees the lock", async () => {
    const holder = await startLockHolder(path);
    try {
      expect(refusalOf(path)).toMatchObject({ code: "locked", facts: { holder: holder.pid, path } });
      holder.pause();
      expect(refusalOf(path)).toMatchObject({ code: "locked", facts: { holder: holder.pid } });
    } finally {
      await holder.kill();
    }
    // The note of the dead holder is still there; the lock is not.
    expect(existsSync(`${path}.holder`)).toBe(true);
    const lock = ProcessLock.acquire(path);
    expect(refusalOf(path)).toMatchObject({ facts: { holder: process.pid } });
    lock.release();
  }, 20_000);

  test("a lock that nobody refers to is held all the same", async () => {
    let lock: ProcessLock | null = ProcessLock.acquire(path);
    const weak = new WeakRef(lock);
    lock = null;
    await Promise.resolve();
    for (let round = 0; round < 3; round++) Bun.gc(true);
    expect(refusalOf(path).code).toBe("locked");
    weak.deref()?.release();
    ProcessLock.acquire(path).release();
  });

  test("a folder that is missing is a failure, not a lock held by others", () => {
    expect(refusalOf(join(folder.path, "absent", "lock")).code).toBe("storage_failed");
  });
});
