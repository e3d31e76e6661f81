import { expect, test } from "bun:test";
import fs from "node:fs/promises";
import { isUnwritten, lookAtPath, namesInFolder } from "../../src/storage/path-facts.ts";
import { codeOf } from "../support/code-of.ts";
import { makeTemporaryFolder } from "./temporary-folder.ts";

test("a path is told from nothing, a file, a folder and what is neither", async () => {
  await using temporary = await makeTemporaryFolder();
  const { path } = temporary;
  await Bun.write(`${path}/empty`, "");
  await Bun.write(`${path}/full`, "abc");
  expect(await lookAtPath(`${path}/full`)).toEqual({ kind: "file", sizeBytes: 3 });
  expect(await lookAtPath(path)).toMatchObject({ kind: "folder" });
  expect(await lookAtPath("/dev/null")).toMatchObject({ kind: "other" });
  for (const absent of ["none", "none/below", "full/below"]) expect(await lookAtPath(`${path}/${absent}`)).toBeNull();
  const unwritten = [];
  for (const name of ["empty", "full", "none", "."]) if (await isUnwritten(`${path}/${name}`)) unwritten.push(name);
  expect(unwritten).toEqual(["empty", "none"]);
  expect((await namesInFolder(path)).toSorted()).toEqual(["empty", "full"]);
  expect(await namesInFolder(`${path}/none`)).toEqual([]);
});

test("a path that cannot be looked at is not taken for an absent one", async () => {
  await using temporary = await makeTemporaryFolder();
  const loop = `${temporary.path}/loop`;
  await fs.symlink(loop, loop);
  expect(await codeOf(() => lookAtPath(loop))).toBe("storage_failed");
  expect(await codeOf(() => isUnwritten(loop))).toBe("storage_failed");
  expect(await codeOf(() => namesInFolder(loop))).toBe("storage_failed");
});
