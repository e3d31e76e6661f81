/**
 * Folders that survive a power cut. A new directory entry is durable only when the directory that holds
 * it is synced, so making a folder means syncing its parent, and adding a file means syncing its folder.
 */
import fs from "node:fs/promises";
import { dirname, join } from "node:path";
import { errnoOf, isAbsence } from "./file-error.ts";

/** Resolves when every entry that the folder has now is on the disk. */
export async function syncFolder(path: string): Promise<void> {
  const handle = await fs.open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Makes the folder and the missing ones above it, durably. The entry of an existing folder is synced too:
 * an earlier process may have died between making it and syncing it. A parent that we may not read is
 * left alone, which happens only where somebody else made the folder.
 */
export async function makeFolder(path: string): Promise<void> {
  const firstMade = await fs.mkdir(path, { recursive: true });
  const parent = dirname(path);
  try {
    await syncFolder(parent);
  } catch (error) {
    const isForeign = firstMade === undefined && (errnoOf(error) === "EACCES" || errnoOf(error) === "EPERM");
    if (!isForeign) throw error;
  }
  if (firstMade === undefined) return;
  let made = parent;
  while (made.length >= firstMade.length) {
    made = dirname(made);
    await syncFolder(made);
  }
}

/**
 * Folders below a root that exists, by their paths relative to it (`""` for itself). Remembers which are known to
 * be durable, so that each is made and synced once, and which are in doubt: after a failed sync the kernel has
 * told of the error, a second sync would succeed on nothing, and nothing in the folder is vouched for until
 * another process reads what the disk holds (FAULTS W2).
 */
export class DurableFolders {
  readonly #root: string;
  readonly #known = new Set<string>();
  readonly #doubtful = new Set<string>();

  constructor(root: string) {
    this.#root = root;
  }

  /** Resolves when the folder exists durably. */
  async ensure(relative: string): Promise<void> {
    if (relative === "" || this.#known.has(relative)) return;
    const slash = relative.lastIndexOf("/");
    const parent = slash === -1 ? "" : relative.slice(0, slash);
    await this.ensure(parent);
    try {
      await fs.mkdir(join(this.#root, relative));
    } catch (error) {
      if (errnoOf(error) !== "EEXIST") throw error;
    }
    await this.sync(parent);
    if (this.#known.size >= KNOWN_FOLDERS_MAX) this.#known.clear();
    this.#known.add(relative);
  }

  /** Syncs the folder after a change in it; a failure puts it in doubt. */
  async sync(relative: string): Promise<void> {
    this.checkDoubt(relative);
    try {
      await syncFolder(join(this.#root, relative));
    } catch (error) {
      if (!isAbsence(error)) this.#doubtful.add(relative);
      throw error;
    }
  }

  /** Throws for a folder in doubt. */
  checkDoubt(relative: string): void {
    if (!this.#doubtful.has(relative)) return;
    throw new Error(`an earlier sync of the folder ${JSON.stringify(relative)} failed; restart to read what the disk holds`);
  }

  /** Forgets which are known: somebody removed a folder. */
  forget(): void {
    this.#known.clear();
  }
}

/** Beyond, the memory is emptied; that costs a sync a folder, nothing else. */
const KNOWN_FOLDERS_MAX = 10_000;
