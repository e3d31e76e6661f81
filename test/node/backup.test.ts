/** `pico backup` of real nodes, and nodes started on what it made. */
import { expect, test } from "bun:test";
import fs from "node:fs";
import { join } from "node:path";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { runCommand, type ServingNode, serveNode } from "../support/command.ts";

const TIMEOUT_MS = 60_000;

async function put(node: ServingNode, name: string, options: { body?: string; headers?: Record<string, string> } = {}): Promise<void> {
  const headers = { "content-type": "text/plain", ...options.headers };
  const answer = await fetch(`${node.picoUrl}/${name}`, { method: "PUT", headers, body: options.body ?? null });
  await answer.body?.cancel();
  expect(answer.status).toBe(201);
}

/** Appends one record; returns the answer's status. */
async function append(node: ServingNode, name: string, body: string, headers: Record<string, string> = {}): Promise<number> {
  const answer = await fetch(`${node.picoUrl}/${name}`, { method: "POST", headers, body });
  await answer.body?.cancel();
  return answer.status;
}

/** Bodies of all records from `start` on, the trim point; below it nothing can be read. */
async function readAll(node: ServingNode, name: string, start = 0): Promise<string[]> {
  if (start > 0) expect((await fetch(`${node.picoUrl}/${name}?seq=${start - 1}`)).status).toBe(410);
  const bodies: string[] = [];
  for (;;) {
    const answer = await fetch(`${node.picoUrl}/${name}?seq=${start + bodies.length}`);
    expect(answer.status).toBe(200);
    const page = (await answer.json()) as { seq: number; body: string }[];
    if (page.length === 0) return bodies;
    expect(page[0]?.seq).toBe(start + bodies.length);
    bodies.push(...page.map(({ body }) => body));
  }
}

/** Appends `<name>-<n>` one behind the other until it is ended; `acked` is how many were acknowledged. */
function startWriter(node: ServingNode, name: string) {
  const state = { acked: 0, isEnding: false };
  const run = async () => {
    while (!state.isEnding) {
      expect(await append(node, name, `${name}-${state.acked}`)).toBe(200);
      state.acked += 1;
    }
  };
  const ended = run();
  return {
    get acked() {
      return state.acked;
    },
    async end() {
      state.isEnding = true;
      await ended;
    },
  };
}

async function until(condition: () => boolean): Promise<void> {
  while (!condition()) await Bun.sleep(5);
}

