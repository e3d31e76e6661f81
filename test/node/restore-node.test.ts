import { expect, test } from "bun:test";
import { existsSync, writeFileSync } from "node:fs";
import fs from "node:fs/promises";
import { systemClock } from "../../src/lib/clock.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { type RestoreNodeOptions, restoreNode } from "../../src/node/restore-node.ts";
import { FileObjectStore } from "../../src/storage/file-object-store.ts";
import { CLUSTER, MirrorFixture } from "../mirror/mirror-fixture.ts";
import { startLockHolder } from "../storage/lock-holder.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { codeOf } from "../support/code-of.ts";
import { HastyClock } from "../support/hasty-clock.ts";
import { useTestCredentials } from "../support/minio.ts";
import { silentLog } from "../support/silent-log.ts";

test("a restore from an endpoint where nobody answers ends, and names it", async () => {
  const restore = useTestCredentials();
  await using temporary = await makeTemporaryFolder();
  const folder = temporary.path;
  // Nobody listens on the first port.
  const place = {
    bucket: "b2b",
    prefix: "",
    region: null,
    endpoint: "http://127.0.0.1:1",
    isPathStyle: null,
    isExpress: false,
    encryption: null,
  };
  const parameters = { lingerMs: 0, batchBytesMax: 1, inFlightMax: 1, backlogBytesMax: 1 };
  const places = {
    clusterId: "c",
    dataDirectory: folder,
    metadata: { kind: "sqlite-file", path: `${folder}/meta.db` },
    storage: { kind: "s3", id: -2, place },
    wal: { kind: "s3", id: -2, place, parameters },
  } as const;
  const clock = new HastyClock({ haste: 600 });
  const options = { places, nodeId: 1, isForced: false, clock, random: systemRandom, log: silentLog, onProgress: () => undefined };
  const error = await restoreNode(options).catch((thrown: unknown) => thrown);
  expect(String(error)).toContain("s3://b2b at http://127.0.0.1:1 cannot be used");
  restore();
}, 60_000);

/** A folder with the mirror of a small cluster, and a place for its database. */
async function mirroredFolder(folder: string): Promise<RestoreNodeOptions> {
  const fixture = new MirrorFixture();
  fixture.addStreams(20);
  await fixture.mirror().cover(fixture.head);
  const directory = `${folder}/objects`;
  const store = await FileObjectStore.open({ path: directory, clock: systemClock, random: systemRandom });
  for (const key of await fixture.store.keys()) await store.create(key, (await fixture.store.inner.read(key)) ?? new Uint8Array());
  await store.close();
  const parameters = { lingerMs: 0, batchBytesMax: 1, inFlightMax: 1, backlogBytesMax: 1 };
  const places = {
    clusterId: CLUSTER,
    dataDirectory: folder,
    metadata: { kind: "sqlite-file", path: `${folder}/meta.db` },
    storage: { kind: "file", id: -2, directory },
    // Nothing of the WAL is left, and nothing of it locks the place.
    wal: { kind: "memory", id: -2, label: "", parameters },
  } as const;
  const silent = { log: silentLog, onProgress: () => undefined };
  return { places, nodeId: 1, isForced: true, clock: systemClock, random: systemRandom, ...silent };
}

test("of two restores to one place at once one makes the database, and the other is refused", async () => {
  await using temporary = await makeTemporaryFolder();
  const options = await mirroredFolder(temporary.path);
  const ends = await Promise.allSettled([restoreNode(options), restoreNode(options)]);
  expect(ends.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const refused = ends.find((end) => end.status === "rejected");
  expect(isPicoError(refused?.reason, "locked")).toBeTrue();
  expect(refused?.reason.message).toContain(`process ${process.pid} is restoring to ${temporary.path}/meta.db`);
  const left = (await fs.readdir(temporary.path)).filter((name) => name.startsWith("meta.db"));
  expect(left).toEqual(["meta.db"]);
});

test("what a killed restore left does not keep the next one from the place", async () => {
  await using temporary = await makeTemporaryFolder();
  const options = await mirroredFolder(temporary.path);
  const path = `${temporary.path}/meta.db`;
  const killed = await startLockHolder(`${path}.unfinished-lock`);
  await Bun.write(`${path}.unfinished`, "half a database");
  const refused = await restoreNode(options).catch((thrown: unknown) => thrown);
  expect(isPicoError(refused, "locked")).toBeTrue();
  expect(String(refused)).toContain(`process ${killed.pid} is restoring`);
  expect(await Bun.file(`${path}.unfinished`).text()).toBe("half a database");
  await killed.kill();
  expect((await restoreNode(options)).streams).toBe(20);
  expect(existsSync(path)).toBeTrue();
});

test("an empty file is no database, and what is left of one is: its log, or one that came meanwhile", async () => {
  await using temporary = await makeTemporaryFolder();
  const options = await mirroredFolder(temporary.path);
  const path = `${temporary.path}/meta.db`;
  await Bun.write(`${path}-wal`, "the log of a database");
  expect(await codeOf(() => restoreNode(options))).toBe("settings");
  await fs.rm(`${path}-wal`);
  // A restore that refuses leaves nothing behind.
  expect((await fs.readdir(temporary.path)).filter((name) => name.startsWith("meta.db"))).toEqual([]);
  const meanwhile = () => writeFileSync(path, "another database");
  await restoreNode({ ...options, onProgress: ({ step }) => step === "mirror" && meanwhile() }).then(
    () => expect.unreachable(),
    () => {},
  );
  expect(await Bun.file(path).text()).toBe("another database");
  await Bun.write(path, "");
  expect((await restoreNode(options)).streams).toBe(20);
});
