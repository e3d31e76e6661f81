/** A node whose metadata is in Postgres: it leaves nothing that matters on its machine but a local WAL, if it has one. */
import { expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { PostgresServer } from "../../scripts/postgres.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { describeOnMinio } from "../support/minio.ts";
import { describeOnPostgres } from "../support/postgres.ts";
import { eventually } from "./eventually.ts";
import { freePorts } from "./node-process.ts";
import { PicoCommand } from "./pico-command.ts";
import { TestNode } from "./test-node.ts";

const TEST_MS = 120_000;

/** A database of its own, and the URL of it. */
async function makeUrl(server: PostgresServer): Promise<string> {
  return server.url(await server.makeDatabase());
}

describeOnPostgres("a node on Postgres", (server) => {
  test(
    "and a directory has what it acknowledged behind a kill and behind a stop",
    async () => {
      await using node = await TestNode.create();
      const flags = ["--meta-url", await makeUrl(server())];
      await node.start(...flags);
      await node.create("/s");
      expect((await node.append("/s", "one;")).status).toBe(200);
      await node.restart(...flags);
      expect((await node.append("/s", "two;")).status).toBe(200);
      await node.create("/t");
      expect(await node.process.stop()).toBe(0);
      await node.start(...flags);
      expect((await node.read("/s")).body.toString()).toBe("one;two;");
      expect((await node.tryRead("/t"))?.status).toBe(200);
      expect(await node.process.stop()).toBe(0);
      expect(existsSync(join(node.dataDirectory, "meta.db"))).toBe(false);
    },
    TEST_MS,
  );

  test(
    "serves what it owns while the server is away, and creates again when it is back, after a crash of it too",
    async () => {
      await using node = await TestNode.create();
      await node.start("--meta-url", await makeUrl(server()));
      await node.create("/s");
      for (const signal of ["SIGINT", "SIGKILL"] as const) {
        await server().halt(signal);
        try {
          expect((await node.append("/s", `${signal};`)).status).toBe(200);
          const refused = await node.send({ method: "PUT", path: `/${signal}`, headers: { "content-type": "text/plain" } });
          expect(refused.status).toBe(503);
        } finally {
          await server().resume();
        }
        await eventually("a stream is created", async () => {
          const answer = await node.send({ method: "PUT", path: `/${signal}`, headers: { "content-type": "text/plain" } });
          return answer.status === 201 || answer.status === 200;
        });
      }
      expect((await node.read("/s")).body.toString()).toBe("SIGINT;SIGKILL;");
      expect(await node.process.stop()).toBe(0);
    },
    TEST_MS,
  );

  test(
    "waits at its start for a server that is away",
    async () => {
      await using node = await TestNode.create();
      const url = await makeUrl(server());
      await server().halt("SIGINT");
      try {
        node.spawn("--meta-url", url);
        await eventually("it says so", async () => node.process.lastWords().includes("cannot be reached yet"));
        expect(node.process.hasExited).toBe(false);
      } finally {
        await server().resume();
      }
      await node.process.ready();
      expect(await node.process.stop()).toBe(0);
    },
    TEST_MS,
  );

  test(
    "is refused by a wrong password or database, and beside a store that an empty database does not know",
    async () => {
      await using node = await TestNode.create();
      const url = await makeUrl(server());
      for (const wrong of [url.replace(/:[^:@]*@/, ":wrong-secret@"), server().url("nowhere")]) {
        const { exitCode, errors } = await node.refused({ flags: ["--meta-url", wrong] });
        expect([exitCode, errors]).toEqual([
          1,
          expect.stringMatching(/^pico: connecting failed in postgres:\/\/127.0.0.1:\d+\/\w+: .+\n$/),
        ]);
        expect(errors).not.toContain("secret");
      }
      await node.start("--meta-url", url);
      await node.create("/s");
      expect((await node.append("/s", "one")).status).toBe(200);
      await node.process.kill();

      const emptyName = await server().makeDatabase();
      const empty = await node.refused({ flags: ["--meta-url", server().url(emptyName)] });
      expect([empty.exitCode, empty.errors]).toEqual([1, expect.stringContaining("is empty, and ")]);
      const client = server().client(emptyName);
      expect(await client`SELECT to_regnamespace('pico') IS NULL AS is_untouched`).toMatchObject([{ is_untouched: true }]);
      await client.end();
    },
    TEST_MS,
  );

  test(
    "stops and says why when the database is set back under it",
    async () => {
      await using node = await TestNode.create();
      const url = await makeUrl(server());
      await node.start("--meta-url", url);
      await node.create("/kept");
      const client = server().client(new URL(url).pathname.slice(1));
      const [before] = await client<{ head: string }[]>`SELECT head FROM pico.log_head`;
      for (const name of ["/lost", "/too"]) await node.create(name);
      await client.begin((transaction) => [
        transaction`DELETE FROM pico.log WHERE log_index > ${before?.head ?? ""}`,
        transaction`UPDATE pico.log_head SET head = ${before?.head ?? ""}`,
      ]);
      await client.end();
      expect(await node.process.exited).toEqual({ exitCode: 1, signal: null });
      expect(node.process.lastWords()).toContain("set back or replaced; nothing was deleted");
    },
    TEST_MS,
  );

  test(
    "is told by pico doctor of a database that answers, and of one that does not",
    async () => {
      await using node = await TestNode.create();
      const { pico, durableStreams, admin } = await freePorts();
      const listeners = [
        "--listen",
        `127.0.0.1:${pico}`,
        "--ds-listen",
        `127.0.0.1:${durableStreams}`,
        "--admin-listen",
        `127.0.0.1:${admin}`,
      ];
      const words = ["doctor", "--data-dir", node.dataDirectory, ...listeners, "--meta-url"];
      const fresh = await PicoCommand.run([...words, await makeUrl(server())]);
      expect(fresh.output).toMatch(/ok\s+database\s+postgres:\/\/127.0.0.1:\d+\/\w+ answers, and has no cluster yet/);
      const missing = await PicoCommand.run([...words, server().url("nowhere")]);
      expect(missing.exitCode).toBe(1);
      expect(missing.output).toMatch(/fail\s+database\s+.*create the database/);
    },
    TEST_MS,
  );

  test(
    "with its WAL there goes on behind a kill on another machine that shares the objects, and leaves no row behind a stop",
    async () => {
      await using objects = await makeTemporaryFolder();
      await using first = await TestNode.create();
      await using second = await TestNode.create();
      const url = await makeUrl(server());
      const flags = ["--meta-url", url, "--storage", `1@file://${objects.path}/objects`, "--wal"];
      const unsafe = await first.refused({ flags: [...flags, url] });
      expect([unsafe.exitCode, unsafe.errors]).toEqual([1, expect.stringContaining("fsync = off")]);
      const wal = `${url}?allowUnsafe=true`;
      await first.start(...flags, wal);
      await first.create("/s");
      for (const body of ["one;", "two;"]) expect((await first.append("/s", body)).status).toBe(200);
      await first.process.kill();
      await second.start(...flags, wal);
      expect((await second.append("/s", "three;")).status).toBe(200);
      expect((await second.read("/s")).body.toString()).toBe("one;two;three;");
      expect(await second.process.stop()).toBe(0);
      const client = server().client(new URL(url).pathname.slice(1));
      expect(
        await client`SELECT count(*)::integer AS segments FROM pico.wal_segments WHERE NOT is_tombstone AND node_epoch = (
        SELECT max(node_epoch) FROM pico.wal_segments)`,
      ).toMatchObject([{ segments: 0 }]);
      await client.end();
      expect(existsSync(first.dataDirectory)).toBe(false);
    },
    TEST_MS,
  );

  test(
    "with its WAL there acknowledges nothing while the server is away, and goes on when it is back",
    async () => {
      await using node = await TestNode.create();
      const url = await makeUrl(server());
      await node.start("--meta-url", url, "--wal", `${url}?allowUnsafe=true`);
      await node.create("/s");
      expect((await node.append("/s", "one;")).status).toBe(200);
      await server().halt("SIGKILL");
      const waiting = node.append("/s", "two;");
      await server().resume();
      // It was held until the server was back, or refused before it was offered.
      const isTaken = (await waiting).status === 200;
      await eventually("an append is taken", async () => (await node.append("/s", "three;")).status === 200);
      expect((await node.read("/s")).body.toString()).toMatch(isTaken ? /^one;two;(three;)+$/ : /^one;(two;)?(three;)+$/);
      expect(await node.process.stop()).toBe(0);
    },
    TEST_MS,
  );

  describeOnMinio("and a bucket", (minio) => {
    test(
      "goes on behind a kill on another machine, which has nothing of it",
      async () => {
        await using first = await TestNode.create();
        await using second = await TestNode.create();
        const flags = ["--meta-url", await makeUrl(server()), "--storage", minio().uri("/moved")];
        await first.start(...flags);
        await first.create("/s");
        for (const body of ["one;", "two;"]) expect((await first.append("/s", body)).status).toBe(200);
        await first.process.kill();
        await second.start(...flags);
        expect((await second.append("/s", "three;")).status).toBe(200);
        expect((await second.read("/s")).body.toString()).toBe("one;two;three;");
        expect(await second.process.stop()).toBe(0);
        expect(existsSync(first.dataDirectory)).toBe(false);
      },
      TEST_MS,
    );

    test(
      "fences its twin that stood still on another machine, which ends when it goes on",
      async () => {
        await using first = await TestNode.create();
        await using second = await TestNode.create();
        const flags = ["--meta-url", await makeUrl(server()), "--storage", minio().uri("/twin")];
        await first.start(...flags);
        await first.create("/s");
        expect((await first.append("/s", "one;")).status).toBe(200);
        const alive = await second.refused({ flags });
        expect([alive.exitCode, alive.errors]).toEqual([1, expect.stringContaining("is alive")]);
        first.process.signal("SIGSTOP");
        await second.start(...flags);
        expect((await second.append("/s", "two;")).status).toBe(200);
        first.process.signal("SIGCONT");
        expect(await first.process.exited).toEqual({ exitCode: 1, signal: null });
        expect(first.process.lastWords()).toMatch(/fenced/);
        expect((await second.read("/s")).body.toString()).toBe("one;two;");
        expect(await second.process.stop()).toBe(0);
      },
      TEST_MS,
    );
  });
});
