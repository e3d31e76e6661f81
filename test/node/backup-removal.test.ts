/** `pico backup` whose node removes objects under it. */
import { expect, test } from "bun:test";
import fs from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/lib/clock.ts";
import { systemRandom } from "../../src/lib/random.ts";
import type { Command } from "../../src/metadata/command.ts";
import { decodeBatch, encodeBatch, encodeCommand } from "../../src/metadata/command-format.ts";
import { type BackupProgress, backUp } from "../../src/node/backup.ts";
import { walFromUri } from "../../src/node/settings.ts";
import { openSqliteFile } from "../../src/sql/sqlite-database.ts";
import { SqliteStatements } from "../../src/sql/sqlite-statements.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { runCommand, serveNode } from "../support/command.ts";
import { silentLog } from "../support/silent-log.ts";

const TIMEOUT_MS = 60_000;

/** Says commands in the name of the life that wrote last, as it would while it goes on. */
function speak(path: string, commandsOf: (said: readonly Command[]) => readonly Command[]): void {
  const { database } = openSqliteFile(path);
  try {
    const statements = new SqliteStatements(database, () => systemClock.nowMs());
    const { rows } = statements.readLog(0, 1000);
    const last = rows.at(-1);
    if (last === undefined) throw new Error("the log has rows");
    const commands = commandsOf(rows.flatMap(({ payload }) => decodeBatch(payload, "test row").commands));
    const insert = {
      rowId: "f".repeat(32),
      proposer: last.proposer,
      batch: last.batch + 1,
      payload: encodeBatch(commands.map(encodeCommand)),
      fences: [],
    };
    expect(statements.insertBatch(insert)).toMatchObject({ inserted: true });
  } finally {
    database.close();
  }
}

test(
  "an object that the node destroys and removes under a backup is left out of it, and nothing has to be held",
  async () => {
    await using folder = await makeTemporaryFolder();
    const data = join(folder.path, "data");
    const target = join(folder.path, "copy");
    const node = await serveNode(data, ["--wal-upload-interval-ms", "200"]);
    const answer = await fetch(`${node.picoUrl}/s`, { method: "PUT", headers: { "content-type": "text/plain" }, body: "kept" });
    expect(answer.status).toBe(201);
    const objects = () =>
      fs.existsSync(join(data, "objects/picomq/data"))
        ? fs.readdirSync(join(data, "objects"), { recursive: true, encoding: "utf8" }).filter((path) => /\/data\/.*\/\d+$/.test(path))
        : [];
    while (objects().length === 0) await Bun.sleep(5);
    // Until its commit is in the log.
    while (!(await runCommand(["backup", "--to", join(folder.path, "first"), "--data-dir", data])).output.includes("1 data object (")) {
      fs.rmSync(join(folder.path, "first"), { recursive: true });
    }
    await node.kill();
    let rounds = 0;
    const onProgress = ({ step, done }: BackupProgress) => {
      if (step === "metadata") rounds += 1;
      if (step !== "objects" || done > 0 || rounds > 1) return;
      speak(join(data, "meta.db"), (said) => {
        const streamIds = said.flatMap((command) => (command.type === "create_stream" ? command.streamId : []));
        const objectIds = said.flatMap((command) => (command.type === "commit" ? command.objects.map(({ objectId }) => objectId) : []));
        return [...streamIds.map((streamId) => ({ type: "delete_stream", streamId }) as const), { type: "destroy_objects", objectIds }];
      });
      for (const path of objects()) fs.rmSync(join(data, "objects", path));
    };
    const places = {
      clusterId: "picomq",
      dataDirectory: data,
      metadata: { kind: "sqlite-file", path: join(data, "meta.db") },
      storage: { kind: "file", id: 1, directory: join(data, "objects") },
      wal: walFromUri({ id: 2, scheme: "file", path: join(data, "wal"), parameters: new Map() }, (path) => path, "--wal"),
    } as const;
    const report = await backUp({ places, target, clock: systemClock, random: systemRandom, log: silentLog, onProgress });
    expect([rounds, report.objects, report.streams]).toEqual([2, 0, 0]);
    const restored = await serveNode(target);
    expect((await fetch(`${restored.picoUrl}/s`)).status).toBe(404);
    expect(await restored.stop()).toBe(0);
  },
  TIMEOUT_MS,
);
