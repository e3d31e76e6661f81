import { Database } from "bun:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { cp, mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import type { BatchInsert } from "../../src/sql/sql-store.ts";
import { SQLITE_MEMORY_PATH } from "../../src/sql/sqlite-database.ts";
import { SqliteStore } from "../../src/sql/sqlite-store.ts";
import { mountSmallDisk } from "../storage/small-disk.ts";
import { makeTemporaryFolder, type TemporaryFolder } from "../storage/temporary-folder.ts";

const identity = "b".repeat(32);
const node1 = { nodeId: 1, nodeEpoch: 100 };

function batchOf(batch: number, payloadBytes = 10): BatchInsert {
  return { rowId: String(batch).padStart(32, "0"), proposer: node1, batch, payload: new Uint8Array(payloadBytes), fences: [] };
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return isPicoError(error) ? error.code : `not a PicoError: ${String(error)}`;
  }
  return "resolved";
}

/** Another process that holds the write lock of the file, as far as the store can tell. */
function lockFile(path: string): { release: () => void } {
  const database = new Database(path);
  database.run("BEGIN IMMEDIATE");
  return {
    release: () => {
      database.run("ROLLBACK");
      database.close();
    },
  };
}

describe("SQLite store in trouble", () => {
  let folder: TemporaryFolder;
  let path: string;
  const RealWorker = globalThis.Worker;
  const workers: Worker[] = [];
  beforeEach(async () => {
    folder = await makeTemporaryFolder();
    path = join(folder.path, "meta.db");
    globalThis.Worker = class extends RealWorker {
      constructor(...parameters: ConstructorParameters<typeof RealWorker>) {
        super(...parameters);
        workers.push(this);
      }
    };
  });
  afterEach(async () => {
    globalThis.Worker = RealWorker;
    workers.length = 0;
    await folder[Symbol.asyncDispose]();
  });

  test("while another process holds the file a write fails as busy, the loop runs on, and later writes succeed", async () => {
    await using store = disposable(new SqliteStore({ path, clock: systemClock }));
    await store.open(identity);
    const lock = lockFile(path);
    let ticks = 0;
    const ticking = setInterval(() => {
      ticks += 1;
    }, 5);
    expect(await codeOf(store.insertBatch(batchOf(0)))).toBe("database_failed");
    clearInterval(ticking);
    expect(ticks).toBeGreaterThan(2);
    expect((await store.readLog(0, 10)).head).toBe(0);
    lock.release();
    expect(await store.insertBatch(batchOf(0))).toMatchObject({ inserted: true, index: 1 });
  }, 20_000);

  test("a write whose thread dies has an unknown outcome, a read fails, and the next call gets a new thread", async () => {
    await using store = disposable(new SqliteStore({ path, clock: systemClock }));
    await store.open(identity);
    const lock = lockFile(path);
    const write = codeOf(store.insertBatch(batchOf(0)));
    const read = codeOf(store.readLog(0, 10));
    // Both are under way when the thread is told to end.
    await Promise.resolve();
    workers[0]?.terminate();
    expect(await write).toBe("unknown_outcome");
    expect(await read).toBe("database_failed");
    lock.release();
    const repeated = await store.insertBatch(batchOf(0));
    expect(repeated.inserted || repeated.reason === "exists").toBe(true);
    expect((await store.readLog(0, 10)).head).toBe(1);
    expect(workers).toHaveLength(2);
  }, 20_000);

  test("a database in memory is lost with its thread, and no empty one takes its place", async () => {
    await using store = disposable(new SqliteStore({ path: SQLITE_MEMORY_PATH, clock: systemClock }));
    await store.open(identity);
    await store.insertBatch(batchOf(0));
    const isGone = new Promise<void>((resolve) => workers[0]?.addEventListener("close", () => resolve()));
    workers[0]?.terminate();
    await isGone;
    expect(await codeOf(store.readLog(0, 10))).toBe("database_failed");
    expect(await codeOf(store.insertBatch(batchOf(1)))).toBe("database_failed");
  });

  test("a call without an answer ends at its deadline, and its late answer disturbs nobody", async () => {
    let expire: (() => void)[] = [];
    const clock: Clock = {
      ...systemClock,
      schedule: (_delayMs, run) => {
        expire.push(run);
        return { cancel: () => {} };
      },
    };
    await using store = disposable(new SqliteStore({ path, clock }));
    await store.open(identity);
    expire = [];
    const lock = lockFile(path);
    const write = codeOf(store.insertBatch(batchOf(0)));
    const read = codeOf(store.rowIdAt(1));
    await Promise.resolve();
    for (const run of expire) run();
    expect(await write).toBe("unknown_outcome");
    expect(await read).toBe("database_failed");
    lock.release();
    const repeated = await store.insertBatch(batchOf(0));
    expect(repeated.inserted || repeated.reason === "exists").toBe(true);
  }, 20_000);

  test("a file that is no database fails the open by name, each time", async () => {
    await writeFile(path, "this is not a database, though it is long enough to be read as one ".repeat(100));
    await using store = disposable(new SqliteStore({ path, clock: systemClock }));
    expect(await codeOf(store.open(identity))).toBe("corrupt");
    expect(await codeOf(store.open(identity))).toBe("corrupt");
    await rm(path);
    expect(await store.open(identity)).toEqual({ clusterIdentity: identity });
  });

  test("what was inserted is there for the next process", async () => {
    {
      await using store = disposable(new SqliteStore({ path, clock: systemClock }));
      await store.open(identity);
      await store.insertBatch(batchOf(0));
    }
    await using store = disposable(new SqliteStore({ path, clock: systemClock }));
    expect(await store.open("c".repeat(32))).toEqual({ clusterIdentity: identity });
    expect((await store.readLog(0, 10)).rows).toHaveLength(1);
  });

  test("processes that make and fill one file together get dense indexes, each once", async () => {
    const program = join(import.meta.dir, "sqlite-inserting-process.ts");
    const indexes = await Promise.all(
      ["1", "2", "3"].map(async (nodeId) => {
        const child = Bun.spawn([process.execPath, program, path, nodeId, "50"], { stdout: "pipe", stderr: "inherit" });
        return JSON.parse(await new Response(child.stdout).text()) as number[];
      }),
    );
    expect(indexes.flat().sort((left, right) => left - right)).toEqual(Array.from({ length: 150 }, (_, i) => i + 1));
  }, 60_000);

  test("a full disk refuses inserts whole and answers reads; with space again inserts succeed", async () => {
    const disk = await mountSmallDisk(2048);
    if (typeof disk === "string") return void console.log(`skipped: ${disk}`);
    await using _ = disk;
    await using store = disposable(new SqliteStore({ path: join(disk.path, "meta.db"), clock: systemClock }));
    await store.open(identity);
    const filler = join(disk.path, "filler");
    await writeFile(filler, new Uint8Array(1024 * 1024));
    let batch = 0;
    let code = "resolved";
    for (; code === "resolved"; batch++) code = await codeOf(store.insertBatch(batchOf(batch, 100_000)));
    const stored = batch - 1;
    expect(code).toBe("storage_full");
    expect((await store.readLog(0, 1000)).rows).toHaveLength(stored);
    await rm(filler);
    expect(await store.insertBatch(batchOf(stored, 100_000))).toMatchObject({ inserted: true, index: stored + 1 });
  }, 30_000);

  test("the worker is found in a compiled executable, started from another folder", async () => {
    const root = join(folder.path, "src");
    await mkdir(join(root, "cli"), { recursive: true });
    for (const part of ["lib", "sql"]) await cp(join(import.meta.dir, "../../src", part), join(root, part), { recursive: true });
    await writeFile(join(root, "cli/main.ts"), probeProgram);
    const executable = join(folder.path, "probe");
    const entries = [join(root, "cli/main.ts"), join(root, "sql/sqlite-worker.ts")];
    const build = Bun.spawn([process.execPath, "build", "--compile", ...entries, "--outfile", executable], {
      stdout: "ignore",
      stderr: "pipe",
    });
    const complaint = await new Response(build.stderr).text();
    expect(`${await build.exited} ${complaint}`).toStartWith("0");
    const probe = Bun.spawn([executable, path], { cwd: "/", stdout: "pipe", stderr: "inherit" });
    expect((await new Response(probe.stdout).text()).trim()).toBe("inserted 1");
    expect(await probe.exited).toBe(0);
  }, 60_000);
});

/** The main entry of the compiled program: one insert, told on standard output. */
const probeProgram = `
import { systemClock } from "../lib/clock.ts";
import { SqliteStore } from "../sql/sqlite-store.ts";
const store = new SqliteStore({ path: process.argv[2] ?? "", clock: systemClock });
await store.open("${identity}");
const outcome = await store.insertBatch({
  rowId: "0".repeat(32), proposer: { nodeId: 1, nodeEpoch: 1 }, batch: 0, payload: new Uint8Array(3), fences: [],
});
console.log(outcome.inserted ? "inserted " + outcome.index : "refused");
await store.close();
`;

function disposable(store: SqliteStore): SqliteStore & AsyncDisposable {
  return Object.assign(store, { [Symbol.asyncDispose]: () => store.close() });
}
