/**
 * Data objects leave the folder of a real node, and what the file system does not give up is told and tried again
 * (FAULTS G4); behind a delete a database that was set back is refused (FAULTS D1).
 */
import { expect, test } from "bun:test";
import { cpSync, existsSync, rmSync } from "node:fs";
import { basename, join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import { ClusterAnswer } from "../../src/admin/admin-schemas.ts";
import { pinFile } from "../storage/pinned-file.ts";
import { eventually } from "./eventually.ts";
import { TestNode } from "./test-node.ts";

/** A destroyed object stays a minute, and a refused delete is repeated after ten seconds. */
const REMOVED_MS_MAX = 110_000;
const TEST_MS = 280_000;
const FLAGS = ["--wal-upload-interval-ms", "200"];

async function gcOf(node: TestNode): Promise<(typeof ClusterAnswer.static)["gc"]> {
  const body: unknown = JSON.parse(String((await node.admin("/admin/cluster")).body));
  if (!Value.Check(ClusterAnswer, body)) throw new Error("/admin/cluster does not fit its schema");
  return body.gc;
}

function objectsOf(node: TestNode): string[] {
  return node.files("objects").filter((path) => path.includes("/picomq/data/"));
}

test(
  "compacted objects leave the folder; one that the file system keeps is told, and goes by itself when it may; a database from before is refused",
  async () => {
    await using node = await TestNode.create();
    await node.start(...FLAGS);
    await node.create("/a");
    const whole: string[] = [];
    // Enough uploads that the first objects are merged.
    await eventually("objects are destroyed", async () => {
      const body = `${whole.length};`;
      expect((await node.append("/a", body)).status).toBe(200);
      whole.push(body);
      return (await gcOf(node)).backlog > 0;
    });
    const first = objectsOf(node);
    const older = join(node.folder, "older");
    await node.process.kill();
    cpSync(node.dataDirectory, older, { recursive: true });
    // The first that was uploaded is among the first that are merged.
    const [old = ""] = objectsOf(node).toSorted((left, right) => Number(basename(left)) - Number(basename(right)));
    const pinned = await pinFile(old);
    if (typeof pinned === "string") console.warn(`skipped in part, nothing keeps a file: ${pinned}`);
    try {
      await node.start(...FLAGS);
      await eventually("destroyed objects leave the folder", async () => first.some((path) => !existsSync(path)), REMOVED_MS_MAX);
      if (typeof pinned !== "string") {
        await eventually("the refusal is told", async () => (await gcOf(node)).refused > 0, REMOVED_MS_MAX);
        const { lastRefusal, refusedSinceMs, backlog } = await gcOf(node);
        expect([lastRefusal?.code, old.endsWith(lastRefusal?.key ?? "?")]).toEqual(["EBUSY", true]);
        expect(refusedSinceMs).toBeGreaterThan(0);
        expect(backlog).toBeGreaterThan(0);
        expect(String((await node.admin("/metrics")).body)).toMatch(/^pico_removal_refused_objects [1-9]/m);
        await pinned.release();
        await eventually("the pinned object goes too", async () => (await gcOf(node)).refused === 0 && !existsSync(old), REMOVED_MS_MAX);
      }
    } finally {
      if (typeof pinned !== "string") await pinned.release();
    }
    expect(String((await node.read("/a")).body)).toBe(whole.join(""));
    expect(await node.process.stop()).toBe(0);
    // The database of before beside the store of now.
    for (const suffix of ["", "-wal", "-shm"]) {
      const path = join(node.dataDirectory, `meta.db${suffix}`);
      rmSync(path, { force: true });
      if (existsSync(join(older, `meta.db${suffix}`))) cpSync(join(older, `meta.db${suffix}`), path);
    }
    const refused = await node.refused();
    expect(refused.exitCode).toBe(1);
    expect(refused.errors).toContain("restore the newest database");
    expect(objectsOf(node).length).toBeGreaterThan(0);
  },
  TEST_MS,
);
