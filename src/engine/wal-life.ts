/**
 * What a local-disk WAL directory holds of one registration: the files with its frames, and its tombstones.
 * Reading it writes nothing, but syncs each file first, so that what is found survives a power cut from
 * then on, also where the process that wrote it died before its own sync.
 */
import { WAL_FILES_READ_MAX } from "../lib/limits.ts";
import { mapConcurrently } from "../lib/map-concurrently.ts";
import { type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { LocalDirectory } from "../storage/local-directory.ts";
import { FRAME_HEADER_BYTES, type FramePlace, formatWalFileName, parseWalFileName, scanWalFile, WAL_PAGE_BYTES } from "./wal-file.ts";
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
  const frameFiles: string[] = [];
  for (const text of await directory.list()) {
    const name = parseWalFileName(text);
    if (name === null || !sameRegistration(name.registration, registration)) continue;
    if (name.kind === "tombstone") life.tombstones.add(name.number);
    else frameFiles.push(text);
  }
  try {
    await mapConcurrently(frameFiles, WAL_FILES_READ_MAX, async (text) => {
      life.files.push(await readFrameFile(directory, text, registration));
    });
  } catch (error) {
    for (const { file } of life.files) await closeQuietly(file);
    throw error;
  }
  return life;
}

/**
 * Writes every frame, header page and tombstone again as it reads back, and syncs it: a sync that failed in the
 * process before leaves pages in memory that count as stored but are not, and only another write of them makes
 * the next sync store them. A power cut on the way tears nothing: each sector keeps its bytes or gets the same.
 * Errors: `storage_failed`, `storage_full`; nothing is known then.
 */
export async function persistWalLife(directory: LocalDirectory, life: WalLife): Promise<void> {
  const page = { position: 0, length: WAL_PAGE_BYTES };
  for (const { file, places } of life.files) {
    const frames = [...places.values()].map(({ position, length }) => ({
      position: position - FRAME_HEADER_BYTES,
      length: FRAME_HEADER_BYTES + length,
    }));
    await rewrite(directory, file.name, [page, ...frames]);
  }
  for (const number of life.tombstones) {
    await rewrite(directory, formatWalFileName({ kind: "tombstone", registration: life.registration, number }), [page]);
  }
}

/** Through a file opened for it: one whose sync failed is not written to again, but the next attempt may succeed. */
async function rewrite(
  directory: LocalDirectory,
  name: string,
  ranges: readonly { readonly position: number; readonly length: number }[],
): Promise<void> {
  const file = await directory.open(name);
  try {
    for (const { position, length } of ranges) file.write([await file.read(position, length)], position);
    await file.sync();
  } finally {
    await closeQuietly(file);
  }
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
