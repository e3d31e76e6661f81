/**
 * The file seam: one flat directory of fixed-size files, for the local-disk WAL. Implemented on
 * `node:fs` in `local-directory-node.ts`, and by the simulator, which drops on a power cut whatever
 * was not synced, directory entries included.
 *
 * Errors: `storage_failed`, `storage_full`, `locked`. After a failed `sync` nothing is known about the
 * file; the caller must not write to it again (FAULTS W2).
 */

export interface LocalFile {
  readonly name: string;
  readonly sizeBytes: number;
  /**
   * Writes all of `parts` one behind the other at `position`, inside the file. Short writes are
   * completed; on an error any part of it may be in the file.
   */
  write(parts: readonly Uint8Array[], position: number): void;
  /** Resolves when everything written before the call is on the disk (`fdatasync`). */
  sync(): Promise<void>;
  /** The bytes `[position, position + length)`, clipped to the file's size; in the memory of `buffer` where that is given and holds them. */
  read(position: number, length: number, buffer?: Uint8Array): Promise<Uint8Array>;
  close(): Promise<void>;
}

export interface LocalDirectory {
  /** Absolute path, for messages. */
  readonly path: string;
  /**
   * Makes the directory if missing and takes its OS lock, which only `unlock` or the death of the
   * process releases. Throws `locked`, naming the directory and, where known, the holder's process id.
   */
  lock(): Promise<void>;
  unlock(): Promise<void>;
  /** Names of the files, sorted. The lock's own files are left out. */
  list(): Promise<readonly string[]>;
  /** Creates a zero-filled file of `sizeBytes`, synced, its directory entry too. Fails if it exists. */
  create(name: string, sizeBytes: number): Promise<LocalFile>;
  open(name: string): Promise<LocalFile>;
  /** Resolves when the file is gone and the directory synced; an absent one is no error. */
  remove(name: string): Promise<void>;
}
