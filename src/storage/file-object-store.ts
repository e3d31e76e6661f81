/**
 * The object store in a directory: a key is a path below it. Objects are written to a temporary name,
 * synced, and linked into place, so that a key names a whole object or none, and link(2) decides between
 * two who create the same key, also when they are different processes.
 *
 * ```
 * <root>/<cluster>/data/5f/…   objects, one file each
 * <root>/~temporary/<random>   being written; `~` cannot occur in a key
 * ```
 *
 * Invariants:
 * - Nothing is answered before it is durable: not `created`, not `exists`, not `deleted`.
 * - A folder whose sync failed is in doubt until the process ends. Its objects are neither confirmed nor
 *   denied meanwhile, and no folder is made in it.
 * - Folders are never removed, so that nobody creates in one that just went away.
 *
 * Where the file system has no hard links every create is refused. An object cannot have the key of a
 * folder (`a` beside `a/b`): that create is refused too.
 */
import fs from "node:fs/promises";
import { join, resolve } from "node:path";
import type { Clock } from "../lib/clock.ts";
import { messageOf, PicoError } from "../lib/errors.ts";
import { FILE_CALL_TIMEOUT_MS, TEMPORARY_FILE_KEEP_MS } from "../lib/limits.ts";
import { type Random, randomHex } from "../lib/random.ts";
import { withDeadline } from "./call-deadline.ts";
import { DurableFolders, makeFolder } from "./durable-folder.ts";
import { errnoOf, fileError, isAbsence, unknownFileOutcome } from "./file-error.ts";
import { listFiles } from "./file-object-list.ts";
import { checkDeleteKeys, checkListArguments, checkObjectKey, clipRange } from "./object-key.ts";
import type { DeleteOutcome, ListPage, ObjectStore } from "./object-store.ts";

const TEMPORARY_FOLDER = "~temporary";

export interface FileObjectStoreOptions {
  /** The root directory; made if missing. */
  readonly path: string;
  readonly clock: Clock;
  readonly random: Random;
  /** @default FILE_CALL_TIMEOUT_MS */
  readonly timeoutMs?: number;
}

/** How far a create came, so that a deadline can tell what it interrupts. */
interface CreateProgress {
  /** The deadline passed: the object must not be linked any more. */
  isGivenUp: boolean;
  /** The link was asked for: the object may exist. */
  isLinking: boolean;
}

export class FileObjectStore implements ObjectStore {
  readonly description: string;
  readonly #root: string;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #timeoutMs: number;
  readonly #folders: DurableFolders;
  #isClosed = false;

  private constructor(options: FileObjectStoreOptions) {
    this.#root = resolve(options.path);
    this.#clock = options.clock;
    this.#random = options.random;
    this.#timeoutMs = options.timeoutMs ?? FILE_CALL_TIMEOUT_MS;
    this.#folders = new DurableFolders(this.#root);
    this.description = `file://${this.#root}`;
  }

  /**
   * Makes the root if missing and removes temporary files that nobody writes any more.
   * Throws `storage_failed` or `storage_full`.
   */
  static async open(options: FileObjectStoreOptions): Promise<FileObjectStore> {
    const store = new FileObjectStore(options);
    await store.#bounded("open", null, store.#prepare());
    return store;
  }

