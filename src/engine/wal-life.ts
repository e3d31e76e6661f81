/**
 * What a local-disk WAL directory holds of one registration: the files with its frames, and its tombstones.
 * Reading it writes nothing, but syncs each file first, so that what is found survives a power cut from
 * then on, also where the process that wrote it died before its own sync.
 */
import { type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { LocalDirectory } from "../storage/local-directory.ts";
import { type FramePlace, parseWalFileName, scanWalFile } from "./wal-file.ts";
import { closeQuietly, type FrameFile } from "./wal-file-pool.ts";

export interface WalLife {
  readonly registration: RegistrationName;
  files: FrameFile[];
  /** Numbers; the files are opened when they are read. */
  readonly tombstones: Set<number>;
}

/** Reads every file of the registration to its end. Throws `corrupt`, `incompatible`, `storage_failed`. */
export async function readWalLife(directory: LocalDirectory, registration: RegistrationName): Promise<WalLife> {
  const life: WalLife = { registration, files: [], tombstones: new Set() };
  try {
    for (const text of await directory.list()) {
      const name = parseWalFileName(text);
      if (name === null || !sameRegistration(name.registration, registration)) continue;
      if (name.kind === "tombstone") life.tombstones.add(name.number);
      else life.files.push(await readFrameFile(directory, text, registration));
    }
  } catch (error) {
    for (const { file } of life.files) await closeQuietly(file);
    throw error;
  }
  return life;
}

/** Every number present, ascending, tombstones included. */
export function numbersOf(life: WalLife): readonly number[] {
  const numbers = new Set(life.tombstones);
  for (const { places } of life.files) for (const number of places.keys()) numbers.add(number);
  return [...numbers].sort((left, right) => left - right);
}

export function holdsNumber(life: WalLife, number: number): boolean {
  return life.tombstones.has(number) || life.files.some(({ places }) => places.has(number));
}

async function readFrameFile(directory: LocalDirectory, name: string, registration: RegistrationName): Promise<FrameFile> {
  const file = await directory.open(name);
  try {
    await file.sync();
    const places = new Map<number, FramePlace>();
    let lastNumber = 0;
    for (const place of await scanWalFile(file, `${directory.path}/${name}`, registration)) {
      places.set(place.number, place);
      lastNumber = Math.max(lastNumber, place.number);
    }
    // Nothing is ever added to the file of another life.
    return { file, salt: 0n, position: file.sizeBytes, places, lastNumber };
  } catch (error) {
    await closeQuietly(file);
    throw error;
  }
}
