/** A `LocalDirectory` in memory that counts what is synced: it can fail a call, fill up, or lose its power. */
import { PicoError } from "../../src/lib/errors.ts";
import type { Random } from "../../src/lib/random.ts";
import type { LocalDirectory, LocalFile } from "../../src/storage/local-directory.ts";

const PAGE_BYTES = 4096;

interface Inode {
  /** What a process sees. */
  cached: Uint8Array;
  /** What survives a power cut. */
  stored: Uint8Array;
  readonly dirtyPages: Set<number>;
}

export class MemoryDirectory implements LocalDirectory {
  readonly path = "/memory/wal";
  readonly files = new Map<string, Inode>();
  isLocked = false;
  /** Bytes that files may take together. */
  capacityBytes = Number.POSITIVE_INFINITY;
  /** Called before each call takes effect; may throw or wait. */
  onSync: (name: string) => Promise<void> | void = () => {};
  onWrite: (name: string, position: number) => void = () => {};
  onRemove: (name: string) => void = () => {};
  /** Every call that changed something, in order. */
  readonly changes: string[] = [];

  async lock(): Promise<void> {
    if (this.isLocked) throw new PicoError("locked", `${this.path} is locked`);
    this.isLocked = true;
  }

  async unlock(): Promise<void> {
    this.isLocked = false;
  }

  async list(): Promise<readonly string[]> {
    return [...this.files.keys()].sort();
  }

  async create(name: string, sizeBytes: number): Promise<LocalFile> {
    if (this.files.has(name)) throw new PicoError("storage_failed", `${name} exists`);
    let usedBytes = 0;
    for (const { cached } of this.files.values()) usedBytes += cached.length;
    this.changes.push(`create ${name}`);
    const inode: Inode = { cached: new Uint8Array(0), stored: new Uint8Array(0), dirtyPages: new Set() };
    // A full disk leaves the short file behind, as a plain file system would.
    this.files.set(name, inode);
    if (usedBytes + sizeBytes > this.capacityBytes) throw new PicoError("storage_full", `no space for ${name}`);
    inode.cached = new Uint8Array(sizeBytes);
    inode.stored = new Uint8Array(sizeBytes);
    return this.#open(name, inode);
  }

  async open(name: string): Promise<LocalFile> {
    const inode = this.files.get(name);
    if (inode === undefined) throw new PicoError("storage_failed", `${name} does not exist`);
    return this.#open(name, inode);
  }

  async remove(name: string): Promise<void> {
    this.onRemove(name);
    this.changes.push(`remove ${name}`);
    this.files.delete(name);
  }

  #open(name: string, inode: Inode): LocalFile {
    return {
      name,
      sizeBytes: inode.cached.length,
      write: (parts, position) => {
        this.onWrite(name, position);
        this.changes.push(`write ${name}`);
        let at = position;
        for (const part of parts) {
          if (at + part.length > inode.cached.length) throw new Error("write beyond the end");
          inode.cached.set(part, at);
          at += part.length;
        }
        for (let page = Math.floor(position / PAGE_BYTES); page * PAGE_BYTES < at; page++) inode.dirtyPages.add(page);
      },
      sync: async () => {
        const pages = [...inode.dirtyPages];
        try {
          await this.onSync(name);
          for (const page of pages) storePage(inode, page);
        } finally {
          // After a failed sync too, as Linux does it: no later sync stores what this one did not.
          for (const page of pages) inode.dirtyPages.delete(page);
        }
      },
      read: async (position, length) => inode.cached.slice(position, position + length),
      close: async () => {},
    };
  }

  /** The process dies: what it wrote stays, synced or not. */
  kill(): void {
    this.isLocked = false;
    this.onSync = () => {};
    this.onWrite = () => {};
    this.onRemove = () => {};
  }

  /** The power fails: of the pages that were not synced any may be on the disk, whole or torn. */
  powerCut(random: Random): void {
    this.kill();
    for (const inode of this.files.values()) {
      for (const page of inode.dirtyPages) {
        const luck = random.fraction();
        if (luck < 0.4) storePage(inode, page);
        else if (luck < 0.6) storePage(inode, page, 512 * Math.floor(random.fraction() * 8));
      }
      inode.dirtyPages.clear();
      inode.cached = inode.stored.slice();
    }
  }

  /** Every byte as a process sees it. */
  snapshot(): Record<string, string> {
    return Object.fromEntries([...this.files].map(([name, { cached }]) => [name, Bun.hash(cached).toString()]));
  }
}

function storePage(inode: Inode, page: number, bytes = PAGE_BYTES): void {
  const start = page * PAGE_BYTES;
  inode.stored.set(inode.cached.subarray(start, start + bytes), start);
}
