/** `LocalDirectory` of one process on the disk of its host. */
import { PicoError } from "../../../src/lib/errors.ts";
import type { LocalDirectory, LocalFile } from "../../../src/storage/local-directory.ts";
import type { SimProcess } from "../world/process.ts";
import type { World } from "../world/world.ts";
import { CALM_DISK, type DiskWeather } from "./disk-weather.ts";
import { never } from "./service-link.ts";
import { type SimDisk, SimInode } from "./sim-disk.ts";
import { type FileSeams, SimFile } from "./sim-file.ts";

export class SimLocalDirectory implements LocalDirectory {
  readonly path: string;

  constructor(
    private readonly world: World,
    private readonly process: SimProcess,
    private readonly disk: SimDisk,
    private readonly stormy: DiskWeather,
  ) {
    this.path = `/sim/${disk.name}`;
  }

  get #weather(): DiskWeather {
    return this.world.faultsOn ? this.stormy : CALM_DISK;
  }

  lock(): Promise<void> {
    return this.#call("lock", () => {
      const holder = this.disk.lockHolder;
      if (holder !== null && holder !== this.process && !holder.isDead) {
        throw new PicoError("locked", `${this.path} is locked by ${holder.name}`);
      }
      this.disk.lockHolder = this.process;
    });
  }

  unlock(): Promise<void> {
    return this.#call("unlock", () => {
      if (this.disk.lockHolder === this.process) this.disk.lockHolder = null;
    });
  }

  list(): Promise<readonly string[]> {
    return this.#call("list", () => [...this.disk.entries.keys()].sort());
  }

  async create(name: string, sizeBytes: number): Promise<LocalFile> {
    const inode = await this.#call(`create ${name}`, () => {
      if (this.disk.entries.has(name)) throw new PicoError("storage_failed", `${this.path}/${name} exists`);
      if (this.disk.isFull) {
        this.world.trace.count("fault disk full");
        throw new PicoError("storage_full", `${this.path}: no space for ${name}`);
      }
      // A crash from here on may leave a file that is too short.
      const made = new SimInode(this.disk.prng.below(sizeBytes + 1));
      this.disk.entries.set(name, made);
      return made;
    });
    await this.#call(`fill ${name}`, () => {
      inode.cached = new Uint8Array(sizeBytes);
    });
    await this.#call(`sync ${name}`, () => {
      inode.storeAll();
      this.disk.durableEntries.set(name, inode);
    });
    return new SimFile(name, inode, this.#fileSeams());
  }

  open(name: string): Promise<LocalFile> {
    return this.#call(`open ${name}`, () => {
      const inode = this.disk.entries.get(name);
      if (inode === undefined) throw new PicoError("storage_failed", `${this.path}/${name} does not exist`);
      return new SimFile(name, inode, this.#fileSeams());
    });
  }

  async remove(name: string): Promise<void> {
    await this.#call(`remove ${name}`, () => {
      this.disk.entries.delete(name);
    });
    await this.#call("sync directory", () => {
      this.disk.durableEntries.delete(name);
    });
  }

  #fileSeams(): FileSeams {
    return {
      world: this.world,
      process: this.process,
      disk: this.disk,
      weather: () => this.#weather,
      call: (what, operate) => this.#call(what, operate),
    };
  }

  /** Local calls are never lost: they happen after a delay, unless the process died before. */
  #call<T>(what: string, operate: () => T): Promise<T> {
    const { world, process, disk } = this;
    const label = `${process.name} disk ${what}`;
    if (process.isDead) return never();
    world.trace.count("call disk");
    if (world.breakers.pass(process, label, "request")) return never();
    return new Promise<T>((resolve, reject) => {
      world.scheduler.schedule(disk.prng.around(this.#weather.delayMs), label, () => {
        process.deliver(() => {
          let answer: () => void;
          try {
            const value = operate();
            answer = () => resolve(value);
          } catch (error) {
            if (!(error instanceof PicoError)) world.record(error);
            answer = () => reject(error);
          }
          if (!world.breakers.pass(process, label, "effect")) process.deliver(answer);
        });
      });
    });
  }
}
