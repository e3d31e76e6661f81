/** `pico doctor` beside a node that runs, was killed, or has the ports of another. */
import { expect, test } from "bun:test";
import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { PicoCommand } from "./pico-command.ts";
import { TestNode } from "./test-node.ts";

const TEST_MS = 60_000;

function doctor(node: TestNode, dataDirectory = node.dataDirectory, ...flags: readonly string[]) {
  const { ports } = node;
  const listeners = [
    "--listen",
    `127.0.0.1:${ports.pico}`,
    "--ds-listen",
    `127.0.0.1:${ports.durableStreams}`,
    "--admin-listen",
    `127.0.0.1:${ports.admin}`,
  ];
  return PicoCommand.run(["doctor", "--data-dir", dataDirectory, ...listeners, ...flags]);
}

/** Owner and size of each file that the state is in. */
function filesOf(folder: string): string[] {
  const names = readdirSync(folder, { recursive: true, encoding: "utf8" }).sort();
  return names
    .map((name) => `${name} ${statSync(join(folder, name)).uid} ${statSync(join(folder, name)).mtimeMs}`)
    .filter((line) => !line.startsWith("meta.db-shm"));
}

test(
  "beside a running node all is well, and the node goes on; on other places its ports are taken",
  async () => {
    await using node = await TestNode.create();
    await node.start();
    await node.create("/s");
    const { exitCode, output, errors } = await doctor(node);
    expect([exitCode, errors]).toEqual([0, expect.stringMatching(/^pico serve can run here(, \d+ warnings?)?\n$/)]);
    expect(output).not.toContain("\u001b");
    for (const line of output.trimEnd().split("\n")) expect(line).toMatch(/^(ok|warn) {2,4}\S/);
    expect(output).toMatch(new RegExp(`^ok +lock .* a node runs on .*: process ${node.process.pid};`, "m"));
    expect(output.match(/is taken by a pico node, and one runs on these places/g)).toHaveLength(3);
    expect(output).toMatch(/^ok +database .*schema version 1/m);
    expect((await node.append("/s", "on")).status).toBe(200);

    const elsewhere = await doctor(node, join(node.folder, "elsewhere"));
    expect(elsewhere.exitCode).toBe(1);
    expect(elsewhere.output.match(/^fail .*is taken by a pico node that runs on other places; .*listen$/gm)).toHaveLength(3);
  },
  TEST_MS,
);

test(
  "a node whose WAL is not in a folder is found by the lock of its id",
  async () => {
    const flags = ["--storage", "1@mem://objects", "--wal", "2@mem://wal"];
    await using node = await TestNode.create();
    await node.start(...flags);
    const { exitCode, output } = await doctor(node, node.dataDirectory, ...flags);
    expect(exitCode).toBe(0);
    expect(output.match(/is taken by a pico node, and one runs on these places/g)).toHaveLength(3);
    const { output: ofAnother } = await doctor(node, node.dataDirectory, ...flags, "--node-id", "2");
    expect(ofAnother.match(/is taken by a pico node that runs on other places/g)).toHaveLength(3);
  },
  TEST_MS,
);

test(
  "behind a kill it says that a start recovers, changes nothing, and the node starts",
  async () => {
    await using node = await TestNode.create();
    await node.start();
    await node.create("/s");
    const { pid } = node.process;
    await node.process.kill();
    const before = filesOf(node.dataDirectory);
    const { exitCode, output } = await doctor(node);
    expect(exitCode).toBe(0);
    expect(output).toMatch(new RegExp(`^ok +lock +process ${pid} ended without a stop; .*the next start recovers`, "m"));
    expect(output.match(/ is free$/gm)).toHaveLength(3);
    expect(filesOf(node.dataDirectory)).toEqual(before);
    await node.start();
    expect((await node.append("/s", "on")).status).toBe(200);
    expect(await node.process.stop()).toBe(0);
    expect((await doctor(node)).output).toMatch(/^ok +lock +no node runs on /m);
  },
  TEST_MS,
);
