/** What meets a real process from outside: its twin, its ports, its folders, its signals, its clients' ends. */
import { afterAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { mountSmallDisk } from "../storage/small-disk.ts";
import { eventually } from "./eventually.ts";
import { HttpConnection } from "./http-connection.ts";
import { freePorts } from "./node-process.ts";
import { TestNode } from "./test-node.ts";

const TEST_MS = 60_000;
/** Longer than the failover limit and than a lease. */
const PAUSE_MS = 11_000;

const probe = await mountSmallDisk(64);
const readOnlyDisk = typeof probe === "string" ? null : probe;
afterAll(async () => {
  if (readOnlyDisk === null) return;
  await Bun.spawn(["mount", "-o", "remount,rw", readOnlyDisk.path]).exited;
  await readOnlyDisk[Symbol.asyncDispose]();
});

test(
  "a second process on one data directory is refused with the directory and the first one's id, which goes on",
  async () => {
    await using node = await TestNode.create();
    await node.start();
    await node.create("/s");
    const refusal = await node.refused({ ports: await freePorts() });
    expect(refusal.exitCode).toBe(1);
    expect(refusal.errors).toMatch(/^pico: .+\n$/);
    expect(refusal.errors).toContain(node.dataDirectory);
    expect(refusal.errors).toContain(`process ${node.process.pid} `);
    expect((await node.append("/s", "one")).status).toBe(200);

    // A frozen process holds its directory as well.
    node.process.signal("SIGSTOP");
    expect((await node.refused({ ports: await freePorts() })).exitCode).toBe(1);
    node.process.signal("SIGCONT");
    expect((await node.append("/s", "two")).status).toBe(200);
    expect((await node.read("/s")).body.toString()).toBe("onetwo");
    expect(await node.process.stop()).toBe(0);
  },
  TEST_MS,
);

test.each(["pico", "durableStreams", "admin"] as const)(
  "a process whose %s port is in use is refused with the address, and takes nothing from the one that has it",
  async (listener) => {
    await using first = await TestNode.create();
    await using second = await TestNode.create();
    await first.start();
    await first.create("/s");
    const { exitCode, errors } = await second.refused({ ports: { ...second.ports, [listener]: first.ports[listener] } });
    expect(exitCode).toBe(1);
    expect(errors).toMatch(/^pico: .+\n$/);
    expect(errors).toContain(`127.0.0.1:${first.ports[listener]}`);
    expect((await first.append("/s", "one")).status).toBe(200);
    await second.start();
    expect(await second.process.stop()).toBe(0);
  },
  TEST_MS,
);

test(
  "a folder that cannot be made is refused with its path",
  async () => {
    await using node = await TestNode.create();
    mkdirSync(node.folder, { recursive: true });
    writeFileSync(join(node.folder, "file"), "");
    const dataDirectory = join(node.folder, "file", "data");
    const { exitCode, errors } = await node.refused({ dataDirectory });
    expect(exitCode).toBe(1);
    expect(errors).toMatch(/^pico: .+\n$/);
    expect(errors).toContain(dataDirectory);
  },
  TEST_MS,
);

test.skipIf(readOnlyDisk === null)(
  `a disk that is mounted read-only is refused with its path${readOnlyDisk === null ? ` (skipped: ${probe})` : ""}`,
  async () => {
    if (readOnlyDisk === null) return;
    expect(await Bun.spawn(["mount", "-o", "remount,ro", readOnlyDisk.path]).exited).toBe(0);
    await using node = await TestNode.create(join(readOnlyDisk.path, "data"));
    const { exitCode, errors } = await node.refused();
    expect(exitCode).toBe(1);
    expect(errors).toMatch(/^pico: .+\n$/);
    expect(errors).toContain(readOnlyDisk.path);
  },
  TEST_MS,
);

test(
  "a process that stands still for longer than a lease goes on as the same registration, and its clients get their answers",
  async () => {
    await using node = await TestNode.create();
    await node.start();
    await node.create("/s");
    expect((await node.append("/s", "one")).status).toBe(200);
    const before = await nodeEpoch(node);
    const poller = new HttpConnection(node.ports.pico);
    const poll = poller.request({ method: "GET", path: "/s?seq=1&live=long-poll&format=raw" });
    node.process.signal("SIGSTOP");
    const append = node.append("/s", "two");
    await Bun.sleep(PAUSE_MS);
    node.process.signal("SIGCONT");
    expect((await append).status).toBe(200);
    expect((await poll)?.body.toString()).toBe("two");
    poller.close();
    await node.create("/after");
    expect(await nodeEpoch(node)).toBe(before);
    await node.restart();
    expect((await node.read("/s")).body.toString()).toBe("onetwo");
  },
  TEST_MS,
);

async function nodeEpoch(node: TestNode): Promise<number> {
  return (JSON.parse((await node.admin("/admin/cluster")).body.toString()) as { nodeEpoch: number }).nodeEpoch;
}

/** FAULTS A1: each verb, killed right behind its answer. */
test(
  "create, append, trim, close and delete hold when the process is killed right behind the answer",
  async () => {
    await using node = await TestNode.create();
    await node.start();
    await node.create("/s");
    await node.restart();
    expect((await node.append("/s", "one")).status).toBe(200);
    await node.restart();
    expect((await node.append("/s", "two")).status).toBe(200);
    await node.send({ method: "POST", path: "/s", headers: { "pico-trim-seq": "1" } });
    await node.restart();
    expect((await node.read("/s")).status).toBe(410);
    expect((await node.read("/s", "&seq=1")).body.toString()).toBe("two");
    expect((await node.send({ method: "POST", path: "/s", headers: { "pico-closed": "true" } })).status).toBe(200);
    await node.restart();
    expect((await node.append("/s", "three")).status).toBe(409);
    expect((await node.send({ method: "DELETE", path: "/s" })).status).toBe(204);
    await node.restart();
    expect((await node.read("/s")).status).toBe(404);
  },
  TEST_MS,
);

/** FAULTS E1: uploaded or not, the number lives on without its records. */
test.each([
  ["kept in the WAL alone", []],
  ["uploaded at once", ["--wal-upload-interval-ms", "20"]],
] as const)(
  "numbers and producers of a stream outlive all its records, %s",
  async (_, flags) => {
    await using node = await TestNode.create();
    await node.start(...flags);
    await node.create("/s");
    const producer = (seq: number) => ({ "pico-producer-id": "p", "pico-producer-epoch": "0", "pico-producer-seq": String(seq) });
    const append = (seq: number) => node.send({ method: "POST", path: "/s", headers: producer(seq), body: `${seq};` });
    for (let seq = 0; seq < 5; seq++) expect((await append(seq)).status).toBe(200);
    await node.send({ method: "POST", path: "/s", headers: { "pico-trim-seq": "5" } });
    await node.restart(...flags);
    expect(await node.process.stop()).toBe(0);
    await node.start(...flags);
    const repeat = await append(4);
    expect({ status: repeat.status, isNew: repeat.headers.has("pico-start-seq") }).toEqual({ status: 200, isNew: false });
    const next = await append(5);
    expect({ status: next.status, start: next.headers.get("pico-start-seq") }).toEqual({ status: 200, start: "5" });
    await node.restart(...flags);
    expect((await node.read("/s", "&seq=5")).body.toString()).toBe("5;");
    expect((await node.read("/s", "&seq=4")).status).toBe(410);
  },
  TEST_MS,
);

/** FAULTS E3. */
test(
  "a name that is deleted and created again and again, through uploads and kills, shows its present life alone",
  async () => {
    await using node = await TestNode.create();
    const flags = ["--wal-upload-interval-ms", "20"];
    await node.start(...flags);
    for (let life = 0; life < 120; life++) {
      await node.create("/s");
      for (let number = 0; number < life % 4; number++) {
        const answer = await node.append("/s", `${life}.${number};`);
        expect(answer.headers.get("pico-start-seq")).toBe(String(number));
      }
      if (life % 20 === 19) await node.restart(...flags);
      const expected = Array.from({ length: life % 4 }, (_, number) => `${life}.${number};`).join("");
      expect((await node.read("/s")).body.toString()).toBe(expected);
      expect((await node.send({ method: "DELETE", path: "/s" })).status).toBe(204);
      expect((await node.read("/s")).status).toBe(404);
    }
  },
  TEST_MS,
);

/** FAULTS A6. */
test(
  "clients that hang up in the middle of appends leave whole records only, and one tail for all readers",
  async () => {
    await using node = await TestNode.create();
    await node.start();
    await node.create("/s");
    const body = "x".repeat(50_000);
    const clients = Array.from({ length: 60 }, async (_, number) => {
      const connection = new HttpConnection(node.ports.pico);
      const answer = connection.request({ method: "POST", path: "/s", headers: { "content-type": "text/plain" }, body });
      // Some leave before the request is out, some before its answer, some stay.
      if (number % 3 !== 2) {
        await Bun.sleep(number % 3 === 0 ? 0 : number / 10);
        connection.close();
      }
      return (await answer)?.status === 200;
    });
    const acknowledged = (await Promise.all(clients)).filter(Boolean).length;
    const tail = Number((await node.send({ method: "HEAD", path: "/s" })).headers.get("pico-next-seq"));
    expect(tail).toBeGreaterThanOrEqual(acknowledged);
    await node.restart();
    const records = JSON.parse((await node.send({ method: "GET", path: "/s?bytes=4000000" })).body.toString()) as { body: string }[];
    expect(records.map((record) => record.body === body)).toEqual(Array.from({ length: records.length }, () => true));
    const after = Number((await node.send({ method: "HEAD", path: "/s" })).headers.get("pico-next-seq"));
    expect(after).toBe(records.length);
    expect(after).toBeGreaterThanOrEqual(tail);
  },
  TEST_MS,
);

/** FAULTS A4: of a stop, where one node alone cannot be fenced. */
test(
  "a graceful stop answers long polls and ends SSE at once, and takes nothing more",
  async () => {
    await using node = await TestNode.create();
    await node.start();
    await node.create("/s");
    const polls = Array.from({ length: 50 }, async () => {
      const connection = new HttpConnection(node.ports.pico);
      const answer = await connection.request({ method: "GET", path: "/s?seq=0&live=long-poll" });
      connection.close();
      return answer;
    });
    const sse = await fetch(`http://127.0.0.1:${node.ports.pico}/s?live=sse`);
    const events = sse.text();
    await eventually("the poll is under way", async () => (await node.admin("/ready")).status === 200);
    const startedMs = performance.now();
    expect(await node.process.stop()).toBe(0);
    expect((await events).startsWith("event: control")).toBe(true);
    for (const answer of await Promise.all(polls)) expect([204, 503, undefined]).toContain(answer?.status);
    // Far below the 25 s of a poll and the 30 s of a stop.
    expect(performance.now() - startedMs).toBeLessThan(15_000);
  },
  TEST_MS,
);
