import { expect, test } from "bun:test";
import { isPicoError } from "../../../src/lib/errors.ts";
import type { LocalFile } from "../../../src/storage/local-directory.ts";
import { SimProcess } from "../world/process.ts";
import { World } from "../world/world.ts";
import { CALM_DISK } from "./disk-weather.ts";
import { ServiceLink, SimService } from "./service-link.ts";
import { SimBucket } from "./sim-bucket.ts";
import { SimDisk } from "./sim-disk.ts";
import { SimLocalDirectory } from "./sim-local-directory.ts";
import { SimObjectStore } from "./sim-object-store.ts";
import { CALM, type Weather } from "./weather.ts";

const KEY = "cluster/data/0011223344556677/1";

function bucketAt(seed: string, weather: Partial<Weather>) {
  const world = new World(seed);
  world.faultsOn = true;
  const process = new SimProcess("node 1, life 1", world.scheduler);
  const service = new SimService(world, "store", { ...CALM, ...weather }, "storage_failed");
  const bucket = new SimBucket(world);
  return { world, process, service, bucket, store: new SimObjectStore(bucket, new ServiceLink(service, process, 1)) };
}

/** Runs a call to its end; what it was answered, or the code of its error. */
function settle<T>(world: World, call: Promise<T>): T | string | null {
  let answer: T | string | null = null;
  let isDone = false;
  call.then(
    (value) => {
      answer = value;
      isDone = true;
    },
    (error: unknown) => {
      answer = isPicoError(error) ? error.code : String(error);
      isDone = true;
    },
  );
  world.runUntil(() => isDone, 100_000, "call");
  return answer;
}

test("a lost request and a lost answer are the same unknown outcome to the writer", () => {
  const lostRequest = bucketAt("1", { loseRequestChance: 1 });
  expect(settle(lostRequest.world, lostRequest.store.create(KEY, new Uint8Array(3)))).toBe("unknown_outcome");
  expect(lostRequest.bucket.peek(KEY)).toBeNull();
  const lostAnswer = bucketAt("1", { loseAnswerChance: 1 });
  expect(settle(lostAnswer.world, lostAnswer.store.create(KEY, new Uint8Array(3)))).toBe("unknown_outcome");
  expect(lostAnswer.bucket.peek(KEY)).toEqual(new Uint8Array(3));
});

test("a late create takes effect after its caller has given up", () => {
  const { world, store, bucket } = bucketAt("1", { lateChance: 1, timeoutMs: 100, lateMsMax: 500 });
  expect(settle(world, store.create(KEY, new Uint8Array(3)))).toBe("unknown_outcome");
  expect(bucket.peek(KEY)).toBeNull();
  while (world.scheduler.step());
  expect(bucket.peek(KEY)).not.toBeNull();
});

test("a refused create did nothing, and says so", () => {
  const { world, store, bucket } = bucketAt("1", { refuseChance: 1 });
  expect(settle(world, store.create(KEY, new Uint8Array(3)))).toBe("storage_failed");
  expect(bucket.peek(KEY)).toBeNull();
});

test("a key created again after its deletion is told to the checker, if the bytes differ", () => {
  const { world, store, bucket } = bucketAt("1", {});
  const reused: string[] = [];
  bucket.onReuse = (key) => reused.push(key);
  for (const size of [3, 3, 4]) {
    expect(settle(world, store.create(KEY, new Uint8Array(size)))).toBe("created");
    expect(settle(world, store.create(KEY, new Uint8Array(9)))).toBe("exists");
    bucket.delete([KEY], () => false);
  }
  expect(reused).toEqual([KEY]);
});

test("a host that is cut off gets time-outs, a service that is down refuses", () => {
  const { world, store, service } = bucketAt("1", {});
  service.cutHosts.add(1);
  expect(settle(world, store.create(KEY, new Uint8Array(3)))).toBe("unknown_outcome");
  service.cutHosts.clear();
  service.isDown = true;
  expect(settle(world, store.read(KEY))).toBe("storage_failed");
});

