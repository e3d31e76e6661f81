import { afterEach, beforeEach, describe, expect, spyOn, test } from "bun:test";
import fs from "node:fs/promises";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/lib/clock.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { FileObjectStore } from "../../src/storage/file-object-store.ts";
import { describeObjectStore } from "./object-store-contract.ts";
import { mountSmallDisk } from "./small-disk.ts";
import { makeTemporaryFolder, type TemporaryFolder } from "./temporary-folder.ts";
import { watchEntries } from "./watched-entries.ts";

describeObjectStore("file", async () => {
  const folder = await makeTemporaryFolder();
  const options = { path: `${folder.path}/deep/objects`, clock: systemClock, random: systemRandom };
  const store = await FileObjectStore.open(options);
  const twin = await FileObjectStore.open(options);
  return {
    store,
    twin,
    dispose: async () => {
      await store.close();
      await twin.close();
      await folder[Symbol.asyncDispose]();
    },
  };
});

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const diskError = () => Object.assign(new Error("EIO: i/o error"), { code: "EIO" });

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return isPicoError(error) ? error.code : `not a PicoError: ${String(error)}`;
  }
  return "resolved";
}

/** Lets the directory syncs (not the syncs of contents) fail while `fails` says so. */
function spyOnFolderSyncs(fails: () => boolean) {
  const real = fs.open;
  return spyOn(fs, "open").mockImplementation(async (...parameters) => {
    const handle = await real(...parameters);
    const sync = handle.sync.bind(handle);
    handle.sync = () => (fails() ? Promise.reject(diskError()) : sync());
    return handle;
  });
}

