/**
 * A full disk under the real process (FAULTS W10): appends are refused for now, reads go on, nothing
 * acknowledged is lost, and once there is room appends go on without a restart. A start on a full disk
 * serves reads and becomes ready when space returns.
 */
import { afterAll, expect, test } from "bun:test";
import { closeSync, openSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { mountSmallDisk, type SmallDisk } from "../storage/small-disk.ts";
import { eventually } from "./eventually.ts";
import type { HttpAnswer } from "./http-connection.ts";
import { TestNode } from "./test-node.ts";

const TEST_MS = 90_000;
const MIB = 1024 * 1024;
/** A disk for everything: room for the metadata, some objects, and the WAL with two full-size files. */
const WHOLE_DISK_KIB = 200 * 1024;
const SMALL_DISK_KIB = 16 * 1024;

const probe = await mountSmallDisk(64);
const reasonToSkip = typeof probe === "string" ? probe : null;
afterAll(async () => {
  if (typeof probe !== "string") await probe[Symbol.asyncDispose]();
});
const title = (text: string) => (reasonToSkip === null ? text : `${text} (skipped: ${reasonToSkip})`);

async function mount(sizeKib: number): Promise<SmallDisk> {
  const disk = await mountSmallDisk(sizeKib);
  if (typeof disk === "string") throw new Error(disk);
  return disk;
}

/** Takes all the room that is left on the disk; `free` gives it back. */
function fill(disk: SmallDisk): { free(): void } {
  const path = join(disk.path, "filler");
  const file = openSync(path, "w");
  for (let size = MIB; size >= 1; size = Math.floor(size / 16)) {
    try {
      for (;;) if (writeSync(file, Buffer.alloc(size)) < size) break;
    } catch {
      // No room for this much; smaller pieces may fit.
    }
  }
  closeSync(file);
  return { free: () => rmSync(path) };
}

interface Entry {
  readonly body: string;
  /** Answered that its outcome is open: it may be there. */
  readonly isOpen: boolean;
}

/** A stream of one writer, and what it was told. */
class Journal {
  readonly #node: TestNode;
  readonly #name: string;
  readonly #entries: Entry[] = [];
  #number = 0;

  constructor(node: TestNode, name: string) {
    this.#node = node;
    this.#name = name;
  }

  async append(length: number): Promise<HttpAnswer> {
    const body = `${this.#number++}:`.padEnd(length, "x");
    const answer = await this.#node.append(this.#name, body);
    if (answer.status !== 503) this.#entries.push({ body, isOpen: answer.status !== 200 });
    return answer;
  }

  /**
   * Appends until one is refused for now. The append that meets the full disk first may be told instead
   * that its outcome is open: the log keeps trying it.
   */
  async appendUntilRefused(length: number, bytesMax: number): Promise<HttpAnswer> {
    for (let appended = 0; appended < bytesMax; appended += length) {
      const answer = await this.append(length);
      if (answer.status === 500) expect(JSON.parse(answer.body.toString())).toMatchObject({ error: "durability" });
      else if (answer.status !== 200) return answer;
    }
    throw new Error(`${bytesMax} bytes were appended without a refusal`);
  }

  /** Appends again and again until one is taken. */
  async appendUntilTaken(length: number): Promise<void> {
    await eventually("an append is taken again", async () => (await this.append(length)).status === 200);
  }

  /** Everything acknowledged is read, once and in order, and nothing that was refused. */
  async verify(): Promise<void> {
    const rest = [...this.#entries];
    for (const body of await this.#readAll()) {
      while (rest[0]?.isOpen === true && rest[0].body !== body) rest.shift();
      expect(body.slice(0, 20)).toBe(rest.shift()?.body.slice(0, 20) ?? "nothing");
    }
    expect(rest.filter(({ isOpen }) => !isOpen)).toHaveLength(0);
  }

  async #readAll(): Promise<string[]> {
    const bodies: string[] = [];
    for (let from = 0; ; ) {
      const page = await this.#node.send({ method: "GET", path: `${this.#name}?bytes=4000000&seq=${from}` });
      expect(page.status).toBe(200);
      for (const { body } of JSON.parse(page.body.toString()) as { body: string }[]) bodies.push(body);
      from = Number(page.headers.get("pico-next-seq"));
      if (page.headers.get("pico-up-to-date") === "true") return bodies;
    }
  }
}

function expectRefusedForNow(answer: HttpAnswer): void {
  expect({ status: answer.status, hasRetryAfter: answer.headers.has("retry-after") }).toEqual({ status: 503, hasRetryAfter: true });
}

test.skipIf(reasonToSkip !== null).each([
  ["uploads are far", []],
  ["an upload waits for the WAL", ["--wal-upload-interval-ms", "200"]],
] as const)(
  title("everything on one full disk, %s: appends are refused for now, reads go on, and appends go on when there is room"),
  async (_, flags) => {
    await using disk = await mount(WHOLE_DISK_KIB);
    await using node = await TestNode.create(join(disk.path, "data"));
    await node.start(...flags);
    await node.create("/journal");
    const journal = new Journal(node, "/journal");
    for (let i = 0; i < 5; i++) await journal.append(1000);

    const filler = fill(disk);
    expectRefusedForNow(await journal.appendUntilRefused(256 * 1024, 150 * MIB));
    await journal.verify();
    filler.free();
    await journal.appendUntilTaken(1000);
    await journal.verify();
    await node.restart();
    await journal.verify();
    expect(await node.process.stop()).toBe(0);
  },
  TEST_MS,
);

test.skipIf(reasonToSkip !== null)(
  title("a full disk under the WAL alone: the same"),
  async () => {
    await using disk = await mount(WHOLE_DISK_KIB);
    await using node = await TestNode.create();
    await node.start(`--wal=-3@file://${join(disk.path, "wal")}`);
    await node.create("/journal");
    const journal = new Journal(node, "/journal");
    const filler = fill(disk);
    expectRefusedForNow(await journal.appendUntilRefused(256 * 1024, 150 * MIB));
    await journal.verify();
    filler.free();
    await journal.appendUntilTaken(1000);
    await journal.verify();
  },
  TEST_MS,
);

test.skipIf(reasonToSkip !== null)(
  title("a full disk under the objects alone: appends go on until the backlog is full, and again after an upload"),
  async () => {
    await using disk = await mount(SMALL_DISK_KIB);
    await using node = await TestNode.create();
    const wal = `-3@file://${join(node.folder, "wal")}?maxUnflushedBytes=${4 * MIB}`;
    await node.start(`--wal=${wal}`, `--storage=-2@file://${join(disk.path, "objects")}`, "--wal-upload-threshold", String(MIB));
    await node.create("/journal");
    const journal = new Journal(node, "/journal");
    await journal.append(1000);
    const filler = fill(disk);
    expectRefusedForNow(await journal.appendUntilRefused(64 * 1024, 16 * MIB));
    await journal.verify();
    filler.free();
    await journal.appendUntilTaken(64 * 1024);
    await journal.verify();
  },
  TEST_MS,
);

test.skipIf(reasonToSkip !== null)(
  title("a full disk under the metadata alone: appends go on, creates are refused for now and go on when there is room"),
  async () => {
    await using disk = await mount(SMALL_DISK_KIB);
    await using node = await TestNode.create();
    await node.start("--meta-url", `sqlite:${join(disk.path, "meta.db")}`);
    await node.create("/journal");
    const journal = new Journal(node, "/journal");
    const filler = fill(disk);
    const create = (number: number) => node.send({ method: "PUT", path: `/more/${number}`.padEnd(900, "x") });
    let created = 0;
    let refusal = await create(created);
    for (; refusal.status === 201; refusal = await create(created)) created += 1;
    expectRefusedForNow(refusal);
    expect((await journal.append(1000)).status).toBe(200);
    await journal.verify();
    filler.free();
    await eventually("a create is taken again", async () => (await create(created)).status === 201);
    await journal.append(1000);
    await node.restart("--meta-url", `sqlite:${join(disk.path, "meta.db")}`);
    await journal.verify();
  },
  TEST_MS,
);

test.skipIf(reasonToSkip !== null)(
  title("a start that waits for room on a full disk is ended by SIGTERM with exit code 0, long before the stop time-out"),
  async () => {
    await using disk = await mount(WHOLE_DISK_KIB);
    await using node = await TestNode.create(join(disk.path, "data"));
    await node.start();
    await node.create("/journal");
    const journal = new Journal(node, "/journal");
    for (let i = 0; i < 20; i++) await journal.append(10_000);
    await node.process.kill();
    const filler = fill(disk);
    const process = node.spawn("--stop-timeout-sec", "1000");
    await eventually("reads are served", async () => (await node.tryRead("/journal"))?.status === 200);
    expect(await process.stop()).toBe(0);
    filler.free();
    await node.start();
    await journal.verify();
  },
  TEST_MS,
);

test.skipIf(reasonToSkip !== null).each(["everything", "the WAL alone"])(
  title("a start on a full disk under %s serves reads, is not ready, and becomes ready when there is room"),
  async (what) => {
    await using disk = await mount(WHOLE_DISK_KIB);
    const isAll = what === "everything";
    await using node = await TestNode.create(isAll ? join(disk.path, "data") : undefined);
    const flags = isAll ? [] : [`--wal=-3@file://${join(disk.path, "wal")}`];
    await node.start(...flags);
    await node.create("/journal");
    const journal = new Journal(node, "/journal");
    for (let i = 0; i < 20; i++) await journal.append(10_000);
    await node.process.kill();

    const filler = fill(disk);
    const process = node.spawn(...flags);
    await eventually("reads are served", async () => (await node.tryRead("/journal"))?.status === 200);
    await journal.verify();
    expectRefusedForNow(await journal.append(1000));
    expect((await node.admin("/ready")).status).toBe(503);
    expect((await node.admin("/health")).status).toBe(200);
    filler.free();
    await process.ready();
    await journal.appendUntilTaken(1000);
    await journal.verify();
    expect(await process.stop()).toBe(0);
  },
  TEST_MS,
);