test("a call of a dead process is never answered, whatever became of it", () => {
  const { world, store, process } = bucketAt("1", {});
  let isAnswered = false;
  const note = () => {
    isAnswered = true;
  };
  store.create(KEY, new Uint8Array(3)).then(note, note);
  process.die("kill");
  store.read(KEY).then(note, note);
  while (world.scheduler.step());
  expect(isAnswered).toBe(false);
});

function directoryAt(seed: string, weather = CALM_DISK) {
  const world = new World(seed);
  world.faultsOn = true;
  const disk = new SimDisk("host-1", world.prng.branch("disk"));
  const openAs = (name: string) => {
    const process = new SimProcess(name, world.scheduler);
    return { process, directory: new SimLocalDirectory(world, process, disk, weather) };
  };
  return { world, disk, openAs };
}

function fileOf(answer: LocalFile | string | null): LocalFile {
  if (answer === null || typeof answer === "string") throw new Error(`no file: ${answer}`);
  return answer;
}

test("a killed process keeps what it wrote, a power cut keeps what it synced", () => {
  const { world, disk, openAs } = directoryAt("1");
  const { directory } = openAs("life 1");
  const file = fileOf(settle(world, directory.create("wal-1", 8192)));
  file.write([new Uint8Array([1, 2, 3])], 0);
  settle(world, file.sync());
  file.write([new Uint8Array(4000).fill(9)], 4096);

  const second = openAs("life 2").directory;
  const reopened = fileOf(settle(world, second.open("wal-1")));
  expect(settle(world, reopened.read(4096, 2))).toEqual(new Uint8Array([9, 9]));
  disk.losePower();
  const third = fileOf(settle(world, openAs("life 3").directory.open("wal-1")));
  expect(settle(world, third.read(0, 3))).toEqual(new Uint8Array([1, 2, 3]));
  expect(third.sizeBytes).toBe(8192);
});

test("over many power cuts an unsynced page is seen whole, torn and absent", () => {
  const seen = new Set<string>();
  for (let seed = 0; seed < 40; seed++) {
    const { world, disk, openAs } = directoryAt(String(seed));
    const file = fileOf(settle(world, openAs("life 1").directory.create("wal-1", 4096)));
    file.write([new Uint8Array(4096).fill(1)], 0);
    disk.losePower();
    const written = disk.entries.get("wal-1")?.cached.reduce((sum, byte) => sum + byte, 0);
    seen.add(written === 0 ? "absent" : written === 4096 ? "whole" : "torn");
  }
  expect([...seen].sort()).toEqual(["absent", "torn", "whole"]);
});

test("a file whose creation was cut short by a power cut is absent or too short", () => {
  const seen = new Set<string>();
  for (let seed = 0; seed < 40; seed++) {
    const { world, disk, openAs } = directoryAt(String(seed));
    const { process, directory } = openAs("life 1");
    world.breakers.arm(process, 3, () => process.die("power_loss"));
    directory.create("wal-1", 8192).catch(() => {});
    while (world.scheduler.step());
    expect(process.isDead).toBe(true);
    disk.losePower();
    const file = disk.entries.get("wal-1");
    seen.add(file === undefined ? "absent" : file.cached.length < 8192 ? "short" : "whole");
  }
  expect([...seen].sort()).toEqual(["absent", "short"]);
});

test("a failed sync is reported once, and a write to that file afterwards fails the run", () => {
  const { world, openAs } = directoryAt("1", { ...CALM_DISK, syncFailChance: 1 });
  const file = fileOf(settle(world, openAs("life 1").directory.create("wal-1", 4096)));
  file.write([new Uint8Array(10)], 0);
  expect(settle(world, file.sync())).toBe("storage_failed");
  expect(() => file.write([new Uint8Array(10)], 0)).toThrow("after a failed sync");
});

test("the lock is held until unlock or death", () => {
  const { world, openAs } = directoryAt("1");
  const first = openAs("life 1");
  const second = openAs("life 2");
  expect(settle(world, first.directory.lock())).toBeUndefined();
  expect(settle(world, second.directory.lock())).toBe("locked");
  first.process.die("kill");
  expect(settle(world, second.directory.lock())).toBeUndefined();
});
