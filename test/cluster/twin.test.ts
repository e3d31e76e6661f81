/** Two processes of one node id, on one bucket and one SQLite file: one of them is paused, the other takes over. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { FaultProxy } from "../store-faults/fault-proxy.ts";
import { describeOnMinio } from "../support/minio.ts";
import { HttpConnection } from "./http-connection.ts";
import { freePorts } from "./node-process.ts";
import { TestNode } from "./test-node.ts";

const TEST_MS = 120_000;
/** Those that hold a request each when the process is paused. */
const WRITERS = 16;
/** From the end of the pause until the process has noticed: a heartbeat, and what a segment takes. */
const NOTICE_MS_MAX = 15_000;
/** Shorter than the store's client waits, so that the answers are there when the process goes on. */
const STALL_MS = 4000;

describeOnMinio("a twin on a bucket", (minio) => {
  test(
    "while the first is paused the second takes over; resumed, the first takes nothing more, says why, and ends",
    async () => {
      const { late, asked } = await pauseAndReplace(minio().uri(), minio().uri());
      // What it had answered inwardly when it was paused may leave it yet; what came later is refused.
      const afterPause = late.filter((body) => !asked.includes(body));
      expect(afterPause).toEqual([]);
    },
    TEST_MS,
  );

  test(
    "what the store had taken before the pause is not acknowledged behind it",
    async () => {
      const proxy = await FaultProxy.start(Number(new URL(minio().endpoint).port), STALL_MS);
      try {
        const direct = minio().uri("/stalled");
        const { late, inStream } = await pauseAndReplace(direct.replace(minio().endpoint, proxy.url), direct, async () => {
          await proxy.set("stall");
          await Bun.sleep(STALL_MS / 2);
        });
        expect(late).toEqual([]);
        expect(inStream).toBeGreaterThanOrEqual(WRITERS);
      } finally {
        await proxy.close();
      }
    },
    TEST_MS,
  );
});

interface Takeover {
  /** Appends asked for before the pause, and those that the first acknowledged behind the takeover. */
  readonly asked: readonly string[];
  readonly late: readonly string[];
  /** Records of the first that are in the stream without its acknowledgement. */
  readonly inStream: number;
}

/** Pauses a loaded node behind `beforePause`, starts a twin of it, lets the first go on, and checks both but for what came late. */
async function pauseAndReplace(firstStorage: string, secondStorage: string, beforePause = () => Bun.sleep(1500)): Promise<Takeover> {
  await using first = await TestNode.create();
  await using second = await TestNode.create(first.dataDirectory);
  await first.start("--storage", firstStorage);
  await first.create("/s");
  const asked: string[] = [];
  const acknowledged: string[] = [];
  const late: string[] = [];
  let isPaused = false;
  let isTaken = false;
  let isOver = false;
  const writers = Array.from({ length: WRITERS }, async (_, writer) => {
    const connection = new HttpConnection(first.ports.pico);
    for (let number = 0; !isOver; number++) {
      const body = `${writer}.${number};`;
      if (!isPaused) asked.push(body);
      const answer = await connection.request({ method: "POST", path: "/s", headers: { "content-type": "text/plain" }, body });
      if (answer === null) break;
      if (answer.status === 200) (isTaken ? late : acknowledged).push(body);
    }
    connection.close();
  });
  await beforePause();

  first.process.signal("SIGSTOP");
  isPaused = true;
  await second.start("--storage", secondStorage);
  expect(readFileSync(second.logPath, "utf8")).toContain("replaced if its heartbeat stands still");
  expect((await second.append("/s", "second;")).status).toBe(200);

  isTaken = true;
  const resumedMs = performance.now();
  first.process.signal("SIGCONT");
  const exit = await Promise.race([first.process.exited, Bun.sleep(NOTICE_MS_MAX).then(() => null)]);
  expect({ exit, afterMs: performance.now() - resumedMs }).toEqual({ exit: { exitCode: 1, signal: null }, afterMs: expect.any(Number) });
  isOver = true;
  await Promise.all(writers);
  expect(first.process.lastWords()).toMatch(/fenced/);

  const records = (await second.read("/s")).body.toString().split(";").slice(0, -1);
  expect(records.filter((body) => body === "second")).toHaveLength(1);
  expect(new Set(records).size).toBe(records.length);
  const missing = [...acknowledged, ...late].filter((body) => !records.includes(body.slice(0, -1)));
  expect(missing).toEqual([]);
  // The second holds the lock now, and a third start is refused by its heartbeat or by its lock.
  const third = await second.refused({ ports: await freePorts(), flags: ["--storage", secondStorage] });
  expect(third.exitCode).toBe(1);
  expect(third.errors).toContain("is alive");
  expect((await second.append("/s", "still;")).status).toBe(200);
  expect(await second.process.stop()).toBe(0);
  return { asked, late, inStream: records.length - 1 - acknowledged.length - late.length };
}
