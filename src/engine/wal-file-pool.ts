/**
 * The files that one life of a local-disk WAL writes to: made, prepared ahead of need, and used again.
 *
 * A file is handed out only behind a synced header. A spare is prepared in the background; files whose
 * segments are all trimmed become spares under a new salt, as many as there are lanes.
 *
 * Errors: `storage_full` where there is no room, now; the half-made file is removed, at once or before the
 * next is made (FAULTS W10). Every other failure is reported to `fail`, which ends the store.
 */
import { isPicoError, type PicoError } from "../lib/errors.ts";
import type { Random } from "../lib/random.ts";
import type { RegistrationName } from "../lib/registration.ts";
import type { LocalDirectory, LocalFile } from "../storage/local-directory.ts";
import { encodeFileHeader, type FramePlace, formatWalFileName, WAL_PAGE_BYTES } from "./wal-file.ts";

/** A file of frames. */
export interface FrameFile {
  readonly file: LocalFile;
  readonly salt: bigint;
  /** Where the next frame goes; at the end of the file where none may be added. */
  position: number;
  /** By number: the frames that are synced. */
  readonly places: Map<number, FramePlace>;
  /** Highest number written to it; 0 without frames. */
  lastNumber: number;
}

export interface WalFilePoolOptions {
  readonly directory: LocalDirectory;
  readonly random: Random;
  readonly registration: RegistrationName;
  /** Size of spares; files of another size are not used again. */
  readonly fileBytes: number;
  /** Spares and retired files kept at most. */
  readonly sparesMax: number;
  /** Ends the store, and returns the error that its users get. */
  readonly fail: (error: unknown) => PicoError;
}

export class WalFilePool {
  readonly #options: WalFilePoolOptions;
  #nextFileNumber = 1;
  /** Ready for use. */
  #spares: FrameFile[] = [];
  /** All trimmed, their headers not yet replaced. */
  #retired: LocalFile[] = [];
  #preparing: Promise<void> | null = null;
  /** Names of half-made files that could not be removed yet. */
  readonly #leftovers = new Set<string>();

  constructor(options: WalFilePoolOptions) {
    this.#options = options;
  }

  /** An empty file of full size: a spare, the one being prepared, or one made now. */
  async next(): Promise<FrameFile> {
    if (this.#spares.length === 0 && this.#preparing !== null) await this.#preparing;
    return this.#spares.pop() ?? (await this.make(this.#options.fileBytes));
  }

  /** Sees to it that `count` spares are ready some time, one at a time, in the background. */
  prepareAhead(count: number): void {
    if (this.#preparing !== null || this.#spares.length >= count) return;
    this.#preparing = this.make(this.#options.fileBytes).then(
      (spare) => {
        this.#spares.push(spare);
        this.#preparing = null;
      },
      () => {
        // Whoever needs the file makes it again and meets the error; all but a lack of room ended the store.
        this.#preparing = null;
      },
    );
  }

  /** Takes a file whose segments are all trimmed, unless it is of another size or enough are kept. */
  retire(file: LocalFile): boolean {
    const { fileBytes, sparesMax } = this.#options;
    if (file.sizeBytes !== fileBytes || this.#spares.length + this.#retired.length >= sparesMax) return false;
    this.#retired.push(file);
    return true;
  }

  /** An empty file of `sizeBytes`, its header synced. */
  async make(sizeBytes: number): Promise<FrameFile> {
    const { directory, random, registration, fileBytes } = this.#options;
    const retired = sizeBytes === fileBytes ? this.#retired.pop() : undefined;
    const name = retired?.name ?? formatWalFileName({ kind: "frames", registration, fileNumber: this.#nextFileNumber++ });
    let file = retired;
    try {
      await this.#removeLeftovers();
      file ??= await directory.create(name, sizeBytes);
      const salt = new DataView(random.bytes(8).buffer).getBigUint64(0);
      file.write([encodeFileHeader(registration, sizeBytes, salt)], 0);
      await file.sync();
      return { file, salt, position: WAL_PAGE_BYTES, places: new Map(), lastNumber: 0 };
    } catch (error) {
      await closeQuietly(file);
      if (!isPicoError(error, "storage_full")) throw this.#options.fail(error);
      this.#leftovers.add(name);
      await this.#removeLeftovers();
      throw error;
    }
  }

  /** Hands over the files that nobody uses, once the preparation under way is over. */
  async drain(): Promise<readonly FrameFile[]> {
    await this.#preparing;
    const retired = this.#retired.map((file) => ({ file, salt: 0n, position: file.sizeBytes, places: new Map(), lastNumber: 0 }));
    const drained = [...this.#spares, ...retired];
    this.#spares = [];
    this.#retired = [];
    return drained;
  }

  /** Waits for the preparation under way and closes the files that nobody uses. */
  async close(): Promise<void> {
    await this.#preparing;
    for (const { file } of this.#spares) await file.close();
    for (const file of this.#retired) await file.close();
  }

  async #removeLeftovers(): Promise<void> {
    for (const name of [...this.#leftovers]) {
      try {
        await this.#options.directory.remove(name);
        this.#leftovers.delete(name);
      } catch (error) {
        if (!isPicoError(error)) throw error;
      }
    }
  }
}

/** Closes the file of a failure that is reported already. */
export async function closeQuietly(file: LocalFile | undefined): Promise<void> {
  try {
    await file?.close();
  } catch (error) {
    if (!isPicoError(error)) throw error;
  }
}
