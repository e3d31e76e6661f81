/** An open file of one process: writes go to the page cache at once, `sync` makes pages durable later. */
import { concatBytes } from "../../../src/lib/bytes.ts";
import { PicoError } from "../../../src/lib/errors.ts";
import type { LocalFile } from "../../../src/storage/local-directory.ts";
import type { SimProcess } from "../world/process.ts";
import type { World } from "../world/world.ts";
import type { DiskWeather } from "./disk-weather.ts";
import { never } from "./service-link.ts";
import type { SimDisk, SimInode } from "./sim-disk.ts";

/** What a file needs of the directory that opened it. */
export interface FileSeams {
  readonly world: World;
  readonly process: SimProcess;
  readonly disk: SimDisk;
  readonly weather: () => DiskWeather;
  readonly call: <T>(what: string, operate: () => T) => Promise<T>;
}

export class SimFile implements LocalFile {
  #isClosed = false;
  /** A failed sync: nothing is known about the file, and writing on is the caller's fault (FAULTS W2). */
  #isPoisoned = false;

  constructor(
    readonly name: string,
    private readonly inode: SimInode,
    private readonly seams: FileSeams,
  ) {}

  get sizeBytes(): number {
    return this.inode.cached.length;
  }

  write(parts: readonly Uint8Array[], position: number): void {
    const { world, process, disk } = this.seams;
    if (process.isDead) return;
    const bytes = concatBytes(parts);
    world.check(!this.#isClosed, () => `${process.name} wrote to ${this.name}, which it has closed`);
    world.check(!this.#isPoisoned, () => `${process.name} wrote to ${this.name} after a failed sync of it`);
    world.check(position >= 0 && position + bytes.length <= this.sizeBytes, () => `${process.name} wrote beyond the end of ${this.name}`);
    // The kernel may write pages back whenever it likes.
    if (disk.prng.chance(0.05)) for (const page of this.inode.dirtyPages) if (disk.prng.chance(0.5)) this.inode.storePage(page);

    const label = `${process.name} disk write ${this.name}`;
    world.trace.count("call disk");
    if (world.breakers.pass(process, label, "request")) {
      world.trace.count("fault disk torn write");
      this.inode.write(bytes.subarray(0, disk.prng.below(bytes.length + 1)), position);
      return;
    }
    if (disk.prng.chance(this.seams.weather().writeFailChance)) {
      world.trace.count("fault disk write failed");
      this.inode.write(bytes.subarray(0, disk.prng.below(bytes.length + 1)), position);
      throw new PicoError("storage_failed", `${this.name}: write failed`);
    }
    this.inode.write(bytes, position);
    world.breakers.pass(process, label, "effect");
  }

  sync(): Promise<void> {
    const { process, world, disk, call, weather } = this.seams;
    if (process.isDead) return never();
    const pages = [...this.inode.dirtyPages];
    const fails = disk.prng.chance(weather().syncFailChance);
    return call(`sync ${this.name}`, () => {
      for (const page of pages) this.inode.dirtyPages.delete(page);
      if (!fails) {
        // Pages written again since the call are on the platter too, in whatever state they are now.
        for (const page of pages) this.inode.storePage(page);
        return;
      }
      world.trace.count("fault disk sync failed");
      this.#isPoisoned = true;
      this.inode.failPages(pages, disk.prng);
      throw new PicoError("storage_failed", `${this.name}: sync failed`);
    });
  }

  read(position: number, length: number): Promise<Uint8Array> {
    return this.seams.call(`read ${this.name}`, () => this.inode.cached.slice(position, Math.max(position, position + length)));
  }

  close(): Promise<void> {
    return this.seams.call(`close ${this.name}`, () => {
      this.#isClosed = true;
    });
  }
}
