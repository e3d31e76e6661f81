import { expect, spyOn, test } from "bun:test";
import fs from "node:fs";
import { join } from "node:path";
import { openSqliteFile } from "../../src/sql/sqlite-database.ts";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";

test("a commit is on the disk when it is answered: write-ahead journal, synced at each commit", async () => {
  await using folder = await makeTemporaryFolder();
  const { database } = openSqliteFile(join(folder.path, "meta.db"));
  const settings = ["journal_mode", "synchronous"].map((name) => database.query(`PRAGMA ${name}`).get());
  database.close();
  // 2 is FULL; 1, NORMAL, would lose the last commits at a power cut.
  expect(settings).toEqual([{ journal_mode: "wal" }, { synchronous: 2n }]);
});

test("folders that are made for the database are synced into the one that was there", async () => {
  await using folder = await makeTemporaryFolder();
  const paths = new Map<number, string>();
  const synced: string[] = [];
  const { openSync, fsyncSync } = fs;
  const opened = spyOn(fs, "openSync").mockImplementation((...parameters) => {
    const descriptor = openSync(...parameters);
    paths.set(descriptor, String(parameters[0]));
    return descriptor;
  });
  const syncs = spyOn(fs, "fsyncSync").mockImplementation((descriptor) => {
    fsyncSync(descriptor);
    synced.push(paths.get(descriptor) ?? "");
  });
  try {
    openSqliteFile(join(folder.path, "new/deep/meta.db")).database.close();
  } finally {
    opened.mockRestore();
    syncs.mockRestore();
  }
  expect(synced.sort()).toEqual([folder.path, join(folder.path, "new")]);
});
