/** The contract of `WalStore`, run against every implementation. */
import { afterEach, describe, expect, test } from "bun:test";
import { TOMBSTONE_BYTES } from "../../src/engine/wal-segment-format.ts";
import { ALL_NUMBERS, type WalStore } from "../../src/engine/wal-store.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import { OWNER, segmentBytes, tombstoneBytes } from "./wal-fixtures.ts";

/** A place that keeps a WAL. Each `open` is a process that finds what the one before left. */
export interface WalPlace {
  open(): Promise<WalStore>;
  dispose(): Promise<void>;
}

const NEXT_LIFE = { nodeId: OWNER.nodeId, nodeEpoch: OWNER.nodeEpoch + 1 };
const OTHER_NODE = { nodeId: -7, nodeEpoch: OWNER.nodeEpoch };

/** `fileBytes` is what one file of the store holds, for sizes around it; any number where there are none. */
export function describeWalStore(name: string, makePlace: () => Promise<WalPlace>, fileBytes: number): void {
  describe(name, () => {
    const places: WalPlace[] = [];
    const stores: WalStore[] = [];

    async function newPlace(): Promise<WalPlace> {
      const place = await makePlace();
      places.push(place);
      return {
        open: async () => {
          const store = await place.open();
          stores.push(store);
          return store;
        },
        dispose: () => place.dispose(),
      };
    }

    async function begun(): Promise<{ store: WalStore; place: WalPlace }> {
      const place = await newPlace();
      const store = await place.open();
      await store.begin(OWNER);
      return { store, place };
    }

    async function reopen(place: WalPlace, store: WalStore): Promise<WalStore> {
      await store.close();
      return place.open();
    }

    afterEach(async () => {
      for (const store of stores.splice(0)) await store.close();
      for (const place of places.splice(0)) await place.dispose();
    });

    test("it names every registration of which a segment or a tombstone is there", async () => {
      const { store, place } = await begun();
      await store.create(OWNER, 1, segmentBytes(1, "body"));
      await store.create(OTHER_NODE, 1, tombstoneBytes(1, { registration: OTHER_NODE }));
      const byNode = (names: readonly RegistrationName[]) => names.toSorted((left, right) => left.nodeId - right.nodeId);
      expect(byNode(await store.registrations())).toEqual([OTHER_NODE, OWNER]);
      expect(byNode(await (await reopen(place, store)).registrations())).toEqual([OTHER_NODE, OWNER]);
    });

    test("those of which more than tombstones is there are told from the others", async () => {
      const { store, place } = await begun();
      await store.create(OWNER, 1, segmentBytes(1, "body"));
      await store.create(OTHER_NODE, 1, tombstoneBytes(1, { registration: OTHER_NODE }));
      expect(await store.registrationsWithSegments()).toEqual([OWNER]);
      const again = await reopen(place, store);
      expect(await again.registrationsWithSegments()).toEqual([OWNER]);
      await again.trim(OWNER, ALL_NUMBERS);
      expect(await again.registrationsWithSegments()).toEqual([]);
    });

    test("what was created is listed in order and read back as it was", async () => {
      const { store, place } = await begun();
      for (let number = 1; number <= 12; number++)
        expect(await store.create(OWNER, number, segmentBytes(number, `body ${number}`))).toBe("created");
      const expectAll = async (at: WalStore) => {
        expect(await at.list(OWNER, 0)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
        expect(await at.list(OWNER, 9)).toEqual([10, 11, 12]);
        expect(await at.list(OWNER, 12)).toEqual([]);
        expect(await at.read(OWNER, 10)).toEqual(segmentBytes(10, "body 10"));
      };
      await expectAll(store);
      await expectAll(await reopen(place, store));
    });

    test("a number is taken once, whatever the bytes", async () => {
      const { store } = await begun();
      await store.create(OWNER, 1, segmentBytes(1, "first"));
      expect(await store.create(OWNER, 1, segmentBytes(1, "second"))).toBe("exists");
      expect(await store.create(OWNER, 1, tombstoneBytes(1))).toBe("exists");
      expect(await store.read(OWNER, 1)).toEqual(segmentBytes(1, "first"));
    });

    test("of racing creates of a number one wins", async () => {
      const { store } = await begun();
      const outcomes = await Promise.all([1, 2, 3].map((at) => store.create(OWNER, 1, segmentBytes(1, `racer ${at}`))));
      expect(outcomes.sort()).toEqual(["created", "exists", "exists"]);
      expect(await store.list(OWNER, 0)).toEqual([1]);
    });

    test("a number held by a tombstone is taken, also after a reopen", async () => {
      const { store, place } = await begun();
      expect(await store.create(OWNER, 1, tombstoneBytes(1))).toBe("created");
      expect(await store.create(OWNER, 1, segmentBytes(1, "late"))).toBe("exists");
      const again = await reopen(place, store);
      expect(await again.create(OWNER, 1, tombstoneBytes(1))).toBe("exists");
      expect(await again.list(OWNER, 0)).toEqual([1]);
      expect(await again.read(OWNER, 1)).toEqual(tombstoneBytes(1));
    });

    test("creates under way together all end, each with its own bytes", async () => {
      const { store } = await begun();
      const numbers = Array.from({ length: 40 }, (_, at) => at + 1);
      await Promise.all(numbers.map((number) => store.create(OWNER, number, segmentBytes(number, "x".repeat(number * 97)))));
      expect(await store.list(OWNER, 0)).toEqual(numbers);
      for (const number of numbers) expect(await store.read(OWNER, number)).toEqual(segmentBytes(number, "x".repeat(number * 97)));
    });

    test("segments of every size around a page and a file read back", async () => {
      const { store, place } = await begun();
      const sizes = [
        0,
        1,
        3991,
        3992,
        3993,
        4096,
        8088,
        fileBytes - 5000,
        fileBytes - 4200,
        fileBytes - 4000,
        fileBytes,
        fileBytes * 3 + 1,
      ];
      for (const [at, size] of sizes.entries()) await store.create(OWNER, at + 1, segmentBytes(at + 1, new Uint8Array(size).fill(at + 1)));
      const again = await reopen(place, store);
      expect(await again.list(OWNER, 0)).toEqual(sizes.map((_, at) => at + 1));
      for (const [at, size] of sizes.entries()) {
        expect(await again.read(OWNER, at + 1)).toEqual(segmentBytes(at + 1, new Uint8Array(size).fill(at + 1)));
      }
    });

    test("registrations do not mix", async () => {
      const { store, place } = await begun();
      await store.create(OWNER, 1, segmentBytes(1, "mine"));
      const again = await reopen(place, store);
      expect(await again.list(NEXT_LIFE, 0)).toEqual([]);
      expect(await again.list(OTHER_NODE, 0)).toEqual([]);
      expect(await again.read(NEXT_LIFE, 1)).toBeNull();
      await again.begin(NEXT_LIFE);
      await again.create(NEXT_LIFE, 1, segmentBytes(1, "next", { registration: NEXT_LIFE }));
      await again.create(OTHER_NODE, 5, tombstoneBytes(5, { registration: OTHER_NODE }));
      expect(await again.list(OWNER, 0)).toEqual([1]);
      expect(await again.list(OTHER_NODE, 0)).toEqual([5]);
      expect(await again.read(OWNER, 1)).toEqual(segmentBytes(1, "mine"));
    });

    test("an absent number reads as null", async () => {
      const { store } = await begun();
      await store.create(OWNER, 1, segmentBytes(1, "one"));
      expect(await store.read(OWNER, 2)).toBeNull();
    });

    test("persisting another life's segments changes none of them", async () => {
      const { store, place } = await begun();
      for (let number = 1; number <= 9; number++) await store.create(OWNER, number, segmentBytes(number, "x".repeat(number * 1000)));
      await store.create(OWNER, 10, tombstoneBytes(10));
      const again = await reopen(place, store);
      await again.persist(OWNER);
      await again.persist(NEXT_LIFE);
      const thirdTime = await reopen(place, again);
      for (let number = 1; number <= 9; number++) {
        expect(await thirdTime.read(OWNER, number)).toEqual(segmentBytes(number, "x".repeat(number * 1000)));
      }
      expect(await thirdTime.read(OWNER, 10)).toEqual(tombstoneBytes(10));
    });

    test("a trim takes nothing above its number and answers with what it could not remove", async () => {
      const { store, place } = await begun();
      for (let number = 1; number <= 9; number++) await store.create(OWNER, number, segmentBytes(number, `body ${number}`));
      expect(await store.trim(OWNER, 5)).toEqual([]);
      expect(await store.trim(OWNER, 5)).toEqual([]);
      const again = await reopen(place, store);
      expect(await again.list(OWNER, 5)).toEqual([6, 7, 8, 9]);
      for (let number = 6; number <= 9; number++) expect(await again.read(OWNER, number)).toEqual(segmentBytes(number, `body ${number}`));
    });

    test("a trim of an ended WAL leaves the tombstone and nothing else", async () => {
      const { store, place } = await begun();
      const likeATombstone = new Uint8Array(TOMBSTONE_BYTES - segmentBytes(1, "").length);
      await store.create(OWNER, 1, segmentBytes(1, ""));
      await store.create(OWNER, 2, segmentBytes(2, likeATombstone));
      await store.create(OWNER, 3, segmentBytes(3, "x".repeat(5000)));
      await store.create(OWNER, 4, tombstoneBytes(4));
      await store.create(OWNER, 5, segmentBytes(5, "void"));
      const again = await reopen(place, store);
      expect(await again.trim(OWNER, ALL_NUMBERS)).toEqual([]);
      expect(await again.list(OWNER, 0)).toEqual([4]);
      expect(await again.read(OWNER, 4)).toEqual(tombstoneBytes(4));
      const thirdTime = await reopen(place, again);
      expect(await thirdTime.list(OWNER, 0)).toEqual([4]);
    });
  });
}
