/**
 * Lists a directory tree in the byte order of whole keys, a page at a time.
 *
 * A folder sorts as if its name ended in `/`, for that is how its keys go on: `a-b` and `a.b` come before
 * what is in `a`, `a0` behind it. Folders that cannot hold a key of the page are not read.
 */
import fs from "node:fs/promises";
import { join } from "node:path";
import { errnoOf, isAbsence } from "./file-error.ts";
import { isKeySegment } from "./object-key.ts";
import type { ListedObject, ListPage } from "./object-store.ts";

/** Stats of one page under way at once. */
const STATS_AT_ONCE = 32;

/** The page of keys that begin with `prefix` and are greater than `after`; `root` is an absolute path. */
export async function listFiles(root: string, prefix: string, after: string | null, limit: number): Promise<ListPage> {
  const keys: string[] = [];
  const top = prefix.slice(0, prefix.lastIndexOf("/") + 1);
  for await (const key of walk(root, top, prefix, after)) {
    keys.push(key);
    if (keys.length > limit) break;
  }
  const page = keys.slice(0, limit);
  const objects: ListedObject[] = [];
  for (let at = 0; at < page.length; at += STATS_AT_ONCE) {
    const found = await Promise.all(page.slice(at, at + STATS_AT_ONCE).map((key) => describe(root, key)));
    for (const object of found) if (object !== null) objects.push(object);
  }
  return { objects, next: keys.length > limit ? (page.at(-1) ?? null) : null };
}

/** Keys below `base`, which is empty or ends in `/`, in order. */
async function* walk(root: string, base: string, prefix: string, after: string | null): AsyncGenerator<string> {
  for (const entry of await readEntries(root, base)) {
    const path = base + entry;
    const isFolder = path.endsWith("/");
    if (!path.startsWith(prefix) && !(isFolder && prefix.startsWith(path))) continue;
    if (after !== null && path <= after && !(isFolder && after.startsWith(path))) continue;
    if (isFolder) yield* walk(root, path, prefix, after);
    else yield path;
  }
}

/** Names in a folder, sorted as keys go on, folders with a `/` behind. None where it does not exist. */
async function readEntries(root: string, base: string): Promise<readonly string[]> {
  if (
    base
      .split("/")
      .slice(0, -1)
      .some((segment) => !isKeySegment(segment))
  )
    return [];
  const entries = await fs.readdir(join(root, base), { withFileTypes: true }).catch((error: unknown) => {
    // A missing folder holds nothing; a missing root is a store that went away.
    if (isAbsence(error) && base !== "") return [];
    throw error;
  });
  const names: string[] = [];
  for (const entry of entries) {
    // Temporary files, and what others put here, have names that no key has.
    if (!isKeySegment(entry.name)) continue;
    if (entry.isFile()) names.push(entry.name);
    else if (entry.isDirectory()) names.push(`${entry.name}/`);
    else if (await isFolderBehindLink(join(root, base, entry.name))) names.push(`${entry.name}/`);
  }
  return names.sort((left, right) => (left < right ? -1 : 1));
}

/** A folder may be a link to another disk; objects themselves are plain files always. */
async function isFolderBehindLink(path: string): Promise<boolean> {
  try {
    return (await fs.stat(path)).isDirectory();
  } catch (error) {
    if (isAbsence(error) || errnoOf(error) === "ELOOP") return false;
    throw error;
  }
}

/** Null where the object was deleted since its folder was read. */
async function describe(root: string, key: string): Promise<ListedObject | null> {
  try {
    const stats = await fs.stat(join(root, key));
    return { key, sizeBytes: stats.size, modifiedMs: Math.floor(stats.mtimeMs) };
  } catch (error) {
    if (isAbsence(error)) return null;
    throw error;
  }
}
