import { expect, test } from "bun:test";
import { LocalDiskWal } from "../../src/engine/wal-store-local.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { WalSource } from "../../src/node/backup-wal.ts";
import { NodeLocalDirectory } from "../../src/storage/local-directory-node.ts";
import { OWNER, segmentBytes } from "../engine/wal-fixtures.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";

/** A folder with segments 1 and 3, of which the later says that all up to `durableNumber` was durable. */
async function writeSegments(path: string, durableNumber: number): Promise<LocalDiskWal> {
  const wal = await LocalDiskWal.open({ directory: new NodeLocalDirectory(path), random: systemRandom });
  await wal.begin(OWNER);
  await wal.create(OWNER, 1, segmentBytes(1, "one"));
  await wal.create(OWNER, 3, segmentBytes(3, "three", { durableNumber }));
  return wal;
}

test("a segment that is not there is a loss where a later one says that it was durable, and else the end", async () => {
  for (const [durableNumber, isLost] of [
    [1, false],
    [2, true],
  ] as const) {
    await using folder = await makeTemporaryFolder();
    const path = `${folder.path}/wal`;
    await (await writeSegments(path, durableNumber)).close();
    const source = await WalSource.open(path, OWNER, 0, systemRandom);
    expect(await source.read(1)).not.toBeNull();
    expect(await source.read(2)).toBeNull();
    const trouble = await source.troubleAt(2);
    expect(trouble?.code ?? null).toBe(isLost ? "corrupt" : null);
    await source.close();
  }
});

test("a segment that was written while the files were read is no loss: the copy ends before it", async () => {
  await using folder = await makeTemporaryFolder();
  const path = `${folder.path}/wal`;
  const wal = await writeSegments(path, 2);
  const source = await WalSource.open(path, OWNER, 0, systemRandom);
  await wal.create(OWNER, 2, segmentBytes(2, "two"));
  expect(await source.read(2)).toBeNull();
  expect(await source.troubleAt(2)).toBeNull();
  await source.close();
  await wal.close();
});