describe("file object store", () => {
  let folder: TemporaryFolder;
  let store: FileObjectStore;
  const openStore = (path = folder.path, clock: Clock = systemClock) => FileObjectStore.open({ path, clock, random: systemRandom });
  beforeEach(async () => {
    folder = await makeTemporaryFolder();
    store = await openStore();
  });
  afterEach(async () => {
    await store.close();
    await folder[Symbol.asyncDispose]();
  });

  const temporaries = (path = folder.path) => fs.readdir(join(path, "~temporary"));

  test("an object is a file at its key, and no temporary file stays", async () => {
    await store.create("a/b/c", bytesOf("x"));
    await store.create("a/b/c", bytesOf("y"));
    expect(await fs.readFile(join(folder.path, "a/b/c"), "utf8")).toBe("x");
    expect(await temporaries()).toEqual([]);
  });

  test("temporary files are never listed; an old one goes at the next open, a young one stays", async () => {
    await store.create("a", bytesOf("x"));
    const [old, young] = ["old", "young"].map((name) => join(folder.path, "~temporary", name)) as [string, string];
    await fs.writeFile(old, "half");
    await fs.writeFile(young, "half");
    const hoursAgo = new Date(Date.now() - 2 * 3600_000);
    await fs.utimes(old, hoursAgo, hoursAgo);
    expect((await store.list("", { after: null, limit: 10 })).objects.map((object) => object.key)).toEqual(["a"]);
    await (await openStore()).close();
    expect(await temporaries()).toEqual(["young"]);
  });

  test("what others put into the folder is not listed", async () => {
    await fs.writeFile(join(folder.path, "a b"), "x");
    await fs.mkdir(join(folder.path, "lost+found"));
    await fs.symlink(join(folder.path, "nowhere"), join(folder.path, "dangling"));
    expect(await store.list("", { after: null, limit: 10 })).toEqual({ objects: [], next: null });
  });

  test("a folder may be a link to another place", async () => {
    await fs.mkdir(join(folder.path, "elsewhere"));
    await fs.symlink(join(folder.path, "elsewhere"), join(folder.path, "linked"));
    await store.create("linked/a", bytesOf("x"));
    const { objects } = await store.list("linked/", { after: null, limit: 10 });
    expect(objects.map((object) => object.key)).toEqual(["linked/a"]);
  });

  test("a key that another one continues is refused, in either order", async () => {
    await store.create("a/b", bytesOf("x"));
    expect(await codeOf(store.create("a", bytesOf("y")))).toBe("storage_failed");
    expect(await codeOf(store.create("a/b/c", bytesOf("y")))).toBe("storage_failed");
    expect(await temporaries()).toEqual([]);
  });

  test("a folder removed by others is made again", async () => {
    await store.create("a/b/c", bytesOf("x"));
    await fs.rm(join(folder.path, "a"), { recursive: true });
    expect(await store.create("a/b/d", bytesOf("y"))).toBe("created");
    expect(await store.read("a/b/d")).toEqual(bytesOf("y"));
  });

  test("a root that went away fails lists and creates; it is not an empty store", async () => {
    await fs.rm(folder.path, { recursive: true });
    expect(await codeOf(store.list("", { after: null, limit: 10 }))).toBe("storage_failed");
    expect(await codeOf(store.create("a", bytesOf("x")))).toBe("storage_failed");
  });

  test("where contents cannot be synced nothing is created", async () => {
    const real = fs.open;
    const opened = spyOn(fs, "open").mockImplementation(async (...parameters) => {
      const handle = await real(...parameters);
      handle.datasync = () => Promise.reject(diskError());
      return handle;
    });
    try {
      expect(await codeOf(store.create("a/b", bytesOf("x")))).toBe("storage_failed");
    } finally {
      opened.mockRestore();
    }
    expect(await temporaries()).toEqual([]);
    expect(await store.read("a/b")).toBeNull();
    expect(await store.create("a/b", bytesOf("y"))).toBe("created");
  });

  test("folders that a create makes are on the disk with it, up to the one that was there", async () => {
    using entries = watchEntries();
    const fresh = await openStore(join(folder.path, "new/root"));
    await fresh.create("a/b/c", bytesOf("x"));
    expect([...entries.unsynced]).toEqual([]);
    expect(entries.synced).toContain(folder.path);
    await fresh.close();
  });

  test("folders that an earlier process made are synced before the first create in them is answered", async () => {
    await fs.mkdir(join(folder.path, "a/b"), { recursive: true });
    using entries = watchEntries();
    await store.create("a/b/c", bytesOf("x"));
    expect(entries.synced).toEqual(["", "a", "a/b"].map((name) => join(folder.path, name)));
  });

  test("after a failed folder sync its objects are neither confirmed nor denied, though the disk is well again", async () => {
    await store.create("a/before", bytesOf("x"));
    let isFailing = true;
    const opened = spyOnFolderSyncs(() => isFailing);
    try {
      expect(await codeOf(store.create("a/b", bytesOf("x")))).toBe("unknown_outcome");
      isFailing = false;
      expect(await codeOf(store.create("a/b", bytesOf("x")))).toBe("storage_failed");
      expect(await codeOf(store.read("a/b"))).toBe("storage_failed");
      expect(await codeOf(store.size("a/b"))).toBe("storage_failed");
      expect(await store.delete(["a/b", "c"])).toMatchObject([{ deleted: false }, { deleted: true }]);
      expect(await store.create("other/b", bytesOf("x"))).toBe("created");
    } finally {
      opened.mockRestore();
    }
    const again = await openStore();
    expect(await again.read("a/before")).toEqual(bytesOf("x"));
    await again.close();
  });

  test("a folder that could not be synced into its parent is not trusted by the next create, though the disk is well again", async () => {
    await store.create("k/1", bytesOf("x"));
    let isFailing = true;
    const opened = spyOnFolderSyncs(() => isFailing);
    try {
      expect(await codeOf(store.create("a/b", bytesOf("x")))).toBe("storage_failed");
      isFailing = false;
      expect(await codeOf(store.create("a/b", bytesOf("x")))).toBe("storage_failed");
      expect(await codeOf(store.create("c/d", bytesOf("x")))).toBe("storage_failed");
      expect(await store.create("k/2", bytesOf("x"))).toBe("created");
    } finally {
      opened.mockRestore();
    }
    const again = await openStore();
    expect(await again.create("a/b", bytesOf("x"))).toBe("created");
    await again.close();
  });

  test("a loser of a race is told so only when the winner's object is durable", async () => {
    const twin = await openStore();
    await twin.create("a/b", bytesOf("x"));
    const opened = spyOnFolderSyncs(() => true);
    try {
      expect(await codeOf(store.create("a/b", bytesOf("y")))).not.toBe("resolved");
    } finally {
      opened.mockRestore();
      await twin.close();
    }
  });

  test("a delete whose folder sync fails is reported key by key, others are confirmed", async () => {
    await store.create("a/1", bytesOf("x"));
    await store.create("a/2", bytesOf("x"));
    await store.create("b/1", bytesOf("x"));
    let syncs = 0;
    const opened = spyOnFolderSyncs(() => {
      syncs += 1;
      return syncs === 1;
    });
    try {
      expect(await store.delete(["a/1", "b/1", "a/2"])).toMatchObject([
        { key: "a/1", deleted: false, code: "EIO" },
        { key: "b/1", deleted: true },
        { key: "a/2", deleted: false, code: "EIO" },
      ]);
    } finally {
      opened.mockRestore();
    }
  });

  test("a delete that the file system refuses is reported under its own name", async () => {
    await store.create("a", bytesOf("x"));
    await store.create("b", bytesOf("x"));
    const real = fs.unlink;
    const unlinked = spyOn(fs, "unlink").mockImplementation(async (path) => {
      if (String(path).endsWith("/a")) throw Object.assign(new Error("EACCES: permission denied"), { code: "EACCES" });
      return real(path);
    });
    try {
      expect(await store.delete(["a", "b"])).toMatchObject([
        { key: "a", deleted: false, code: "EACCES" },
        { key: "b", deleted: true },
      ]);
    } finally {
      unlinked.mockRestore();
    }
    expect(await store.read("a")).toEqual(bytesOf("x"));
  });

  test("an error at any folder fails the whole page", async () => {
    await store.create("a/1", bytesOf("x"));
    await store.create("b/1", bytesOf("x"));
    const real = fs.readdir;
    const read = spyOn(fs, "readdir").mockImplementation((async (path: string, options: object) => {
      if (path.endsWith("/b/")) throw diskError();
      return real(path, options);
    }) as unknown as typeof fs.readdir);
    try {
      expect(await codeOf(store.list("", { after: null, limit: 10 }))).toBe("storage_failed");
    } finally {
      read.mockRestore();
    }
  });

  test("calls that get no answer end at the deadline: a create not yet linked certainly failed, and never appears", async () => {
    const due: (() => void)[] = [];
    const clock: Clock = {
      ...systemClock,
      schedule: (_delayMs, run) => {
        due.push(run);
        return { cancel: () => undefined };
      },
    };
    const slow = await openStore(folder.path, clock);
    due.length = 0;
    let wake = () => {};
    const hang = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const realRemove = fs.rm;
    let onCleanUp = () => {};
    const isCleanedUp = new Promise<void>((resolve) => {
      onCleanUp = resolve;
    });
    const removed = spyOn(fs, "rm").mockImplementation(async (...parameters) => {
      await realRemove(...parameters);
      onCleanUp();
    });
    const real = fs.open;
    const opened = spyOn(fs, "open").mockImplementation(async (...parameters) => {
      await hang;
      return real(...parameters);
    });
    try {
      const calls = [codeOf(slow.create("a", bytesOf("x"))), codeOf(slow.read("b"))];
      for (const run of due) run();
      expect(await Promise.all(calls)).toEqual(["storage_failed", "storage_failed"]);
    } finally {
      opened.mockRestore();
      wake();
    }
    // The file system answers again; the abandoned create runs to its end without a trace.
    await isCleanedUp;
    removed.mockRestore();
    expect(await temporaries()).toEqual([]);
    expect(await store.read("a")).toBeNull();
    await slow.close();
  });

  test("a create that hangs while it links has an unknown outcome", async () => {
    const due: (() => void)[] = [];
    const clock: Clock = {
      ...systemClock,
      schedule: (_delayMs, run) => {
        due.push(run);
        return { cancel: () => undefined };
      },
    };
    const slow = await openStore(folder.path, clock);
    due.length = 0;
    let onLink = () => {};
    const isLinking = new Promise<void>((resolve) => {
      onLink = resolve;
    });
    let wake = () => {};
    const hang = new Promise<void>((resolve) => {
      wake = resolve;
    });
    const real = fs.link;
    const linked = spyOn(fs, "link").mockImplementation(async (...parameters) => {
      onLink();
      await hang;
      return real(...parameters);
    });
    try {
      const call = codeOf(slow.create("a", bytesOf("x")));
      await isLinking;
      for (const run of due) run();
      expect(await call).toBe("unknown_outcome");
    } finally {
      wake();
      linked.mockRestore();
    }
    await slow.close();
  });

  test("a full disk refuses an object whole and keeps no half of it; with space again it is created", async () => {
    const disk = await mountSmallDisk(2048);
    if (typeof disk === "string") return void console.log(`skipped: ${disk}`);
    await using _ = disk;
    const small = await openStore(disk.path);
    await small.create("first", new Uint8Array(1_000_000));
    expect(await codeOf(small.create("second", new Uint8Array(1_500_000)))).toBe("storage_full");
    expect(await temporaries(disk.path)).toEqual([]);
    expect(await small.read("second")).toBeNull();
    expect(await small.size("first")).toBe(1_000_000);
    await small.delete(["first"]);
    expect(await small.create("second", new Uint8Array(1_500_000))).toBe("created");
    await small.close();
  });
});
