/**
 * The local-disk WAL's directory on `node:fs`. Writes are synchronous and go to the page cache; the sync
 * that makes them durable runs beside the event loop. Files are filled with zeros when they are made, so
 * that later writes change no size and a sync has no journal to wait for.
 *
 * Names that begin with `~` are this module's own: the lock, and files not yet complete. A file appears
 * under its name only when it is zero-filled and synced, so that a crash in between leaves none of wrong
 * size behind.
 */
import fs from "node:fs";
import fsPromises, { type FileHandle } from "node:fs/promises";
import { join, resolve } from "node:path";
import { assert } from "../lib/assert.ts";
import { PicoError } from "../lib/errors.ts";
import { MIB } from "../lib/limits.ts";
import { makeFolder, syncFolder } from "./durable-folder.ts";
import { errnoOf, fileError } from "./file-error.ts";
import type { LocalDirectory, LocalFile } from "./local-directory.ts";
import { isKeySegment } from "./object-key.ts";
import { ProcessLock } from "./process-lock.ts";

const OWN_PREFIX = "~";
const LOCK_NAME = "~lock";
const INCOMPLETE_PREFIX = "~new-";

/** Zeros written at a time when a file is made. */
const FILL_BYTES = MIB;

export class NodeLocalDirectory implements LocalDirectory {
  readonly path: string;
  #lock: ProcessLock | null = null;

  constructor(path: string) {
    this.path = resolve(path);
  }

  async lock(): Promise<void> {
    assert(this.#lock === null, "the directory is locked once");
    await mapErrors("lock", this.path, async () => {
      await makeFolder(this.path);
      this.#lock = ProcessLock.acquire(join(this.path, LOCK_NAME));
      try {
        await this.#removeIncomplete();
      } catch (error) {
        await this.unlock();
        throw error;
      }
    });
  }

  async unlock(): Promise<void> {
    this.#lock?.release();
    this.#lock = null;
  }

  async list(): Promise<readonly string[]> {
    const entries = await mapErrors("list", this.path, () => fsPromises.readdir(this.path, { withFileTypes: true }));
    return entries
      .filter((entry) => entry.isFile() && !entry.name.startsWith(OWN_PREFIX))
      .map((entry) => entry.name)
      .sort();
  }

  async create(name: string, sizeBytes: number): Promise<LocalFile> {
    assert(Number.isSafeInteger(sizeBytes) && sizeBytes >= 0, "a file has a whole number of bytes");
    const path = this.#pathOf("create", name);
    const incomplete = join(this.path, INCOMPLETE_PREFIX + name);
    return mapErrors("create", path, async () => {
      const handle = await fsPromises.open(incomplete, "w+");
      try {
        await fillWithZeros(handle, sizeBytes);
        await handle.sync();
        await fsPromises.link(incomplete, path);
        await fsPromises.unlink(incomplete);
        await syncFolder(this.path);
        return new NodeLocalFile(name, path, sizeBytes, handle);
      } catch (error) {
        await handle.close();
        // Gives the space back; what cannot be removed now goes at the next lock.
        await fsPromises.rm(incomplete, { force: true }).catch(() => undefined);
        throw error;
      }
    });
  }

  async open(name: string): Promise<LocalFile> {
    const path = this.#pathOf("open", name);
    return mapErrors("open", path, async () => {
      const handle = await fsPromises.open(path, "r+");
      try {
        return new NodeLocalFile(name, path, (await handle.stat()).size, handle);
      } catch (error) {
        await handle.close();
        throw error;
      }
    });
  }

  async remove(name: string): Promise<void> {
    const path = this.#pathOf("remove", name);
    await mapErrors("remove", path, async () => {
      try {
        await fsPromises.unlink(path);
      } catch (error) {
        if (errnoOf(error) !== "ENOENT") throw error;
      }
      // Also where it is absent: an earlier removal may not be on the disk yet.
      await syncFolder(this.path);
    });
  }

  async #removeIncomplete(): Promise<void> {
    for (const name of await fsPromises.readdir(this.path)) {
      if (name.startsWith(INCOMPLETE_PREFIX)) await fsPromises.rm(join(this.path, name), { force: true });
    }
  }

  #pathOf(operation: string, name: string): string {
    if (!isKeySegment(name)) {
      throw new PicoError("storage_failed", `${operation} refused: ${JSON.stringify(name)} is not a file name (A-Z a-z 0-9 . _ -)`, {
        operation,
        path: this.path,
      });
    }
    return join(this.path, name);
  }
}

