import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import fs from "node:fs/promises";
import { FlagValues } from "../../src/cli/flag-values.ts";
import { readServeSettings } from "../../src/cli/serve-settings.ts";
import { markerKey } from "../../src/engine/store-marker.ts";
import { formatWalFileName } from "../../src/engine/wal-file.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { isPicoError, PicoError } from "../../src/lib/errors.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { logKey } from "../../src/mirror/mirror-object.ts";
import { examine } from "../../src/node/doctor.ts";
import { assertDatabaseNotMissing } from "../../src/node/missing-database.ts";
import { openParts } from "../../src/node/node-parts.ts";
import { FileObjectStore } from "../../src/storage/file-object-store.ts";
import { MemoryObjectStore } from "../../src/storage/memory-object-store.ts";
import { isUnwritten } from "../../src/storage/path-facts.ts";
import { MemoryWal } from "../engine/wal-fixtures.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { codeOf } from "../support/code-of.ts";
import { HastyClock } from "../support/hasty-clock.ts";
import { silentLog } from "../support/silent-log.ts";

const DATA_KEY = "picomq/data/0000000000000001/1";
const LOG_KEY = logKey("picomq", 1);
const WAL_FILE = formatWalFileName({ kind: "frames", registration: { nodeId: 1, nodeEpoch: 5 }, fileNumber: 1 });

function settingsOf(folder: string, given: Record<string, string> = {}) {
  const ports = { "--listen": "127.0.0.1:0", "--ds-listen": "127.0.0.1:0", "--admin-listen": "127.0.0.1:0" };
  const flags = new Map(Object.entries({ ...ports, "--data-dir": folder, ...given }).map(([flag, text]) => [flag, [text]]));
  return readServeSettings(new FlagValues(flags, {}), "/nowhere");
}

/** Opens what a start opens, up to the database. */
async function open(folder: string, given: Record<string, string>): Promise<void> {
  const parts = await openParts(settingsOf(folder, given), silentLog, new AbortController().signal);
  await parts.sql.open("test");
  await parts.close();
}

async function databaseFinding(folder: string, given: Record<string, string>) {
  for await (const finding of examine(settingsOf(folder, given), systemClock)) if (finding.what === "database") return finding;
  return null;
}

async function put(folder: string, keys: readonly string[]): Promise<void> {
  const store = await FileObjectStore.open({ path: `${folder}/objects`, clock: systemClock, random: systemRandom });
  for (const key of keys) expect(await store.create(key, Uint8Array.of(1))).toBe("created");
  await store.close();
}

const MIRROR_ON = { "--mirror": "on" };

test.each([
  ["nothing", [], null, {}, null],
  ["another cluster's objects", ["other/data/0000000000000001/1"], null, {}, null],
  ["a data object", [DATA_KEY], null, {}, /objects holds picomq\/data\/.+restore a backup/],
  ["a marker", [markerKey("picomq", 7)], null, {}, /objects holds picomq\/marker\/.+restore a backup/],
  ["a mirror, and a log that is not mirrored", [LOG_KEY], null, {}, null],
  ["a mirror alone", [LOG_KEY], null, MIRROR_ON, /objects holds picomq\/mirror\/.+pico restore with the same flags/],
  ["a mirror and a data object", [LOG_KEY, DATA_KEY], null, MIRROR_ON, /objects holds picomq\/data\/.+pico restore with the same flags/],
  ["a file of a WAL", [], WAL_FILE, {}, /local disk at .+\/wal holds the WAL of registration 1@5.+restore a backup/],
] as const)("beside %s: a start makes a database or leaves none, and doctor says which", async (_, keys, walFile, flags, refusal) => {
  await using temporary = await makeTemporaryFolder();
  const folder = temporary.path;
  await put(folder, keys);
  await fs.mkdir(`${folder}/wal`);
  if (walFile !== null) await Bun.write(`${folder}/wal/${walFile}`, "x");
  for (const isEmptyFile of [false, true]) {
    const before = await databaseFinding(folder, flags);
    if (refusal === null) {
      expect(before).toMatchObject({ level: "ok", detail: expect.stringContaining("not there yet") });
      await open(folder, flags);
      expect((await fs.stat(`${folder}/meta.db`)).size).toBeGreaterThan(0);
      await fs.rm(`${folder}/meta.db`);
    } else {
      expect(before).toMatchObject({ level: "fail", detail: expect.stringMatching(refusal) });
      const error = await open(folder, flags).catch((thrown: unknown) => thrown);
      expect(isPicoError(error, "corrupt")).toBeTrue();
      expect(String(error)).toMatch(refusal);
      expect(existsSync(`${folder}/meta.db`)).toBe(isEmptyFile);
    }
    await Bun.write(`${folder}/meta.db`, "");
  }
});

test("an empty database that is there beside a full store fails too, and is to be moved away", async () => {
  await using temporary = await makeTemporaryFolder();
  const folder = temporary.path;
  await open(folder, {});
  expect(await databaseFinding(folder, {})).toMatchObject({ level: "ok" });
  await put(folder, [DATA_KEY]);
  expect(await databaseFinding(folder, {})).toMatchObject({
    level: "fail",
    detail: expect.stringMatching(/meta\.db is empty, and .+ holds picomq\/data.+Move the empty one away/),
  });
});

/** A store of one data object, whose lists first do what `before` does. */
function storeWith(before: () => Promise<void> | void) {
  const store = new MemoryObjectStore(systemClock);
  const list = store.list.bind(store);
  store.list = async (...words) => {
    await before();
    return list(...words);
  };
  return store;
}

async function verdict(path: string, store: MemoryObjectStore, stopping = new AbortController().signal): Promise<string | null> {
  await store.create(DATA_KEY, Uint8Array.of(1));
  const stores = { store, wal: new MemoryWal(), clusterId: "picomq", isMirrored: true };
  const seams = { clock: new HastyClock(), random: systemRandom, log: silentLog, stopping };
  return codeOf(() =>
    assertDatabaseNotMissing({ lack: `there is no database at ${path}`, isMissing: () => isUnwritten(path) }, stores, seams),
  );
}

test("a store that is away is waited for, until a stop", async () => {
  await using temporary = await makeTemporaryFolder();
  const path = `${temporary.path}/meta.db`;
  let failures = 3;
  const away = () => {
    if (failures-- > 0) throw new PicoError("storage_failed", "away");
  };
  expect(await verdict(path, storeWith(away))).toBe("corrupt");
  const stopping = new AbortController();
  const forGood = () => {
    stopping.abort();
    throw new PicoError("storage_failed", "away");
  };
  expect(await verdict(path, storeWith(forGood), stopping.signal)).toBe("unavailable");
});

test("a database that another process makes meanwhile is not missing, nor is one that is there asked about", async () => {
  await using temporary = await makeTemporaryFolder();
  const path = `${temporary.path}/meta.db`;
  expect(
    await verdict(
      path,
      storeWith(() => Bun.write(path, "x").then(() => {})),
    ),
  ).toBeNull();
  const refuse = () => {
    throw new Error("asked");
  };
  expect(await verdict(path, storeWith(refuse))).toBeNull();
});
