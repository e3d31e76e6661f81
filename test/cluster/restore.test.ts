/** Real processes whose database is lost: `pico restore` makes another one of the bucket. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { CopyObjectCommand, ListObjectsV2Command, type S3Client } from "@aws-sdk/client-s3";
import { MINIO_BUCKET } from "../../scripts/minio.ts";
import { describeOnMinio } from "../support/minio.ts";
import { type CommandEnd, PicoCommand } from "./pico-command.ts";
import { TestNode } from "./test-node.ts";

const TEST_MS = 180_000;
/** The mirror is a second behind, and a little. */
const MIRRORED_MS = 3000;
const ROUNDS = 3;

/** Runs the command until it ends or is killed after `killMs`; null: it is left alone. */
async function restore(flags: readonly string[], killMs: number | null): Promise<CommandEnd> {
  const aws = Object.entries(process.env).filter(([name]) => name.startsWith("AWS_"));
  const variables = Object.fromEntries(aws.map(([name, value]) => [name, value ?? ""]));
  const command = new PicoCommand(["restore", ...flags, "--json"], variables);
  command.child.stdin?.end();
  const timer = killMs === null ? null : setTimeout(() => command.child.kill("SIGKILL"), killMs);
  const end = await command.ended;
  if (timer !== null) clearTimeout(timer);
  return end;
}

function loseDatabase(node: TestNode): void {
  for (const companion of ["", "-wal", "-shm"]) rmSync(join(node.dataDirectory, `meta.db${companion}`), { force: true });
}

async function bodies(node: TestNode, name: string): Promise<string[]> {
  return (await node.read(name)).body.toString().split(";").slice(0, -1);
}

/** Copies what is below a prefix of the bucket to another bucket, as an operator would: the mirror first. */
async function copyCluster(client: S3Client, clusterId: string, bucket: string): Promise<void> {
  for (const isMirror of [true, false]) {
    for (let token: string | undefined; ; ) {
      const list = new ListObjectsV2Command({ Bucket: MINIO_BUCKET, Prefix: `${clusterId}/`, ...(token && { ContinuationToken: token }) });
      const page = await client.send(list);
      for (const { Key = "" } of page.Contents ?? []) {
        if (Key.startsWith(`${clusterId}/mirror/`) !== isMirror) continue;
        await client.send(new CopyObjectCommand({ Bucket: bucket, Key, CopySource: `${MINIO_BUCKET}/${Key}` }));
      }
      token = page.NextContinuationToken;
      if (token === undefined) break;
    }
  }
}

/** Appends until the node is killed; what was acknowledged. */
async function writeUntilKilled(node: TestNode, name: string, prefix: string, forMs: number): Promise<string[]> {
  const acknowledged: string[] = [];
  let isOver = false;
  const writing = (async () => {
    for (let number = 0; !isOver; number++) {
      const answer = await node.append(name, `${prefix}.${number};`).catch(() => null);
      if (answer?.status === 200) acknowledged.push(`${prefix}.${number}`);
    }
  })();
  await Bun.sleep(forMs);
  await node.process.kill();
  isOver = true;
  await writing;
  return acknowledged;
}

/** Of a whole database; throws on half of one. */
function commandsIn(path: string): number {
  const database = new Database(path, { readonly: true });
  try {
    expect(database.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
    return database.query<{ head: number }, []>("SELECT head FROM log_head").get()?.head ?? 0;
  } finally {
    database.close();
  }
}

async function loseAndRestore(node: TestNode, serveFlags: readonly string[], restoreFlags: readonly string[]): Promise<void> {
  await node.start(...serveFlags);
  await node.create("/known");
  const acknowledged: string[] = [];
  for (let round = 0; round < ROUNDS; round++) {
    await Bun.sleep(MIRRORED_MS);
    // A stream of the last moment, which may be lost as a whole.
    acknowledged.push(...(await writeUntilKilled(node, "/known", `r${round}`, 300 + 400 * round)));
    expect(acknowledged.length).toBeGreaterThan(0);
    loseDatabase(node);
    // Killed on the way, a restore leaves no database and the next one begins again; behind its last step, a whole one.
    for (const killMs of [150, 300, 450]) {
      await restore(restoreFlags, killMs);
      const path = join(node.dataDirectory, "meta.db");
      if (!existsSync(path)) continue;
      expect(commandsIn(path)).toBeGreaterThan(0);
      loseDatabase(node);
    }
    const { exitCode, output, errors } = await restore(restoreFlags, null);
    expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: "" });
    expect(JSON.parse(output)).toMatchObject({ streams: 1, problems: [], lostStreamCount: 0 });
    const again = await restore(restoreFlags, null);
    expect({ ...again, output: "" }).toEqual({ exitCode: 1, output: "", errors: expect.stringContaining("is there already") });
    await node.start(...serveFlags);
    const found = await bodies(node, "/known");
    expect(new Set(found).size).toBe(found.length);
    expect(acknowledged.filter((body) => !found.includes(body))).toEqual([]);
  }
  expect(await node.process.stop()).toBe(0);
}

