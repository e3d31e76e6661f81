/**
 * The disk of a simulated host, and what a power cut leaves of it. It outlives the processes that write
 * to it: a killed process loses nothing that it wrote (the page cache stays), a power cut loses, page by
 * page and torn at sectors, whatever was not synced, directory entries included.
 */
import type { Prng } from "../world/prng.ts";
import type { SimProcess } from "../world/process.ts";

export const PAGE_BYTES = 4096;
const SECTOR_BYTES = 512;

/** Content of a file: as processes see it, and as the platter has it. */
export class SimInode {
  cached: Uint8Array;
  durable: Uint8Array;
  /** Pages written since they were last synced. */
  dirtyPages = new Set<number>();

  constructor(sizeBytes: number) {
    this.cached = new Uint8Array(sizeBytes);
    this.durable = new Uint8Array(0);
  }

  /** Writes through the page cache; the position must lie inside the file. */
  write(bytes: Uint8Array, position: number): void {
    this.cached.set(bytes, position);
    if (bytes.length === 0) return;
    const last = Math.floor((position + bytes.length - 1) / PAGE_BYTES);
    for (let page = Math.floor(position / PAGE_BYTES); page <= last; page++) this.dirtyPages.add(page);
  }

  /** The page is on the platter as it is now, and the file there is large enough to hold it. */
  storePage(page: number): void {
    if (this.durable.length < this.cached.length) {
      const grown = new Uint8Array(this.cached.length);
      grown.set(this.durable);
      this.durable = grown;
    }
    const start = page * PAGE_BYTES;
    this.durable.set(this.cached.subarray(start, start + PAGE_BYTES), start);
  }

  /** What a failed write-back leaves: each page stored or not, none dirty any more, some dropped from the cache. */
  failPages(pages: Iterable<number>, prng: Prng): void {
    for (const page of pages) {
      const start = page * PAGE_BYTES;
      if (prng.chance(0.3)) this.storePage(page);
      else if (prng.chance(0.5)) this.cached.set(this.durable.subarray(start, start + PAGE_BYTES), start);
    }
  }

  /** The whole file is on the platter, its size too. */
  storeAll(): void {
    this.durable = this.cached.slice();
    this.dirtyPages.clear();
  }

  /** Each sector of a dirty page made it to the platter or did not; then the cache is gone. */
  losePower(prng: Prng): void {
    if (this.durable.length < this.cached.length) {
      // A file that never was synced may have any size up to the one it was growing to.
      const grown = new Uint8Array(prng.between(this.durable.length, this.cached.length));
      grown.set(this.durable);
      this.durable = grown;
    }
    for (const page of [...this.dirtyPages].sort((left, right) => left - right)) {
      if (prng.chance(0.4)) continue;
      const isTorn = prng.chance(0.5);
      for (let sector = 0; sector < PAGE_BYTES / SECTOR_BYTES; sector++) {
        if (isTorn && prng.chance(0.5)) continue;
        const start = page * PAGE_BYTES + sector * SECTOR_BYTES;
        const end = Math.min(start + SECTOR_BYTES, this.durable.length);
        if (start < end) this.durable.set(this.cached.subarray(start, end), start);
      }
    }
    this.dirtyPages.clear();
    this.cached = this.durable.slice();
  }
}

export class SimDisk {
  /** Directory entries as processes see them. */
  entries = new Map<string, SimInode>();
  /** Directory entries as the platter has them. */
  durableEntries = new Map<string, SimInode>();
  lockHolder: SimProcess | null = null;
  /** No space for new files while true. */
  isFull = false;

  constructor(
    readonly name: string,
    readonly prng: Prng,
  ) {}

  /** An unsynced creation or removal may or may not have happened. */
  losePower(): void {
    const names = [...new Set([...this.entries.keys(), ...this.durableEntries.keys()])].sort();
    const left = new Map<string, SimInode>();
    for (const name of names) {
      const cached = this.entries.get(name);
      const durable = this.durableEntries.get(name);
      const kept = cached === durable || this.prng.chance(0.5) ? durable : cached;
      if (kept !== undefined) left.set(name, kept);
    }
    for (const inode of new Set(left.values())) inode.losePower(this.prng);
    this.entries = left;
    this.durableEntries = new Map(left);
  }

  /** A new, empty disk in the same host. */
  wipe(): void {
    this.entries = new Map();
    this.durableEntries = new Map();
  }
}
