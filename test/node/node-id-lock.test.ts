import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { NODE_ID_LOCK_RETRY_MS } from "../../src/lib/limits.ts";
import { NodeIdLock } from "../../src/node/node-id-lock.ts";
import { NodeLocalDirectory } from "../../src/storage/local-directory-node.ts";
import { codeOf } from "../support/code-of.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { silentLog } from "../support/silent-log.ts";

describe("the lock of a node id", () => {
  let folder: string;
  const clock = new ManualClock();
  const take = (canGoWithout: boolean) =>
    NodeIdLock.take({ directory: new NodeLocalDirectory(join(folder, "1")), clock, log: silentLog, canGoWithout });

  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "pico-id-lock-"));
  });

  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  test("a second process is refused where it cannot go without", async () => {
    const first = await take(false);
    expect(first.isHeld).toBe(true);
    expect(await codeOf(() => take(false))).toBe("locked");
    await first.close();
    const second = await take(false);
    expect(second.isHeld).toBe(true);
    await second.close();
  });

  test("a process that went on without it takes it once it is free, and keeps a third one out", async () => {
    const first = await take(true);
    const second = await take(true);
    expect(second.isHeld).toBe(false);
    await clock.advance(5 * NODE_ID_LOCK_RETRY_MS);
    expect(second.isHeld).toBe(false);
    await first.close();
    await untilHeld(second);
    expect(await codeOf(() => take(false))).toBe("locked");
    await second.close();
    expect(clock.timerCount).toBe(0);
  });

  test("it proves the death of lives that held it, and of no other", async () => {
    const first = await take(true);
    await first.noteLife(100);
    const second = await take(true);
    await second.noteLife(200);
    // The first ends, and a third comes before the second takes the lock.
    await first.close();
    const third = await take(true);
    expect([third.isHeld, third.provesDeathOf(100), third.provesDeathOf(200)]).toEqual([true, true, false]);
    await third.close();
    await untilHeld(second);
    await second.close();
    const fourth = await take(true);
    expect([fourth.provesDeathOf(100), fourth.provesDeathOf(200)]).toEqual([false, true]);
    await fourth.close();
  });

  /** Locking is real work of the file system, which the manual clock does not wait for. */
  async function untilHeld(lock: NodeIdLock): Promise<void> {
    for (let looks = 0; looks < 200 && !lock.isHeld; looks++) {
      await clock.advance(NODE_ID_LOCK_RETRY_MS);
      await Bun.sleep(5);
    }
    expect(lock.isHeld).toBe(true);
  }
});
