/** What stands at a path of the file system, for whoever decides by that and opens nothing. */
import fs from "node:fs/promises";
import { inFiles, isAbsence } from "./file-error.ts";

export interface PathFacts {
  readonly kind: "file" | "folder" | "other";
  readonly sizeBytes: number;
}

/** Null: nothing is there. Throws `storage_failed`. */
export function lookAtPath(path: string): Promise<PathFacts | null> {
  return inFiles("open", path, async () => {
    try {
      const stats = await fs.stat(path);
      return { kind: stats.isFile() ? "file" : stats.isDirectory() ? "folder" : "other", sizeBytes: stats.size };
    } catch (error) {
      if (isAbsence(error)) return null;
      throw error;
    }
  });
}

/** Nothing, or an empty file: what a start may make a file from. Throws `storage_failed`. */
export async function isUnwritten(path: string): Promise<boolean> {
  const facts = await lookAtPath(path);
  return facts === null || (facts.kind === "file" && facts.sizeBytes === 0);
}

/** Unordered; none where there is no folder. Throws `storage_failed`. */
export function namesInFolder(path: string): Promise<readonly string[]> {
  return inFiles("open", path, async () => {
    try {
      return await fs.readdir(path);
    } catch (error) {
      if (isAbsence(error)) return [];
      throw error;
    }
  });
}
