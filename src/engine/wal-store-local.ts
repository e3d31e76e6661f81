/**
 * The WAL on local disk: preallocated files, two of them written in turn so that their syncs overlap. For
 * one host: the directory's OS lock makes this process its only user, and only a holder of the lock
 * replays what another left.
 *
 * Two *lanes* each write one frame at a time into a file of their own and sync it, so a lane's file holds
 * acknowledged frames, then at most one that is not. A lane that is full takes a spare file, prepared in the
 * background once half of the lane's is used. Files whose segments are all trimmed become spares again.
 *
 * Invariants:
 * - Opening the directory and reading another life's segments changes no byte (FAULTS W1). What is read is
 *   synced first: after a process died its last writes may be in memory only, and what was replayed is
 *   promised to readers.
 * - A failed write or sync ends the store for good (FAULTS W2): every create under way or to come rejects
 *   with `durability`, nothing is tried again, trimmed or used again. The node recovers from what reads back.
 * - No room for a file is `storage_full` for that create alone, and its number is not taken (FAULTS W10).
 * - Tombstones are small files of their own, and stay.
 */
import { assert } from "../lib/assert.ts";
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { SEGMENTS_IN_FLIGHT_LOCAL, WAL_FILE_BYTES, WAL_FIRST_FILE_BYTES } from "../lib/limits.ts";
import type { Random } from "../lib/random.ts";
import { formatRegistration, type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { LocalDirectory, LocalFile } from "../storage/local-directory.ts";
import {
  encodeFileHeader,
  encodeFrameHeader,
  FRAME_HEADER_BYTES,
  type FramePlace,
  formatWalFileName,
  frameBytes,
  parseWalFileName,
  scanWalFile,
  WAL_PAGE_BYTES,
} from "./wal-file.ts";
import { isTombstone } from "./wal-segment.ts";
import type { WalStore } from "./wal-store.ts";

export interface LocalDiskWalOptions {
  readonly directory: LocalDirectory;
  readonly random: Random;
  /** Size of the two files that a life begins with. */
  readonly firstFileBytes?: number;
  /** Size of the files after them. */
  readonly fileBytes?: number;
}

/** A file of frames. */
interface FrameFile {
  readonly file: LocalFile;
  salt: bigint;
  /** Where the next frame goes; at the end where none may be added. */
  position: number;
  places: Map<number, FramePlace>;
  /** Highest number in it; 0 without frames. */
  lastNumber: number;
}

/** What the directory holds of one registration. */
interface Life {
  readonly registration: RegistrationName;
  files: FrameFile[];
  readonly tombstones: Set<number>;
}

/** The file is null until there is room for one. */
interface Lane {
  file: FrameFile | null;
  isBusy: boolean;
}

const NO_BYTES = new Uint8Array(WAL_PAGE_BYTES);

export class LocalDiskWal implements WalStore {
  readonly kind = "local";
  readonly inFlightMax = SEGMENTS_IN_FLIGHT_LOCAL;
  readonly description: string;
  readonly #directory: LocalDirectory;
  readonly #random: Random;
  readonly #firstFileBytes: number;
  readonly #fileBytes: number;
  readonly #lives = new Map<string, Promise<Life>>();
  /** The life that writes; null before `begin`. */
  #own: Life | null = null;
  /** Numbers of the own life up to this one are taken, whether their bytes are still there or not. */
  #trimmedTo = 0;
  readonly #underWay = new Map<number, Promise<"created" | "exists">>();
  readonly #lanes: readonly Lane[] = Array.from({ length: SEGMENTS_IN_FLIGHT_LOCAL }, () => ({ file: null, isBusy: false }));
  readonly #laneWaiters: ((lane: Lane) => void)[] = [];
  /** Ready for use: of full size, header synced. */
  #spares: FrameFile[] = [];
  /** All trimmed, of full size, header not yet replaced. */
  #retired: FrameFile[] = [];
  /** The spare being prepared. */
  #preparing: Promise<void> | null = null;
  /** Files that could not be prepared and not be removed; removed before the next attempt. */
  readonly #leftovers = new Set<string>();
  #nextFileNumber = 1;
  readonly #frameHeader = new Uint8Array(FRAME_HEADER_BYTES);
  #failure: PicoError | null = null;
  #isClosed = false;

  private constructor(options: LocalDiskWalOptions) {
    this.#directory = options.directory;
    this.#random = options.random;
    this.#firstFileBytes = options.firstFileBytes ?? WAL_FIRST_FILE_BYTES;
    this.#fileBytes = options.fileBytes ?? WAL_FILE_BYTES;
    this.description = `local disk at ${options.directory.path}`;
    for (const size of [this.#firstFileBytes, this.#fileBytes]) {
      assert(size >= 2 * WAL_PAGE_BYTES && size % WAL_PAGE_BYTES === 0, "a WAL file has whole pages, a header and room for a frame");
    }
  }

  /** Takes the directory's lock, and nothing else. Throws `locked`, `storage_failed`, `storage_full`. */
  static async open(options: LocalDiskWalOptions): Promise<LocalDiskWal> {
    await options.directory.lock();
    return new LocalDiskWal(options);
  }

  /** May be called again after `storage_full`. */
  async begin(registration: RegistrationName): Promise<void> {
    this.#assertAlive();
    if (this.#own === null) {
      const life = await this.#life(registration);
      if (life.files.length > 0 || life.tombstones.size > 0) {
        throw new PicoError(
          "storage_failed",
          `${this.#directory.path} holds a WAL of ${formatRegistration(registration)} already; an epoch is never used again`,
          { path: this.#directory.path },
        );
      }
      this.#own = life;
    }
    assert(sameRegistration(this.#own.registration, registration), "a WAL store serves one life");
    await Promise.all(
      this.#lanes.map(async (lane) => {
        if (lane.file === null) lane.file = await this.#prepare(this.#firstFileBytes);
      }),
    );
  }

  async create(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    this.#assertAlive();
    if (isTombstone(bytes)) return this.#createTombstone(registration, number, bytes);
    const own = this.#own;
    assert(own !== null && sameRegistration(own.registration, registration), "only the life that has begun writes segments");
    const underWay = this.#underWay.get(number);
    if (underWay !== undefined) {
      await underWay;
      return "exists";
    }
    if (this.#isTaken(own, number)) return "exists";
    const running = this.#createSegment(own, number, bytes);
    this.#underWay.set(number, running);
    try {
      return await running;
    } finally {
      this.#underWay.delete(number);
    }
  }

  async list(registration: RegistrationName, above: number): Promise<readonly number[]> {
    const life = await this.#life(registration);
    const numbers = new Set(life.tombstones);
    for (const { places } of life.files) for (const number of places.keys()) numbers.add(number);
    return [...numbers].filter((number) => number > above).sort((left, right) => left - right);
  }

  async read(registration: RegistrationName, number: number): Promise<Uint8Array | null> {
    const life = await this.#life(registration);
    for (const { file, places } of life.files) {
      const place = places.get(number);
      if (place !== undefined) return file.read(place.position, place.length);
    }
    if (!life.tombstones.has(number)) return null;
    const file = await this.#directory.open(formatWalFileName({ kind: "tombstone", registration, number }));
    try {
      return await file.read(0, file.sizeBytes);
    } finally {
      await file.close();
    }
  }

  async trim(registration: RegistrationName, upTo: number): Promise<readonly { readonly number: number; readonly reason: string }[]> {
    this.#assertAlive();
    const life = await this.#life(registration);
    const refused: { number: number; reason: string }[] = [];
    const isOwn = life === this.#own;
    if (isOwn) this.#trimmedTo = Math.max(this.#trimmedTo, upTo);
    for (const file of [...life.files]) {
      if (file.lastNumber > upTo || (isOwn && this.#isInUse(file))) continue;
      life.files = life.files.filter((other) => other !== file);
      const keepsIt = isOwn && file.file.sizeBytes === this.#fileBytes && this.#spares.length + this.#retired.length < this.#lanes.length;
      if (keepsIt) {
        this.#retired.push(file);
        continue;
      }
      try {
        await this.#directory.remove(file.file.name);
      } catch (error) {
        life.files.push(file);
        for (const number of file.places.keys()) refused.push({ number, reason: messageOf(error) });
        continue;
      }
      await file.file.close();
    }
    return refused;
  }

  /** Waits for writes under way, closes the files and lets the lock go. */
  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await Promise.allSettled(this.#underWay.values());
    await this.#preparing;
    const lives = await Promise.allSettled(this.#lives.values());
    const files = [...this.#spares, ...this.#retired, ...this.#lanes.flatMap((lane) => lane.file ?? [])];
    for (const life of lives) if (life.status === "fulfilled") files.push(...life.value.files);
    try {
      for (const { file } of new Set(files)) await file.close();
    } finally {
      await this.#directory.unlock();
    }
  }

  #assertAlive(): void {
    if (this.#failure !== null) throw this.#failure;
    assert(!this.#isClosed, "a closed WAL store is not used");
  }

  /** Ends the store: `error` came from a write or sync, and nothing is known about what it left. */
  #die(error: unknown): PicoError {
    this.#failure ??= new PicoError(
      "durability",
      `the WAL at ${this.#directory.path} could not be made durable: ${messageOf(error)}; restart the node to recover what is on the disk`,
      { path: this.#directory.path },
      error,
    );
    return this.#failure;
  }

  #isTaken(life: Life, number: number): boolean {
    if (life === this.#own && number <= this.#trimmedTo) return true;
    return life.tombstones.has(number) || life.files.some(({ places }) => places.has(number));
  }

  #isInUse(file: FrameFile): boolean {
    return this.#lanes.some((lane) => lane.file === file) || [...this.#underWay.keys()].some((number) => number <= file.lastNumber);
  }

  async #createSegment(own: Life, number: number, bytes: Uint8Array): Promise<"created"> {
    const lane = await this.#takeLane();
    try {
      const size = frameBytes(bytes.length);
      const target = await this.#makeRoom(own, lane, size);
      if (this.#failure !== null) throw this.#failure;
      const position = target.position;
      target.position += size;
      target.lastNumber = Math.max(target.lastNumber, number);
      try {
        encodeFrameHeader(this.#frameHeader, own.registration, number, bytes.length, target.salt);
        const padding = NO_BYTES.subarray(0, size - FRAME_HEADER_BYTES - bytes.length);
        target.file.write([this.#frameHeader, bytes, padding], position);
        this.#prepareSpares();
        await target.file.sync();
      } catch (error) {
        throw this.#die(error);
      }
      if (this.#failure !== null) throw this.#failure;
      target.places.set(number, { number, position: position + FRAME_HEADER_BYTES, length: bytes.length });
      return "created";
    } finally {
      this.#releaseLane(lane);
    }
  }

  #takeLane(): Promise<Lane> | Lane {
    // The emptier file first, so that a lone writer does not fill one file while the other idles.
    let best: Lane | null = null;
    for (const lane of this.#lanes) {
      if (!lane.isBusy && (best === null || (lane.file?.position ?? 0) < (best.file?.position ?? 0))) best = lane;
    }
    if (best === null) return new Promise((resolve) => this.#laneWaiters.push(resolve));
    best.isBusy = true;
    return best;
  }

  #releaseLane(lane: Lane): void {
    const next = this.#laneWaiters.shift();
    if (next === undefined) lane.isBusy = false;
    else next(lane);
  }

  /** The file that takes a frame of `size` bytes: the lane's own, its next, or one of fitting size. */
  async #makeRoom(own: Life, lane: Lane, size: number): Promise<FrameFile> {
    if (lane.file !== null && lane.file.position + size <= lane.file.file.sizeBytes) return this.#adopt(own, lane.file);
    if (WAL_PAGE_BYTES + size > this.#fileBytes) return this.#adopt(own, await this.#prepare(WAL_PAGE_BYTES + size));
    if (this.#spares.length === 0 && this.#preparing !== null) await this.#preparing;
    lane.file = this.#spares.pop() ?? (await this.#prepare(this.#fileBytes));
    return this.#adopt(own, lane.file);
  }

  #adopt(own: Life, file: FrameFile): FrameFile {
    if (!own.files.includes(file)) own.files.push(file);
    return file;
  }

  /** Starts on a spare where a lane has used half of its file and no spare waits for it. */
  #prepareSpares(): void {
    if (this.#preparing !== null || this.#failure !== null || this.#isClosed) return;
    const halfUsed = this.#lanes.filter(({ file }) => file !== null && file.position * 2 > file.file.sizeBytes).length;
    if (this.#spares.length >= halfUsed) return;
    this.#preparing = this.#prepare(this.#fileBytes).then(
      (spare) => {
        this.#spares.push(spare);
        this.#preparing = null;
      },
      () => {
        // Whoever needs the file prepares it again and gets the error; anything but a lack of room ended the store.
        this.#preparing = null;
      },
    );
  }

  /** A file of `sizeBytes`, its header synced. Throws `storage_full`; any other failure ends the store. */
  async #prepare(sizeBytes: number): Promise<FrameFile> {
    const own = this.#own;
    assert(own !== null, "files are prepared for the life that has begun");
    const retired = sizeBytes === this.#fileBytes ? this.#retired.pop() : undefined;
    const name =
      retired?.file.name ?? formatWalFileName({ kind: "frames", registration: own.registration, fileNumber: this.#nextFileNumber++ });
    let file = retired?.file;
    try {
      await this.#removeLeftovers();
      file ??= await this.#directory.create(name, sizeBytes);
      const salt = new DataView(this.#random.bytes(8).buffer).getBigUint64(0);
      file.write([encodeFileHeader(own.registration, sizeBytes, salt)], 0);
      await file.sync();
      return { file, salt, position: WAL_PAGE_BYTES, places: new Map(), lastNumber: 0 };
    } catch (error) {
      if (!isPicoError(error, "storage_full")) throw this.#die(error);
      await file?.close();
      this.#leftovers.add(name);
      await this.#removeLeftovers();
      throw error;
    }
  }

  /** What cannot be removed now is removed before the next file is made. */
  async #removeLeftovers(): Promise<void> {
    for (const name of [...this.#leftovers]) {
      try {
        await this.#directory.remove(name);
        this.#leftovers.delete(name);
      } catch (error) {
        if (!isPicoError(error)) throw error;
      }
    }
  }

  async #createTombstone(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    const life = await this.#life(registration);
    if (this.#isTaken(life, number) || (life === this.#own && this.#underWay.has(number))) return "exists";
    const name = formatWalFileName({ kind: "tombstone", registration, number });
    try {
      const file = await this.#directory.create(name, bytes.length);
      file.write([bytes], 0);
      await file.sync();
      await file.close();
    } catch (error) {
      if (!isPicoError(error, "storage_full")) throw this.#die(error);
      await this.#directory.remove(name).catch((failure: unknown) => {
        throw this.#die(failure);
      });
      throw error;
    }
    life.tombstones.add(number);
    return "created";
  }

  /** What the directory holds of a registration; read once. A failed reading is tried again by the next caller. */
  #life(registration: RegistrationName): Promise<Life> {
    if (this.#own !== null && sameRegistration(this.#own.registration, registration)) return Promise.resolve(this.#own);
    const key = formatRegistration(registration);
    const known = this.#lives.get(key);
    if (known !== undefined) return known;
    const reading = this.#readLife(registration);
    this.#lives.set(key, reading);
    reading.catch(() => this.#lives.delete(key));
    return reading;
  }

  async #readLife(registration: RegistrationName): Promise<Life> {
    const life: Life = { registration, files: [], tombstones: new Set() };
    try {
      for (const text of await this.#directory.list()) {
        const name = parseWalFileName(text);
        if (name === null || !sameRegistration(name.registration, registration)) continue;
        if (name.kind === "tombstone") life.tombstones.add(name.number);
        else life.files.push(await this.#readFile(text, registration));
      }
    } catch (error) {
      for (const { file } of life.files) await file.close();
      throw error;
    }
    return life;
  }

  async #readFile(name: string, registration: RegistrationName): Promise<FrameFile> {
    const file = await this.#directory.open(name);
    try {
      await file.sync();
      const places = new Map<number, FramePlace>();
      let lastNumber = 0;
      for (const place of await scanWalFile(file, `${this.#directory.path}/${name}`, registration)) {
        places.set(place.number, place);
        lastNumber = Math.max(lastNumber, place.number);
      }
      return { file, salt: 0n, position: file.sizeBytes, places, lastNumber };
    } catch (error) {
      await file.close();
      throw error;
    }
  }
}