test(
  "a backup in the middle of a load holds all that was acknowledged before it, in order, and both nodes go on",
  async () => {
    await using folder = await makeTemporaryFolder();
    const copy = join(folder.path, "copy");
    const node = await serveNode(join(folder.path, "data"), ["--wal-upload-interval-ms", "300"]);
    const names = ["a", "b", "c", "d"];
    for (const name of names) await put(node, name);
    const writers = names.map((name) => startWriter(node, name));
    const objects = join(folder.path, "data/objects/picomq/data");
    await until(() => writers.every(({ acked }) => acked > 100) && fs.existsSync(objects));

    const before = writers.map(({ acked }) => acked);
    const made = await runCommand(["backup", "--to", copy, "--data-dir", join(folder.path, "data")]);
    expect(made).toMatchObject({ exitCode: 0, errors: "" });
    expect(made.output).toContain(`backed up to ${copy}\nmetadata: 4 streams,`);
    const after = writers.map(({ acked }) => acked);
    await until(() => writers.every(({ acked }, i) => acked > (after[i] ?? 0)));
    for (const writer of writers) await writer.end();

    const restored = await serveNode(copy);
    for (const [i, name] of names.entries()) {
      const bodies = await readAll(restored, name);
      expect(bodies.length).toBeGreaterThanOrEqual(before[i] ?? 0);
      expect(bodies).toEqual(bodies.map((_, n) => `${name}-${n}`));
      expect(await append(restored, name, `${name}-${bodies.length}`)).toBe(200);
      expect(await readAll(restored, name)).toEqual([...bodies, `${name}-${bodies.length}`]);
    }
    expect(await restored.stop()).toBe(0);

    for (const [i, name] of names.entries()) {
      const bodies = await readAll(node, name);
      expect(bodies).toEqual(Array.from({ length: writers[i]?.acked ?? 0 }, (_, n) => `${name}-${n}`));
    }
    expect(await node.stop()).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "what the metadata says of records that are in the WAL only holds in the copy: trim, fork, close, first record, producer",
  async () => {
    await using folder = await makeTemporaryFolder();
    const copy = join(folder.path, "copy");
    const node = await serveNode(join(folder.path, "data"));
    const producer = (seq: number) => ({ "pico-producer-id": "p", "pico-producer-epoch": "0", "pico-producer-seq": String(seq) });
    await put(node, "trimmed");
    for (const n of [0, 1, 2]) expect(await append(node, "trimmed", `t${n}`, producer(n))).toBe(200);
    expect(await append(node, "trimmed", "", { "pico-trim-seq": "2" })).toBe(200);
    await put(node, "full", { body: "only", headers: { "pico-closed": "true" } });
    const forked = await fetch(`${node.durableStreamsUrl}/fork`, {
      method: "PUT",
      headers: { "content-type": "text/plain", "stream-forked-from": "/trimmed" },
    });
    expect(forked.status).toBe(201);

    const made = await runCommand(["backup", "--to", copy, "--data-dir", join(folder.path, "data")]);
    expect(made).toMatchObject({ exitCode: 0, errors: "" });
    expect(made.output).toContain("0 data objects");
    expect(await node.stop()).toBe(0);

    const restored = await serveNode(copy);
    expect(await readAll(restored, "trimmed", 2)).toEqual(["t2"]);
    expect(await readAll(restored, "fork", 2)).toEqual(["t2"]);
    expect(await readAll(restored, "full")).toEqual(["only"]);
    expect(await append(restored, "full", "no")).toBe(409);
    expect(await append(restored, "trimmed", "t2", producer(2))).toBe(200);
    expect(await append(restored, "trimmed", "t3", producer(3))).toBe(200);
    expect(await readAll(restored, "trimmed", 2)).toEqual(["t2", "t3"]);
    expect(await restored.stop()).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "a stopped node, its places named by flags, is copied too; a missing object fails the backup and is named",
  async () => {
    await using folder = await makeTemporaryFolder();
    const places = [
      ...["--meta-url", `sqlite:${join(folder.path, "m/meta.db")}`],
      ...["--storage", `1@file://${join(folder.path, "o")}`],
      ...["--wal", `2@file://${join(folder.path, "w")}`],
      ...["--cluster-id", "mine"],
    ];
    const node = await serveNode(join(folder.path, "data"), places);
    await put(node, "s", { body: "kept" });
    const walFiles = () => fs.readdirSync(join(folder.path, "w")).filter((name) => name.endsWith(".wal"));
    expect(walFiles()).not.toEqual([]);
    expect(await node.stop()).toBe(0);
    // Nothing is written late on a local disk, so that a stop leaves nothing for the next start to clean.
    expect(walFiles()).toEqual([]);

    const copy = join(folder.path, "copy");
    const made = await runCommand(["backup", "--to", copy, ...places]);
    expect(made).toMatchObject({ exitCode: 0, errors: "" });
    expect(made.output).toContain("1 data object (");
    expect(made.output).toContain(`pico serve --data-dir ${copy} --cluster-id mine`);
    const restored = await serveNode(copy, ["--cluster-id", "mine"]);
    expect(await readAll(restored, "s")).toEqual(["kept"]);
    expect(await restored.stop()).toBe(0);

    const key = fs.readdirSync(join(folder.path, "o"), { recursive: true, encoding: "utf8" }).find((path) => /\/data\/.*\/\d+$/.test(path));
    const object = join(folder.path, "o", key ?? "none");
    fs.truncateSync(object, fs.statSync(object).size - 1);
    const cut = await runCommand(["backup", "--to", join(folder.path, "first"), ...places]);
    expect(cut).toMatchObject({ exitCode: 1, errors: expect.stringContaining(`the data object ${key}`) });
    fs.rmSync(object);
    const refused = await runCommand(["backup", "--to", join(folder.path, "second"), ...places]);
    expect(refused.exitCode).toBe(1);
    expect(refused.errors).toContain(`names the data object ${key}`);
    expect(fs.existsSync(join(folder.path, "second/meta.db"))).toBe(false);
  },
  TIMEOUT_MS,
);

test(
  "a node whose WAL is elsewhere is neither copied nor started without it, and a copy with an empty WAL starts",
  async () => {
    await using folder = await makeTemporaryFolder();
    const data = join(folder.path, "data");
    const wal = ["--wal", `2@file://${join(folder.path, "w")}`];
    const node = await serveNode(data, [...wal, "--wal-upload-interval-ms", "200"]);
    await put(node, "s", { body: "uploaded" });
    const copy = join(folder.path, "copy");
    const back = ["backup", "--data-dir", data, ...wal];
    // Until everything is uploaded, so that the copy has no segment.
    for (let attempt = 1; ; attempt++) {
      const made = await runCommand([...back, "--to", copy]);
      expect(made).toMatchObject({ exitCode: 0, errors: "" });
      if (made.output.includes(" 0 WAL segments")) break;
      expect(attempt).toBeLessThan(10);
      fs.rmSync(copy, { recursive: true });
    }
    expect(await append(node, "s", "acknowledged")).toBe(200);
    await node.kill();

    fs.mkdirSync(join(data, "wal"));
    const refused =
      /^pico: WAL \S+ may hold acknowledged records, and local disk at \S+\/data\/wal has nothing of it \(it was written to local disk at \S+\/w\);/;
    const backup = await runCommand(["backup", "--to", join(folder.path, "second"), "--data-dir", data]);
    expect(backup).toMatchObject({ exitCode: 1, errors: expect.stringMatching(refused) });
    const start = await runCommand(["serve", "--data-dir", data, "--listen", "127.0.0.1:0", "--no-ds", "--no-admin"]);
    expect(start).toMatchObject({ exitCode: 1, errors: expect.stringMatching(refused) });

    const again = await serveNode(data, wal);
    expect(await readAll(again, "s")).toEqual(["uploaded", "acknowledged"]);
    expect(await again.stop()).toBe(0);
    const restored = await serveNode(copy);
    expect(await readAll(restored, "s")).toEqual(["uploaded"]);
    expect(await restored.stop()).toBe(0);
  },
  TIMEOUT_MS,
);

test(
  "a damaged WAL segment that a later one vouches for fails the backup and is named",
  async () => {
    await using folder = await makeTemporaryFolder();
    const data = join(folder.path, "data");
    const node = await serveNode(data);
    await put(node, "s");
    for (const n of [0, 1, 2, 3]) expect(await append(node, "s", `needle-${n}`)).toBe(200);
    // The node has the bytes in memory and does not notice.
    for (const name of fs.readdirSync(join(data, "wal")).filter((file) => file.endsWith(".wal"))) {
      const path = join(data, "wal", name);
      const at = fs.readFileSync(path).indexOf("needle-1");
      if (at === -1) continue;
      const file = fs.openSync(path, "r+");
      fs.writeSync(file, "x", at);
      fs.closeSync(file);
    }
    const refused = await runCommand(["backup", "--to", join(folder.path, "copy"), "--data-dir", data]);
    expect(await node.stop()).toBe(0);
    expect(refused.exitCode).toBe(1);
    expect(refused.errors).toMatch(/^pico: WAL segment .* is missing or damaged, yet number \d+ vouches for it\n$/);
  },
  TIMEOUT_MS,
);

test(
  "places that cannot be used are refused by name with exit code 1, a wrong command line with 2",
  async () => {
    await using folder = await makeTemporaryFolder();
    const target = join(folder.path, "target");
    const run = (...words: string[]) => runCommand(["backup", ...words]);

    const nothing = await run("--to", target, "--data-dir", join(folder.path, "none"));
    expect(nothing.exitCode).toBe(1);
    expect(nothing.errors).toContain(join(folder.path, "none/meta.db"));
    expect(fs.existsSync(target)).toBe(false);

    const foreign = join(folder.path, "foreign");
    for (const name of ["objects", "wal"]) fs.mkdirSync(join(foreign, name), { recursive: true });
    fs.writeFileSync(join(foreign, "meta.db"), "no database at all, but long enough for a look at its first page");
    const other = await run("--to", target, "--data-dir", foreign);
    expect(other.exitCode).toBe(1);
    expect(other.errors).toContain(join(foreign, "meta.db"));

    fs.writeFileSync(join(target, "note"), "mine");
    const full = await run("--to", target, "--data-dir", foreign);
    expect(full).toMatchObject({ exitCode: 1, errors: `pico: --to ${target} is not empty; name a new or an empty folder\n` });
    expect(fs.readdirSync(target)).toContain("note");

    const memory = await run("--to", join(folder.path, "m"), "--meta-url", "sqlite::memory:");
    expect(memory).toMatchObject({ exitCode: 1, errors: expect.stringContaining("in the memory of the node") });
    expect(await run("--data-dir", foreign)).toMatchObject({ exitCode: 2, errors: expect.stringContaining("--to is missing") });
    expect(await run("--to", target, "--listen", "127.0.0.1:0")).toMatchObject({ exitCode: 2 });
    expect(await run("--help")).toMatchObject({ exitCode: 0, output: expect.stringContaining("acknowledged before the command began") });
  },
  TIMEOUT_MS,
);
