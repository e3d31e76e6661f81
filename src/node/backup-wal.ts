/**
 * Both ends of the copy of a local-disk WAL: reading one that its node may be writing, and writing one
 * that nobody uses yet.
 */
import { decodeSegment, describeSegment } from "../engine/wal-segment-format.ts";
import { LocalDiskWal } from "../engine/wal-store-local.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import type { Random } from "../lib/random.ts";
import { type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { LocalDirectory, LocalFile } from "../storage/local-directory.ts";
import { NodeLocalDirectory } from "../storage/local-directory-node.ts";

/**
 * What a WAL holds above a position, file by file as they were read: a segment may be missing that was
 * written meanwhile, although a later one is there.
 */
export class WalSource {
  readonly #path: string;
  readonly #registration: RegistrationName;
  readonly #random: Random;
  readonly #wal: LocalDiskWal;
  readonly #numbers: ReadonlySet<number>;

  private constructor(path: string, registration: RegistrationName, random: Random, wal: LocalDiskWal, numbers: ReadonlySet<number>) {
    this.#path = path;
    this.#registration = registration;
    this.#random = random;
    this.#wal = wal;
    this.#numbers = numbers;
  }

  /** Takes no lock and changes no byte. Throws as `WalStore` does. */
  static async open(path: string, registration: RegistrationName, position: number, random: Random): Promise<WalSource> {
    const wal = await LocalDiskWal.open({ directory: readOnlyDirectory(new NodeLocalDirectory(path)), random });
    try {
      return new WalSource(path, registration, random, wal, new Set(await wal.list(registration, position)));
    } catch (error) {
      await wal.close();
      throw error;
    }
  }

  get description(): string {
    return this.#wal.description;
  }

  /** Whether anything of the registration is there, if only files without a segment. */
  async isPresent(): Promise<boolean> {
    const registrations = await this.#wal.registrations();
    return registrations.some((name) => sameRegistration(name, this.#registration));
  }

  /** How many segments were found. */
  get count(): number {
    return this.#numbers.size;
  }

  /** The segment if it is there and whole. */
  async read(number: number): Promise<Uint8Array | null> {
    const bytes = this.#numbers.has(number) ? await this.#wal.read(this.#registration, number) : null;
    return bytes !== null && this.#open(bytes, number) !== null ? bytes : null;
  }

  /**
   * Why `number`, which could not be read, is no proper end: a later segment says that it was durable. Null
   * where none does, or where it was written while the files were read.
   */
  async troubleAt(number: number): Promise<PicoError | null> {
    const witness = await this.#witnessOf(number);
    if (witness === null) return null;
    if (!this.#numbers.has(number) && (await this.#isThereNow(number))) return null;
    const where = describeSegment(this.#registration, number);
    return new PicoError("corrupt", `${where} in ${this.#wal.description} is missing or damaged, yet number ${witness} vouches for it`, {
      where,
      number,
    });
  }

  close(): Promise<void> {
    return this.#wal.close();
  }

  async #witnessOf(number: number): Promise<number | null> {
    for (const later of this.#numbers) {
      if (later <= number) continue;
      const bytes = await this.#wal.read(this.#registration, later);
      const segment = bytes === null ? null : this.#open(bytes, later);
      if (segment !== null && Math.max(segment.trimPoint, segment.durableNumber) >= number) return later;
    }
    return null;
  }

  async #isThereNow(number: number): Promise<boolean> {
    const again = await WalSource.open(this.#path, this.#registration, number - 1, this.#random);
    try {
      return (await again.read(number)) !== null;
    } finally {
      await again.close();
    }
  }

  #open(bytes: Uint8Array, number: number): ReturnType<typeof decodeSegment> | null {
    try {
      return decodeSegment(bytes, this.#registration, number);
    } catch (error) {
      if (isPicoError(error, "corrupt")) return null;
      throw error;
    }
  }
}

/**
 * A directory whose files are synced when they are closed and not before: nothing in a copy is promised
 * to anybody until the copy is whole, and a sync a segment would take longer than the node's upload.
 */
export function lateSyncDirectory(directory: LocalDirectory): LocalDirectory {
  const late = (file: LocalFile): LocalFile => ({
    name: file.name,
    sizeBytes: file.sizeBytes,
    write: (parts, position) => file.write(parts, position),
    sync: async () => {},
    read: (position, length) => file.read(position, length),
    close: async () => {
      await file.sync();
      await file.close();
    },
  });
  return {
    path: directory.path,
    lock: () => directory.lock(),
    unlock: () => directory.unlock(),
    list: () => directory.list(),
    open: async (name) => late(await directory.open(name)),
    create: async (name, sizeBytes) => late(await directory.create(name, sizeBytes)),
    remove: (name) => directory.remove(name),
  };
}

/** A directory that another process may have locked: it can be read, and nothing else. */
function readOnlyDirectory(directory: LocalDirectory): LocalDirectory {
  const refuse = async (): Promise<never> => {
    throw new PicoError("storage_failed", `${directory.path} is only read here`, { path: directory.path });
  };
  return {
    path: directory.path,
    lock: async () => {},
    unlock: async () => {},
    list: () => directory.list(),
    open: (name) => directory.open(name),
    create: refuse,
    remove: refuse,
  };
}