test(
  "a node with a mirrored directory and its WAL, and a new database each round",
  async () => {
    await using node = await TestNode.create();
    await loseAndRestore(node, ["--mirror", "on"], ["--data-dir", node.dataDirectory]);
  },
  TEST_MS,
);

test(
  "a lost database beside a full bucket: start and doctor refuse, make none, and name the way back, which is then free",
  async () => {
    await using node = await TestNode.create();
    await node.start("--mirror", "on");
    await node.create("/a");
    await Bun.sleep(MIRRORED_MS);
    await node.process.kill();
    loseDatabase(node);
    const refused = await node.refused({ flags: ["--mirror", "on"] });
    expect(refused.exitCode).toBe(1);
    expect(refused.errors).toContain("pico restore");
    expect(readdirSync(node.dataDirectory).filter((name) => name.startsWith("meta.db"))).toEqual([]);
    const doctor = await PicoCommand.run(["doctor", "--data-dir", node.dataDirectory, "--mirror", "on"]);
    expect([doctor.exitCode, doctor.output]).toEqual([1, expect.stringMatching(/^fail +database .+pico restore/m)]);
    expect(await restore(["--data-dir", node.dataDirectory], null)).toMatchObject({ exitCode: 0, errors: "" });
    await node.start("--mirror", "on");
    expect(await bodies(node, "/a")).toEqual([]);
  },
  TEST_MS,
);

describeOnMinio("restore from a bucket", (minio) => {
  test(
    "on an empty machine, over several losses",
    async () => {
      await using node = await TestNode.create();
      const storage = ["--storage", minio().uri()];
      await loseAndRestore(node, storage, [...storage, "--data-dir", node.dataDirectory]);
    },
    TEST_MS,
  );

  test(
    "the old process, paused while another machine restores, acknowledges nothing more when it goes on",
    async () => {
      await using old = await TestNode.create();
      await using other = await TestNode.create();
      const storage = ["--storage", minio().uri(), "--cluster-id", "paused"];
      await old.start(...storage);
      await old.create("/s");
      expect((await old.append("/s", "old;")).status).toBe(200);
      await Bun.sleep(MIRRORED_MS);
      old.process.signal("SIGSTOP");
      const { exitCode } = await restore([...storage, "--data-dir", other.dataDirectory], null);
      expect(exitCode).toBe(0);
      await other.start(...storage);
      expect((await other.append("/s", "new;")).status).toBe(200);
      old.process.signal("SIGCONT");
      const late = await old.append("/s", "late;").catch(() => null);
      expect(late?.status ?? 503).not.toBe(200);
      // It finds its WAL closed, or that the mirrored log went on without it.
      const exit = await Promise.race([old.process.exited, Bun.sleep(20_000).then(() => null)]);
      expect(exit).toEqual({ exitCode: 1, signal: null });
      expect(await bodies(other, "/s")).toEqual(["old", "new"]);
      expect(await other.process.stop()).toBe(0);
    },
    TEST_MS,
  );

  for (const [what, isWalEmpty] of [
    ["with records in its WAL", false],
    ["whose WAL is empty, only when told that it is one", true],
  ] as const) {
    test(
      `a node starts on what is restored from a copy of its bucket ${what}`,
      async () => {
        await using node = await TestNode.create();
        await using other = await TestNode.create();
        const clusterId = isWalEmpty ? "empty" : "full";
        const cluster = ["--cluster-id", clusterId];
        await node.start("--storage", minio().uri(), ...cluster);
        await node.create("/s");
        if (!isWalEmpty) expect((await node.append("/s", "old;")).status).toBe(200);
        await Bun.sleep(MIRRORED_MS);
        await node.process.kill();
        const bucket = `copy-${clusterId}`;
        await minio().makeBucket(bucket);
        const client = minio().client();
        await copyCluster(client, clusterId, bucket);
        client.destroy();
        const storage = ["--storage", minio().uri().replace(MINIO_BUCKET, bucket), ...cluster];
        const flags = [...storage, "--data-dir", other.dataDirectory];
        const first = await restore(flags, null);
        expect(first.exitCode).toBe(isWalEmpty ? 1 : 0);
        if (isWalEmpty) {
          expect(first.errors).toContain(`whole copy`);
          expect((await restore([...flags, "--force"], null)).exitCode).toBe(0);
        }
        await other.start(...storage);
        expect((await other.append("/s", "new;")).status).toBe(200);
        expect(await bodies(other, "/s")).toEqual(isWalEmpty ? ["new"] : ["old", "new"]);
        expect(await other.process.stop()).toBe(0);
      },
      TEST_MS,
    );
  }
});
