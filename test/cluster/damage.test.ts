/**
 * Damaged and foreign files under a real node (FAULTS W8, L2, U2): a named error, the rest served, and
 * never a shorter stream with 200. What cannot be trusted as a whole ends the start with one line and
 * exit code 1.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { closeSync, cpSync, openSync, readSync, rmSync, statSync, truncateSync, writeSync } from "node:fs";
import { basename, join } from "node:path";
import { checksum64 } from "../../src/lib/checksum.ts";
import { eventually } from "./eventually.ts";
import { TestNode } from "./test-node.ts";

const TEST_MS = 60_000;
const RECORDS = 30;
const SQLITE_PAGE_BYTES = 4096;
const record = (number: number) => `${number};`.padEnd(100, ".");
const WHOLE = Array.from({ length: RECORDS }, (_, number) => record(number)).join("");

/**
 * Two streams, each in a data object of its own, then records of `/late` in the WAL alone: copied for each
 * test, since a start changes the files.
 */
let golden: TestNode;
beforeAll(async () => {
  golden = await TestNode.create();
  for (const name of ["/one", "/two"]) {
    await golden.start();
    await fillStream(golden, name);
    expect(await golden.process.stop()).toBe(0);
  }
  await golden.start();
  await fillStream(golden, "/late");
  await golden.process.kill();
}, TEST_MS);
afterAll(() => golden[Symbol.asyncDispose]());

async function fillStream(node: TestNode, name: string): Promise<void> {
  await node.create(name);
  for (let number = 0; number < RECORDS; number++) expect((await node.append(name, record(number))).status).toBe(200);
}

async function copyOfGolden(): Promise<TestNode> {
  const node = await TestNode.create();
  cpSync(golden.dataDirectory, node.dataDirectory, { recursive: true });
  return node;
}

function changeBytes(path: string, at: number, change: (bytes: Buffer) => void, length = 1): void {
  const file = openSync(path, "r+");
  const bytes = Buffer.alloc(length);
  readSync(file, bytes, 0, length, at);
  change(bytes);
  writeSync(file, bytes, 0, length, at);
  closeSync(file);
}

function flipBit(path: string, at: number): void {
  changeBytes(path, at, (bytes) => bytes.writeUInt8(bytes.readUInt8(0) ^ 1));
}

/** Whole, or an error that names what is damaged; anything else is a lie. Returns the names of damaged streams. */
async function damagedStreams(node: TestNode): Promise<string[]> {
  const damaged: string[] = [];
  for (const name of ["/one", "/two", "/late"]) {
    const answer = await node.read(name);
    const overDurableStreams = await node.readDurableStream(`${name}?offset=-1`);
    expect(overDurableStreams.status).toBe(answer.status);
    if (answer.status === 200) {
      expect(answer.body.toString()).toBe(WHOLE);
      expect(overDurableStreams.body.toString()).toBe(WHOLE);
    } else {
      expect(answer.status).toBe(500);
      expect(answer.body.toString()).toContain("picomq/data/");
      damaged.push(name);
    }
  }
  return damaged;
}

/** Places in a data object: magic, block, leaf or top index, filter, tail states, footer. */
const OBJECT_PLACES = [0, 0.02, 0.3, 0.6, 0.9, 0.96, 0.98, 0.99, 0.999];

test.each(OBJECT_PLACES)(
  "a flipped bit %f into a data object: its streams are whole or answer an error that names it, the others are served",
  async (place) => {
    await using node = await copyOfGolden();
    const object = node.files("objects").sort()[0] ?? "";
    flipBit(object, Math.floor(statSync(object).size * place));
    await node.start();
    expect((await damagedStreams(node)).length).toBeLessThanOrEqual(1);
  },
  TEST_MS,
);

test.each(["cut by half", "empty", "missing"])(
  "a data object that is %s: its stream answers an error that names it, takes no append from 0, and the others are served",
  async (damage) => {
    await using node = await copyOfGolden();
    const object = node.files("objects").sort()[0] ?? "";
    if (damage === "missing") rmSync(object);
    else truncateSync(object, damage === "empty" ? 0 : Math.floor(statSync(object).size / 2));
    await node.start();
    const damaged = await damagedStreams(node);
    expect(damaged).toHaveLength(1);
    expect((await node.append(damaged[0] ?? "", "more")).status).toBe(500);
    expect((await node.append("/late", "more")).status).toBe(200);
  },
  TEST_MS,
);

const WAL_DAMAGES: readonly [string, (path: string) => void][] = [
  ["a flipped bit in the head of a frame", (path) => flipBit(path, 4096 + 20)],
  ["a flipped bit in a segment", (path) => flipBit(path, 4096 * 3 + 100)],
  ["a file cut short", (path) => truncateSync(path, 4096 * 4 + 50)],
  ["an empty file", (path) => truncateSync(path, 0)],
  ["a missing file", (path) => rmSync(path)],
];

test.each(WAL_DAMAGES)(
  "WAL, %s below what is known to be durable: the start is refused with the segment's name, and changes no WAL file",
  async (_, damage) => {
    await using node = await copyOfGolden();
    const path = walFile(node);
    damage(path);
    const before = walSizes(node);
    const { exitCode, errors } = await node.refused();
    expect(exitCode).toBe(1);
    expect(errors).toMatch(/^pico: WAL segment \d+ of 1@\d+ in .+\n$/);
    expect(errors).toContain(join(node.dataDirectory, "wal"));
    expect(walSizes(node)).toEqual(before);
  },
  TEST_MS,
);