  async create(key: string, bytes: Uint8Array): Promise<"created" | "exists"> {
    this.#checkCall("create", key);
    const progress: CreateProgress = { isGivenUp: false, isLinking: false };
    return withDeadline(this.#clock, this.#timeoutMs, this.#create(key, bytes, progress), () => {
      progress.isGivenUp = true;
      const error = this.#lateness("create");
      const path = this.#pathOf(key);
      return progress.isLinking ? unknownFileOutcome("create", path, key, error) : fileError("create", path, key, error);
    });
  }

  async read(key: string, range?: { readonly start: number; readonly end: number }): Promise<Uint8Array | null> {
    this.#checkCall("read", key);
    return this.#bounded("read", key, this.#read(key, range));
  }

  async size(key: string): Promise<number | null> {
    this.#checkCall("size", key);
    return this.#bounded("size", key, this.#size(key));
  }

  async list(prefix: string, options: { readonly after: string | null; readonly limit: number }): Promise<ListPage> {
    this.#checkOpen("list");
    checkListArguments(prefix, options.limit);
    return this.#bounded("list", prefix, listFiles(this.#root, prefix, options.after, options.limit));
  }

  async delete(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    this.#checkOpen("delete");
    checkDeleteKeys(keys);
    return withDeadline(this.#clock, this.#timeoutMs, this.#delete(keys), () =>
      unknownFileOutcome("delete", this.#root, keys[0] ?? null, this.#lateness("delete")),
    );
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  async #prepare(): Promise<void> {
    await makeFolder(this.#root);
    await this.#folders.ensure(TEMPORARY_FOLDER);
    const folder = join(this.#root, TEMPORARY_FOLDER);
    for (const name of await fs.readdir(folder)) {
      const path = join(folder, name);
      const ageMs = await fs.stat(path).then(
        (stats) => this.#clock.nowMs() - stats.mtimeMs,
        () => 0, // its writer has just removed it
      );
      if (ageMs > TEMPORARY_FILE_KEEP_MS) await fs.rm(path, { force: true });
    }
  }

  async #create(key: string, bytes: Uint8Array, progress: CreateProgress): Promise<"created" | "exists"> {
    const temporary = join(this.#root, TEMPORARY_FOLDER, randomHex(this.#random, 16));
    let outcome: "created" | "exists";
    try {
      await this.#folders.ensure(folderOf(key));
      await writeSynced(temporary, bytes);
      outcome = await this.#link(temporary, key, progress);
    } catch (error) {
      throw fileError("create", this.#pathOf(key), key, error);
    } finally {
      // What cannot be removed now is removed when a store is opened here an hour later.
      await fs.rm(temporary, { force: true }).catch(() => undefined);
    }
    try {
      await this.#folders.sync(folderOf(key));
    } catch (error) {
      throw unknownFileOutcome("create", this.#pathOf(key), key, error);
    }
    return outcome;
  }

  async #link(temporary: string, key: string, progress: CreateProgress): Promise<"created" | "exists"> {
    const path = this.#pathOf(key);
    for (let attempt = 1; ; attempt++) {
      if (progress.isGivenUp) throw this.#lateness("create");
      progress.isLinking = true;
      try {
        await fs.link(temporary, path);
        return "created";
      } catch (error) {
        progress.isLinking = false;
        if (errnoOf(error) === "EEXIST") {
          if ((await fs.stat(path)).isFile()) return "exists";
          throw new Error("a folder has this name");
        }
        // Somebody removed the folder behind our back; make it once more.
        if (errnoOf(error) !== "ENOENT" || attempt > 1) throw error;
        this.#folders.forget();
        await this.#folders.ensure(folderOf(key));
      }
    }
  }

  async #read(key: string, range: { readonly start: number; readonly end: number } | undefined): Promise<Uint8Array | null> {
    const handle = await fs.open(this.#pathOf(key), "r").catch(nullIfAbsent);
    if (handle === null) return null;
    try {
      const stats = await handle.stat();
      if (!stats.isFile()) return null;
      const { start, end } = clipRange(range, stats.size);
      const bytes = new Uint8Array(end - start);
      let filled = 0;
      while (filled < bytes.length) {
        const { bytesRead } = await handle.read(bytes, filled, bytes.length - filled, start + filled);
        if (bytesRead === 0) throw new Error(`the file ends at byte ${start + filled}, its size says ${stats.size}`);
        filled += bytesRead;
      }
      return bytes;
    } finally {
      await handle.close();
    }
  }

  async #size(key: string): Promise<number | null> {
    const stats = await fs.stat(this.#pathOf(key)).catch(nullIfAbsent);
    return stats?.isFile() ? stats.size : null;
  }

  async #delete(keys: readonly string[]): Promise<readonly DeleteOutcome[]> {
    const refusals = new Map<string, DeleteOutcome>();
    const folders = new Map<string, string[]>();
    for (const key of keys) {
      try {
        await this.#unlink(key);
        const folder = folderOf(key);
        const inFolder = folders.get(folder);
        if (inFolder === undefined) folders.set(folder, [key]);
        else inFolder.push(key);
      } catch (error) {
        refusals.set(key, refusal(key, error));
      }
    }
    for (const [folder, inFolder] of folders) {
      try {
        await this.#folders.sync(folder);
      } catch (error) {
        // A folder that never existed holds nothing that could come back.
        if (!isAbsence(error)) for (const key of inFolder) refusals.set(key, refusal(key, error));
      }
    }
    return keys.map((key) => refusals.get(key) ?? { key, deleted: true });
  }

  async #unlink(key: string): Promise<void> {
    const path = this.#pathOf(key);
    try {
      await fs.unlink(path);
    } catch (error) {
      if (isAbsence(error)) return;
      // Where a folder has the name, there is no object of that key.
      if ((await fs.stat(path)).isFile()) throw error;
    }
  }

  #checkOpen(operation: string): void {
    if (this.#isClosed) throw new PicoError("storage_failed", `${operation} refused: the store is closed`, { operation });
  }

  #checkCall(operation: string, key: string): void {
    this.#checkOpen(operation);
    checkObjectKey(operation, key);
    try {
      this.#folders.checkDoubt(folderOf(key));
    } catch (error) {
      throw fileError(operation, this.#pathOf(key), key, error);
    }
  }

  /** Maps errors and the deadline of a call that changes nothing. */
  #bounded<T>(operation: string, key: string | null, work: Promise<T>): Promise<T> {
    const path = key === null ? this.#root : this.#pathOf(key);
    const mapped = work.catch((error: unknown) => {
      throw fileError(operation, path, key, error);
    });
    return withDeadline(this.#clock, this.#timeoutMs, mapped, () => fileError(operation, path, key, this.#lateness(operation)));
  }

  #lateness(operation: string): Error {
    return new Error(`${operation} had no answer within ${this.#timeoutMs} ms`);
  }

  #pathOf(key: string): string {
    return `${this.#root}/${key}`;
  }
}

/** The folder of a key, relative to the root: `""` for the root itself. */
function folderOf(key: string): string {
  const slash = key.lastIndexOf("/");
  return slash === -1 ? "" : key.slice(0, slash);
}

function nullIfAbsent(error: unknown): null {
  if (isAbsence(error)) return null;
  throw error;
}

function refusal(key: string, error: unknown): DeleteOutcome {
  return { key, deleted: false, code: errnoOf(error) ?? "in_doubt", message: messageOf(error) };
}

/** Writes a new file and syncs its contents; its directory entry is not synced. */
async function writeSynced(path: string, bytes: Uint8Array): Promise<void> {
  const handle = await fs.open(path, "wx");
  try {
    let written = 0;
    while (written < bytes.length) {
      const { bytesWritten } = await handle.write(bytes, written, bytes.length - written);
      if (bytesWritten === 0) throw new Error(`no byte was taken at ${written} of ${bytes.length}`);
      written += bytesWritten;
    }
    await handle.datasync();
  } finally {
    await handle.close();
  }
}
