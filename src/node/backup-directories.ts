/**
 * Two ways to use a WAL's directory that a backup needs and a node must not have.
 */
import { PicoError } from "../lib/errors.ts";
import type { LocalDirectory, LocalFile } from "../storage/local-directory.ts";

/** A directory that another process may have locked: it can be read, and nothing else. */
export function readOnlyDirectory(directory: LocalDirectory): LocalDirectory {
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
