/** Two processes of one node id, on one bucket and one SQLite file: one of them is paused, the other takes over. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { describeOnMinio } from "../support/minio.ts";
import { HttpConnection } from "./http-connection.ts";
import { freePorts } from "./node-process.ts";
import { TestNode } from "./test-node.ts";

const TEST_MS = 120_000;
/** Those that hold a request each when the process is paused. */
const WRITERS = 16;
/** From the end of the pause until the process has noticed: a heartbeat, and what a segment takes. */
const NOTICE_MS_MAX = 15_000;

describeOnMinio("a twin on a bucket", (minio) => {
  test(
    "while the first is paused the second takes over; resumed, the first takes nothing more, says why, and ends",
    async () => {
      await using first = await TestNode.create();
      await using second = await TestNode.create(first.dataDirectory);
      const flags = ["--storage", minio().uri()];
      await first.start(...flags);
      await first.create("/s");
      const acknowledged: string[] = [];
      const late: number[] = [];
      let isPaused = false;
      let isOver = false;
      const writers = Array.from({ length: WRITERS }, async (_, writer) => {
        const connection = new HttpConnection(first.ports.pico);
        for (let number = 0; !isOver; number++) {
          const body = `${writer}.${number};`;
          const wasPaused = isPaused;
          const answer = await connection.request({ method: "POST", path: "/s", headers: { "content-type": "text/plain" }, body });
          if (answer === null) break;
          if (answer.status === 200) wasPaused ? late.push(answer.status) : acknowledged.push(body);
        }
        connection.close();
      });
      await Bun.sleep(1500);

      first.process.signal("SIGSTOP");
      isPaused = true;
      await second.start(...flags);
      expect(readFileSync(second.logPath, "utf8")).toContain("replaced if its heartbeat stands still");
      expect((await second.append("/s", "second;")).status).toBe(200);

      const resumedMs = performance.now();
      first.process.signal("SIGCONT");
      const exit = await Promise.race([first.process.exited, Bun.sleep(NOTICE_MS_MAX).then(() => null)]);
      expect({ exit, afterMs: performance.now() - resumedMs }).toEqual({
        exit: { exitCode: 1, signal: null },
        afterMs: expect.any(Number),
      });
      isOver = true;
      await Promise.all(writers);
      // Nothing that came behind the pause had an answer of success. What the store had taken before the pause may have had
      // one when the process went on: it is in the stream, as is checked below.
      expect(late).toEqual([]);
      expect(first.process.lastWords()).toMatch(/fenced/);

      const records = (await second.read("/s")).body.toString().split(";").slice(0, -1);
      expect(records.filter((body) => body === "second")).toHaveLength(1);
      expect(new Set(records).size).toBe(records.length);
      const missing = acknowledged.filter((body) => !records.includes(body.slice(0, -1)));
      expect(missing).toEqual([]);
      // The second holds the lock now, and a third start is refused by its heartbeat or by its lock.
      const third = await second.refused({ ports: await freePorts(), flags });
      expect(third.exitCode).toBe(1);
      expect(third.errors).toContain("is alive");
      expect((await second.append("/s", "still;")).status).toBe(200);
      expect(await second.process.stop()).toBe(0);
    },
    TEST_MS,
  );
});
