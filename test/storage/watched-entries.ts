/** Watches which directory entries `node:fs` makes and which folders it syncs, to see what a power cut would take. */
import { spyOn } from "bun:test";
import fs from "node:fs/promises";
import { dirname } from "node:path";

export interface WatchedEntries extends Disposable {
  /** Folders with an entry that is newer than their last sync. */
  readonly unsynced: ReadonlySet<string>;
  /** Folders in the order of their syncs. */
  readonly synced: readonly string[];
}

export function watchEntries(): WatchedEntries {
  const unsynced = new Set<string>();
  const synced: string[] = [];
  const { mkdir, link, open } = fs;
  const spies = [
    spyOn(fs, "mkdir").mockImplementation((async (path: string, options?: { readonly recursive?: boolean }) => {
      const firstMade = await mkdir(path, options);
      const top = options?.recursive === true ? firstMade : path;
      for (let made = path; top !== undefined && made.length >= top.length; made = dirname(made)) unsynced.add(dirname(made));
      return firstMade;
    }) as typeof mkdir),
    spyOn(fs, "link").mockImplementation(async (from, to) => {
      await link(from, to);
      unsynced.add(dirname(String(to)));
    }),
    spyOn(fs, "open").mockImplementation(async (...parameters) => {
      const handle = await open(...parameters);
      const sync = handle.sync.bind(handle);
      handle.sync = async () => {
        await sync();
        synced.push(String(parameters[0]));
        unsynced.delete(String(parameters[0]));
      };
      return handle;
    }),
  ];
  return {
    unsynced,
    synced,
    [Symbol.dispose]() {
      for (const spy of spies) spy.mockRestore();
    },
  };
}
