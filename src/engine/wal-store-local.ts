/**
 * The WAL on local disk: preallocated files, two of them written in turn so that their syncs overlap. For
 * one host: the directory's OS lock makes this process its only user, and only a holder of the lock
 * replays what another left.
 *
 * Two *lanes* each write one frame at a time into a file of their own and sync it, so a lane's file holds
 * acknowledged frames, then at most one that is not. A lane whose file is full takes the next of the pool,
 * which is prepared once half of the lane's is used. A segment larger than a file gets one of its own.
 *
 * Invariants:
 * - Opening the directory and reading another life's segments changes no byte (FAULTS W1). What is read is
 *   synced first: after a process died its last writes may be in memory only. A sync that failed before then
 *   may have left pages in memory that no later one writes, so `persist` writes what it read again.
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
  encodeFrameHeader,
  FRAME_HEADER_BYTES,
  formatWalFileName,
  frameBytes,
  parseWalFileName,
  WAL_PAGE_BYTES,
  type WalFileName,
} from "./wal-file.ts";
import { closeQuietly, type FrameFile, WalFilePool } from "./wal-file-pool.ts";
import { holdsNumber, numbersOf, persistWalLife, readWalLife, type WalLife } from "./wal-life.ts";
import { isTombstone } from "./wal-segment-format.ts";
import { ALL_NUMBERS, type WalStore } from "./wal-store.ts";

export interface LocalDiskWalOptions {
  readonly directory: LocalDirectory;
  readonly random: Random;
  /** Size of the two files that a life begins with. */
  readonly firstFileBytes?: number;
  /** Size of the files after them. */
  readonly fileBytes?: number;
}

/** The file is null until there is room for one. */
interface Lane {
  file: FrameFile | null;
  isBusy: boolean;
}

/** The life that writes. */
interface OwnLife {
  readonly life: WalLife;
  readonly pool: WalFilePool;
}

const PADDING = new Uint8Array(WAL_PAGE_BYTES);