/** The one of the two lanes that holds the first segment. */
/** The first file of the last life, whatever those before it left. */
function walFile(node: TestNode): string {
  const paths = node.files("wal").filter((file) => file.endsWith("-1.wal"));
  const path = paths.sort((left, right) => epochOf(left) - epochOf(right)).at(-1);
  if (path === undefined) throw new Error("no WAL file");
  return path;
}

/** Of `<node id>-<node epoch>-<file number>.wal`. */
function epochOf(path: string): number {
  return Number(basename(path).split("-")[1]);
}

function walSizes(node: TestNode): string[] {
  return node
    .files("wal")
    .filter((path) => path.endsWith(".wal") || path.endsWith(".end"))
    .map((path) => `${basename(path)} ${statSync(path).size}`);
}

test(
  "a WAL file of a later format: the start is refused with the versions' names",
  async () => {
    await using node = await copyOfGolden();
    const path = walFile(node);
    for (const page of [0, 4096]) {
      changeBytes(
        path,
        page,
        (header) => {
          header.writeUInt16BE(2, 12);
          header.writeBigUInt64BE(checksum64(header.subarray(8)), 0);
        },
        48,
      );
    }
    const { exitCode, errors } = await node.refused();
    expect(exitCode).toBe(1);
    expect(errors).toMatch(/^pico: .*format version 2.*\n$/);
    expect(errors).toContain(basename(path));
  },
  TEST_MS,
);

test(
  "a database of a later schema: the start is refused with the versions' names, before anything is written",
  async () => {
    await using node = await copyOfGolden();
    const { Database } = await import("bun:sqlite");
    const database = new Database(join(node.dataDirectory, "meta.db"));
    database.run("UPDATE pico_schema SET version = version + 1");
    database.close();
    const before = walSizes(node);
    const { exitCode, errors } = await node.refused();
    expect(exitCode).toBe(1);
    expect(errors).toMatch(/^pico: .*version 2.*\n$/);
    expect(walSizes(node)).toEqual(before);
  },
  TEST_MS,
);

test(
  "a page of the database overwritten, each in turn: the start is refused with its path, or serves everything",
  async () => {
    const pages = statSync(join(golden.dataDirectory, "meta.db")).size / SQLITE_PAGE_BYTES;
    expect(pages).toBeGreaterThan(4);
    let refusals = 0;
    for (let page = 1; page < pages; page++) {
      await using node = await copyOfGolden();
      const path = join(node.dataDirectory, "meta.db");
      changeBytes(path, page * SQLITE_PAGE_BYTES, (bytes) => bytes.fill(0xa5), SQLITE_PAGE_BYTES);
      const process = node.spawn();
      const isReady = await Promise.race([
        process.exited.then(() => false),
        process.ready().then(
          () => true,
          () => false,
        ),
      ]);
      if (isReady) {
        expect(await damagedStreams(node)).toEqual([]);
        continue;
      }
      refusals++;
      expect(await process.exited).toMatchObject({ exitCode: 1 });
      expect(process.lastWords()).toContain(path);
    }
    expect(refusals).toBeGreaterThan(0);
  },
  5 * TEST_MS,
);

test.each([5, 100])(
  "a flipped bit at byte %d of the database: the start is refused with its path",
  async (at) => {
    await using node = await copyOfGolden();
    flipBit(join(node.dataDirectory, "meta.db"), at);
    const { exitCode, errors } = await node.refused();
    expect(exitCode).toBe(1);
    expect(errors).toMatch(/^pico: .+\n$/);
    expect(errors).toContain(join(node.dataDirectory, "meta.db"));
  },
  TEST_MS,
);

const DATABASE_LOSSES: readonly [string, (directory: string) => void][] = [
  ["emptied", (directory) => truncateSync(join(directory, "meta.db"), 0)],
  ["removed", (directory) => rmSync(join(directory, "meta.db"))],
  ["without its last commits", () => {}],
];

test.each(DATABASE_LOSSES)(
  "a database that was %s beside objects and a WAL: the start is refused, and deletes nothing",
  async (_, damage) => {
    await using node = await copyOfGolden();
    damage(node.dataDirectory);
    // The log of commits since the last checkpoint belongs to the database.
    for (const suffix of ["-wal", "-shm"]) rmSync(join(node.dataDirectory, `meta.db${suffix}`), { force: true });
    const before = [...walSizes(node), ...node.files("objects")];
    const { exitCode, errors } = await node.refused();
    expect(exitCode).toBe(1);
    expect(errors).toMatch(/^pico: .+\n$/);
    expect(errors).toContain(node.dataDirectory);
    expect([...walSizes(node), ...node.files("objects")]).toEqual(before);
  },
  TEST_MS,
);

test(
  "damage that appears while the node runs is met by reads alone: what it never needs is never missed",
  async () => {
    await using node = await copyOfGolden();
    await node.start();
    // From here on its tail state is in memory, whichever object is hit.
    expect((await node.read("/late", "&seq=now")).status).toBe(200);
    const object = node.files("objects").sort()[0] ?? "";
    truncateSync(object, 0);
    await eventually("every stream is whole or damaged", async () => (await damagedStreams(node)).length <= 1);
    expect((await node.append("/late", "more")).status).toBe(200);
    expect((await node.admin("/ready")).status).toBe(200);
  },
  TEST_MS,
);