class NodeLocalFile implements LocalFile {
  readonly name: string;
  readonly sizeBytes: number;
  readonly #path: string;
  readonly #handle: FileHandle;
  /** Calls that still use the handle; its number must not go to another file under them. */
  readonly #underWay = new Set<Promise<unknown>>();
  /** Settles with the last sync asked for; never rejects. */
  #lastSync: Promise<void> = Promise.resolve();
  #syncFailure: unknown = null;
  #isClosed = false;

  constructor(name: string, path: string, sizeBytes: number, handle: FileHandle) {
    this.name = name;
    this.#path = path;
    this.sizeBytes = sizeBytes;
    this.#handle = handle;
  }

  write(parts: readonly Uint8Array[], position: number): void {
    let rest = parts.filter((part) => part.length > 0);
    const size = rest.reduce((sum, part) => sum + part.length, 0);
    assert(position >= 0 && position + size <= this.sizeBytes, "a write stays inside its file");
    try {
      this.#checkWritable();
      let at = position;
      while (rest.length > 0) {
        const written = fs.writevSync(this.#handle.fd, rest, at);
        if (written <= 0) throw new Error(`no byte was taken at ${at}`);
        at += written;
        rest = withoutFirst(rest, written);
      }
    } catch (error) {
      throw fileError("write", this.#path, null, error);
    }
  }

  async sync(): Promise<void> {
    // One at a time: of two that overlap the kernel tells only one of a failure that concerns both.
    const turn = this.#lastSync.then(() => this.#syncOnce());
    this.#lastSync = turn.catch(() => undefined);
    try {
      await this.#track(turn);
    } catch (error) {
      throw fileError("sync", this.#path, null, error);
    }
  }

  async read(position: number, length: number, buffer?: Uint8Array): Promise<Uint8Array> {
    const start = Math.min(Math.max(0, position), this.sizeBytes);
    const size = Math.min(Math.max(0, length), this.sizeBytes - start);
    const bytes = buffer !== undefined && buffer.length >= size ? buffer.subarray(0, size) : new Uint8Array(size);
    try {
      this.#checkOpen();
      await this.#track(this.#fill(bytes, start));
      return bytes;
    } catch (error) {
      throw fileError("read", this.#path, null, error);
    }
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay);
    await mapErrors("close", this.#path, () => this.#handle.close());
  }

  async #syncOnce(): Promise<void> {
    this.#checkWritable();
    try {
      await this.#handle.datasync();
    } catch (error) {
      this.#syncFailure = error;
      throw error;
    }
  }

  async #fill(bytes: Uint8Array, position: number): Promise<void> {
    let filled = 0;
    while (filled < bytes.length) {
      const { bytesRead } = await this.#handle.read(bytes, filled, bytes.length - filled, position + filled);
      if (bytesRead === 0) throw new Error(`the file ends at byte ${position + filled}, its size was ${this.sizeBytes}`);
      filled += bytesRead;
    }
  }

  async #track<T>(work: Promise<T>): Promise<T> {
    this.#underWay.add(work);
    try {
      return await work;
    } finally {
      this.#underWay.delete(work);
    }
  }

  #checkOpen(): void {
    if (this.#isClosed) throw new Error("the file is closed");
  }

  /** After a failed sync the kernel may have dropped what was written, and a second sync would succeed. */
  #checkWritable(): void {
    this.#checkOpen();
    if (this.#syncFailure !== null) throw new Error("an earlier sync failed; open the WAL again and recover from what reads back");
  }
}

async function fillWithZeros(handle: FileHandle, sizeBytes: number): Promise<void> {
  const zeros = new Uint8Array(Math.min(FILL_BYTES, sizeBytes));
  let at = 0;
  while (at < sizeBytes) {
    const { bytesWritten } = await handle.write(zeros, 0, Math.min(zeros.length, sizeBytes - at), at);
    if (bytesWritten === 0) throw new Error(`no byte was taken at ${at} of ${sizeBytes}`);
    at += bytesWritten;
  }
}

/** What is left of `parts` when their first `count` bytes are gone. */
function withoutFirst(parts: readonly Uint8Array[], count: number): Uint8Array[] {
  let index = 0;
  let gone = count;
  for (let part = parts[index]; part !== undefined && gone >= part.length; part = parts[index]) {
    gone -= part.length;
    index += 1;
  }
  return parts.slice(index).map((part, i) => (i === 0 ? part.subarray(gone) : part));
}

async function mapErrors<T>(operation: string, path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw fileError(operation, path, null, error);
  }
}