export class LocalDiskWal implements WalStore {
  readonly kind = "local";
  readonly inFlightMax = SEGMENTS_IN_FLIGHT_LOCAL;
  readonly description: string;
  readonly #directory: LocalDirectory;
  readonly #random: Random;
  readonly #firstFileBytes: number;
  readonly #fileBytes: number;
  /** By registration, once asked for. */
  readonly #lives = new Map<string, Promise<WalLife>>();
  #own: OwnLife | null = null;
  /** Numbers of the own life up to this one are taken, whether their bytes are still there or not. */
  #trimmedTo = 0;
  /** Creates of the own life that have not ended. */
  readonly #underWay = new Map<number, Promise<"created" | "exists">>();
  readonly #lanes: readonly Lane[] = Array.from({ length: SEGMENTS_IN_FLIGHT_LOCAL }, () => ({ file: null, isBusy: false }));
  readonly #laneWaiters: ((lane: Lane) => void)[] = [];
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
    this.#own ??= await this.#beginLife(registration);
    const { life, pool } = this.#own;
    assert(sameRegistration(life.registration, registration), "a WAL store serves one life");
    const made = await Promise.allSettled(
      this.#lanes.map(async (lane) => {
        if (lane.file !== null) return;
        lane.file = await pool.make(this.#firstFileBytes);
        // Not only when a frame is in it: a first frame that is larger than the file leaves it unused.
        life.files.push(lane.file);
      }),
    );
    for (const outcome of made) if (outcome.status === "rejected") throw outcome.reason;
  }

  async create(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    this.#assertAlive();
    if (isTombstone(bytes)) return this.#createTombstone(registration, number, bytes);
    const own = this.#own;
    assert(own !== null && sameRegistration(own.life.registration, registration), "only the life that has begun writes segments");
    const underWay = this.#underWay.get(number);
    if (underWay !== undefined) {
      await underWay;
      return "exists";
    }
    if (number <= this.#trimmedTo || holdsNumber(own.life, number)) return "exists";
    const running = this.#createSegment(own, number, bytes);
    this.#underWay.set(number, running);
    try {
      return await running;
    } finally {
      this.#underWay.delete(number);
    }
  }

  registrations(): Promise<readonly RegistrationName[]> {
    return this.#registrationsWith(() => true);
  }

  registrationsWithSegments(): Promise<readonly RegistrationName[]> {
    return this.#registrationsWith(({ kind }) => kind !== "tombstone");
  }

  async list(registration: RegistrationName, above: number): Promise<readonly number[]> {
    const numbers = numbersOf(await this.#life(registration));
    return numbers.filter((number) => number > above);
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

  async persist(registration: RegistrationName): Promise<void> {
    const life = await this.#life(registration);
    assert(life !== this.#own?.life, "the life that writes syncs what it writes");
    await persistWalLife(this.#directory, life);
  }

  async trim(registration: RegistrationName, upTo: number): Promise<readonly { readonly number: number; readonly reason: string }[]> {
    this.#assertAlive();
    const life = await this.#life(registration);
    const pool = life === this.#own?.life ? this.#own.pool : null;
    if (pool !== null) this.#trimmedTo = Math.max(this.#trimmedTo, upTo);
    const isOver = upTo === ALL_NUMBERS && this.#underWay.size === 0;
    if (pool !== null && isOver) await this.#giveUpRoom(life, pool);
    const refused: { number: number; reason: string }[] = [];
    for (const file of life.files.filter(({ lastNumber }) => lastNumber <= upTo)) {
      if (pool !== null && this.#isInUse(file)) continue;
      life.files = life.files.filter((other) => other !== file);
      if (!isOver && pool?.retire(file.file)) continue;
      try {
        await this.#directory.remove(file.file.name);
      } catch (error) {
        life.files.push(file);
        const numbers = file.places.size > 0 ? [...file.places.keys()] : [file.lastNumber];
        for (const number of numbers) refused.push({ number, reason: messageOf(error) });
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
    const lives = await Promise.allSettled(this.#lives.values());
    const files = this.#lanes.flatMap((lane) => lane.file ?? []);
    for (const life of lives) if (life.status === "fulfilled") files.push(...life.value.files);
    try {
      await this.#own?.pool.close();
      for (const { file } of new Set(files)) await file.close();
    } finally {
      await this.#directory.unlock();
    }
  }

  async #registrationsWith(isMeant: (name: WalFileName) => boolean): Promise<readonly RegistrationName[]> {
    const names = new Map<string, RegistrationName>();
    for (const text of await this.#directory.list()) {
      const name = parseWalFileName(text);
      if (name !== null && isMeant(name)) names.set(formatRegistration(name.registration), name.registration);
    }
    return [...names.values()];
  }

  /** The own life writes no more: what it writes to, or would, is trimmed like the rest. */
  async #giveUpRoom(life: WalLife, pool: WalFilePool): Promise<void> {
    for (const lane of this.#lanes) lane.file = null;
    life.files.push(...(await pool.drain()));
  }

  #assertAlive(): void {
    if (this.#failure !== null) throw this.#failure;
    assert(!this.#isClosed, "a closed WAL store is not used");
  }

  /** Ends the store: `error` came from a write or sync, and nothing is known about what it left. */
  readonly #die = (error: unknown): PicoError => {
    this.#failure ??= new PicoError(
      "durability",
      `the WAL at ${this.#directory.path} could not be made durable: ${messageOf(error)}; restart the node to recover what is on the disk`,
      { path: this.#directory.path },
      error,
    );
    return this.#failure;
  };

  async #beginLife(registration: RegistrationName): Promise<OwnLife> {
    const life = await this.#life(registration);
    if (life.files.length > 0 || life.tombstones.size > 0) {
      throw new PicoError(
        "storage_failed",
        `${this.#directory.path} holds a WAL of ${formatRegistration(registration)} already; an epoch is never used again`,
        { path: this.#directory.path },
      );
    }
    const pool = new WalFilePool({
      directory: this.#directory,
      random: this.#random,
      registration,
      fileBytes: this.#fileBytes,
      sparesMax: this.#lanes.length,
      fail: this.#die,
    });
    return { life, pool };
  }

  /** What the directory holds of a registration; read once. A failed reading is tried again by the next caller. */
  #life(registration: RegistrationName): Promise<WalLife> {
    const key = formatRegistration(registration);
    const known = this.#lives.get(key);
    if (known !== undefined) return known;
    const reading = readWalLife(this.#directory, registration);
    this.#lives.set(key, reading);
    reading.catch(() => this.#lives.delete(key));
    return reading;
  }

  async #createSegment(own: OwnLife, number: number, bytes: Uint8Array): Promise<"created"> {
    const lane = await this.#takeLane();
    try {
      const size = frameBytes(bytes.length);
      const target = await this.#makeRoom(own, lane, size);
      // From here to the write nothing is awaited: the position is this frame's alone.
      if (this.#failure !== null) throw this.#failure;
      const { position } = target;
      target.position += size;
      target.lastNumber = Math.max(target.lastNumber, number);
      try {
        encodeFrameHeader(this.#frameHeader, own.life.registration, number, bytes.length, target.salt);
        const padding = PADDING.subarray(0, size - FRAME_HEADER_BYTES - bytes.length);
        target.file.write([this.#frameHeader, bytes, padding], position);
        if (!this.#isClosed) own.pool.prepareAhead(this.#lanes.filter(isHalfUsed).length);
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

  /** A free lane, of two the one whose file has more room; else the next that becomes free. */
  #takeLane(): Promise<Lane> | Lane {
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
  async #makeRoom({ life, pool }: OwnLife, lane: Lane, size: number): Promise<FrameFile> {
    let file = lane.file;
    if (file === null || file.position + size > file.file.sizeBytes) {
      const isOversized = WAL_PAGE_BYTES + size > this.#fileBytes;
      file = isOversized ? await pool.make(WAL_PAGE_BYTES + size) : await pool.next();
      if (!isOversized) lane.file = file;
    }
    if (!life.files.includes(file)) life.files.push(file);
    return file;
  }

  #isInUse(file: FrameFile): boolean {
    return this.#lanes.some((lane) => lane.file === file) || this.#underWay.has(file.lastNumber);
  }

  async #createTombstone(registration: RegistrationName, number: number, bytes: Uint8Array): Promise<"created" | "exists"> {
    const life = await this.#life(registration);
    const isOwn = life === this.#own?.life;
    if (holdsNumber(life, number) || (isOwn && (number <= this.#trimmedTo || this.#underWay.has(number)))) return "exists";
    const name = formatWalFileName({ kind: "tombstone", registration, number });
    let file: LocalFile | undefined;
    try {
      file = await this.#directory.create(name, bytes.length);
      file.write([bytes], 0);
      await file.sync();
    } catch (error) {
      if (!isPicoError(error, "storage_full")) throw this.#die(error);
      // The number must not stay taken by a file that says nothing.
      await this.#directory.remove(name).catch((failure: unknown) => {
        throw this.#die(failure);
      });
      throw error;
    } finally {
      await closeQuietly(file);
    }
    life.tombstones.add(number);
    return "created";
  }
}

function isHalfUsed({ file }: Lane): boolean {
  return file !== null && file.position * 2 > file.file.sizeBytes;
}
