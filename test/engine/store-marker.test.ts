import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  decodeMarker,
  encodeMarker,
  highestMarker,
  listMarkers,
  markerKey,
  parseMarkerKey,
  readMarker,
} from "../../src/engine/store-marker.ts";
import { codeOf } from "../support/code-of.ts";
import { FaultyStore } from "../support/faulty-store.ts";
import { GOLDEN_MARKER, goldenFiles } from "./golden/write-marker.ts";

const directory = join(import.meta.dir, "golden");

function golden(name: string): Uint8Array {
  return new Uint8Array(readFileSync(join(directory, `${name}.bin`)));
}

const { clusterId, index } = GOLDEN_MARKER;

test("writing again gives the golden bytes, and every golden file of a marker is written", () => {
  const files = goldenFiles();
  for (const [name, bytes] of Object.entries(files)) expect({ name, hex: golden(name).toHex() }).toEqual({ name, hex: bytes.toHex() });
  const present = readdirSync(directory).filter((name) => name.startsWith("marker-"));
  expect(present.sort()).toEqual(
    Object.keys(files)
      .map((name) => `${name}.bin`)
      .sort(),
  );
});

test("a golden marker reads as it was written; every damaged one is corrupt, and only an intact newer one is incompatible", async () => {
  expect(decodeMarker(golden("marker-whole"), clusterId, index)).toEqual(GOLDEN_MARKER);
  for (const name of Object.keys(goldenFiles())) {
    const expected = { "marker-whole": null, "marker-newer-version": "incompatible" }[name];
    expect([name, await codeOf(() => decodeMarker(golden(name), clusterId, index))]).toEqual([
      name,
      expected ?? (expected === null ? null : "corrupt"),
    ]);
  }
});

test("any flipped bit of a marker is corrupt", async () => {
  const bytes = golden("marker-whole");
  for (let at = 0; at < bytes.length; at++) {
    for (let bit = 0; bit < 8; bit++) {
      const flipped = bytes.slice();
      flipped[at] = (flipped[at] ?? 0) ^ (1 << bit);
      expect([at, bit, await codeOf(() => decodeMarker(flipped, clusterId, index))]).toEqual([at, bit, "corrupt"]);
    }
  }
});

test("a key names its index, and a key of another form names none", () => {
  expect(markerKey("c", 7)).toBe("c/marker/0000000000000007");
  expect(parseMarkerKey("c", "c/marker/0000000000000007")).toBe(7);
  for (const key of ["c/marker/7", "c/marker/000000000000000x", "c/marker/0000000000000007/x", "c/marker/", "d/marker/0000000000000007"]) {
    expect([key, parseMarkerKey("c", key)]).toEqual([key, null]);
  }
});

async function storeWith(...indexes: number[]): Promise<FaultyStore> {
  const store = new FaultyStore();
  for (const at of indexes) await store.create(markerKey(clusterId, at), encodeMarker({ ...GOLDEN_MARKER, index: at }));
  return store;
}

test("the highest marker is found whatever the order in which the store lists, and keys that are not ours are left alone", async () => {
  const store = await storeWith(9, 10, 1_000_000, 2);
  await store.create(`${clusterId}/marker/not-ours`, new Uint8Array(1));
  store.reversesLists = true;
  expect(await listMarkers(store, clusterId)).toEqual([2, 9, 10, 1_000_000]);
  expect((await highestMarker(store, clusterId))?.index).toBe(1_000_000);
  expect(await highestMarker(store, "another")).toBeNull();
  expect(await readMarker(store, clusterId, 3)).toBeNull();
});

test("a damaged highest marker is corrupt, however good a lower one is", async () => {
  const store = await storeWith(5);
  await store.create(markerKey(clusterId, 6), golden("marker-cut"));
  expect(await codeOf(() => highestMarker(store, clusterId))).toBe("corrupt");
});

test("a marker that another node replaces between list and read is looked for again; one that is listed and never there is a fault", async () => {
  const store = await storeWith(5);
  store.onRead = async () => {
    store.onRead = () => {};
    await store.create(markerKey(clusterId, 6), encodeMarker({ ...GOLDEN_MARKER, index: 6 }));
    await store.delete([markerKey(clusterId, 5)]);
  };
  expect((await highestMarker(store, clusterId))?.index).toBe(6);
  store.hides = () => true;
  expect(await codeOf(() => highestMarker(store, clusterId))).toBe("storage_failed");
});
