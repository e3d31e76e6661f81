/**
 * What every object store must do, as test cases. Each implementation registers them with a factory that
 * makes an empty store.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { isPicoError } from "../../src/lib/errors.ts";
import { MIB } from "../../src/lib/limits.ts";
import { listAll, type ObjectStore } from "../../src/storage/object-store.ts";

export interface ObjectStoreFixture {
  readonly store: ObjectStore;
  /** A second client of the same objects, where the store has such a thing; else the store itself. */
  readonly twin: ObjectStore;
  readonly dispose: () => Promise<void>;
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

/** Bytes in which every value and every alignment occurs. */
function patternBytes(size: number): Uint8Array {
  const bytes = new Uint8Array(size);
  let state = 12345;
  for (let i = 0; i < size; i++) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    bytes[i] = state >>> 24;
  }
  return bytes;
}

async function keysOf(store: ObjectStore, prefix: string, pageSize: number): Promise<string[]> {
  const keys: string[] = [];
  for await (const object of listAll(store, prefix, pageSize)) keys.push(object.key);
  return keys;
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  try {
    await call;
  } catch (error) {
    return isPicoError(error) ? error.code : `not a PicoError: ${String(error)}`;
  }
  return "resolved";
}

export function describeObjectStore(name: string, makeFixture: () => Promise<ObjectStoreFixture>): void {
  describe(`object store contract: ${name}`, () => {
    let fixture: ObjectStoreFixture;
    let store: ObjectStore;
    beforeAll(async () => {
      fixture = await makeFixture();
      store = fixture.store;
    }, 60_000);
    // Thousands of objects go.
    afterAll(async () => {
      await fixture.dispose();
    }, 60_000);

    describe("create and read", () => {
      test("an object reads back as created, also by another client", async () => {
        expect(await store.create("create/one", bytesOf("one"))).toBe("created");
        expect(await store.read("create/one")).toEqual(bytesOf("one"));
        expect(await fixture.twin.read("create/one")).toEqual(bytesOf("one"));
        expect(await store.size("create/one")).toBe(3);
      });

      test("a second create of a key is refused and leaves the first bytes", async () => {
        await store.create("create/two", bytesOf("first"));
        expect(await store.create("create/two", bytesOf("other"))).toBe("exists");
        expect(await fixture.twin.create("create/two", bytesOf("third"))).toBe("exists");
        expect(await store.read("create/two")).toEqual(bytesOf("first"));
      });

      test("an empty object exists", async () => {
        expect(await store.create("create/empty", new Uint8Array(0))).toBe("created");
        expect(await store.create("create/empty", bytesOf("x"))).toBe("exists");
        expect(await store.read("create/empty")).toEqual(new Uint8Array(0));
        expect(await store.size("create/empty")).toBe(0);
      });

      test("an absent key has no bytes and no size", async () => {
        expect(await store.read("absent/key")).toBeNull();
        expect(await store.read("absent/key", { start: 0, end: 10 })).toBeNull();
        expect(await store.size("absent/key")).toBeNull();
        expect(await store.size("create")).toBeNull();
        expect(await store.read("create")).toBeNull();
      });

      test("a large object keeps every byte", async () => {
        const large = patternBytes(9 * MIB + 17);
        expect(await store.create("create/large", large)).toBe("created");
        expect(Buffer.compare((await store.read("create/large")) ?? new Uint8Array(0), large)).toBe(0);
        expect(await store.read("create/large", { start: 5 * MIB - 3, end: 5 * MIB + 70 })).toEqual(large.slice(5 * MIB - 3, 5 * MIB + 70));
      });

      test("a view of a larger buffer is stored without its surroundings", async () => {
        const around = patternBytes(300);
        await store.create("create/view", around.subarray(100, 200));
        expect(await store.read("create/view")).toEqual(around.slice(100, 200));
      });

      test("what the caller does with its buffers afterwards changes nothing", async () => {
        const own = bytesOf("stable");
        await store.create("create/owned", own);
        own.fill(0);
        const taken = await store.read("create/owned");
        taken?.fill(0);
        expect(await store.read("create/owned")).toEqual(bytesOf("stable"));
        expect(taken?.byteLength).toBe(6);
      });

      test("of 16 racing creates of one key exactly one is created, and its bytes stand", async () => {
        for (let round = 0; round < 5; round++) {
          const key = `race/${round}/contended`;
          const outcomes = await Promise.all(
            Array.from({ length: 16 }, (_, i) => (i % 2 === 0 ? store : fixture.twin).create(key, bytesOf(`writer ${i}`))),
          );
          expect(outcomes.filter((outcome) => outcome === "created")).toHaveLength(1);
          expect(await store.read(key)).toEqual(bytesOf(`writer ${outcomes.indexOf("created")}`));
        }
      });
    });

    describe("ranges", () => {
      const whole = patternBytes(1000);
      beforeAll(async () => {
        await store.create("range/object", whole);
        await store.create("range/empty", new Uint8Array(0));
      });
      const cases: readonly [number, number][] = [
        [0, 1000],
        [0, 1],
        [0, 0],
        [1, 2],
        [999, 1000],
        [10, 10],
        [500, 2000],
        [999, 5000],
        [1000, 1001],
        [5000, 6000],
      ];
      test.each(cases)("[%d, %d) is clipped to the object", async (start, end) => {
        expect(await store.read("range/object", { start, end })).toEqual(whole.slice(start, end));
      });
      test("any range of an empty object is empty", async () => {
        expect(await store.read("range/empty", { start: 0, end: 10 })).toEqual(new Uint8Array(0));
      });
    });

    describe("list", () => {
      const many = Array.from({ length: 2500 }, (_, i) => `many/${i % 7}/${String(i).padStart(6, "0")}`).sort();
      beforeAll(async () => {
        for (let at = 0; at < many.length; at += 50) {
          await Promise.all(many.slice(at, at + 50).map((key) => store.create(key, bytesOf(key))));
        }
      }, 120_000);

      // A request a page: one for each of 2,500 keys would take a slow store half a minute.
      test.each([
        ["many/3/", 1],
        ["many/", 7],
        ["many/", 1000],
      ])(
        "the keys of %s come complete, once and in order with pages of %d",
        async (prefix, pageSize) => {
          expect(await keysOf(store, prefix, pageSize)).toEqual(many.filter((key) => key.startsWith(prefix)));
        },
        120_000,
      );

      test("a page that ends with the last key says that it is the last", async () => {
        const page = await store.list("many/0/", { after: null, limit: 358 });
        expect(page.objects).toHaveLength(358);
        expect(page.next).toBeNull();
      });

      test("a full page that is not the last names where to go on", async () => {
        const page = await store.list("many/0/", { after: null, limit: 357 });
        expect(page.objects).toHaveLength(357);
        expect(page.next).toBe(page.objects.at(-1)?.key ?? "");
        const rest = await store.list("many/0/", { after: page.next, limit: 357 });
        expect(rest.objects.map((object) => object.key)).toEqual(many.filter((key) => key.startsWith("many/0/")).slice(357));
        expect(rest.next).toBeNull();
      });

      test("a listed object has its size and a time", async () => {
        const page = await store.list("many/1/000001", { after: null, limit: 10 });
        expect(page.objects).toHaveLength(1);
        expect(page.objects[0]?.sizeBytes).toBe("many/1/000001".length);
        expect(Number.isInteger(page.objects[0]?.modifiedMs)).toBe(true);
        expect(page.objects[0]?.modifiedMs).toBeGreaterThan(0);
      });

      test("keys are in byte order, whatever stands beside a slash", async () => {
        const keys = ["o/a-b", "o/a.b", "o/a/b", "o/a/b-c/d", "o/a/b.c", "o/a0", "o/aA/x", "o/a_b", "o/A/z", "o/10", "o/2"];
        // `o/a/b` and `o/a/b-c/d` share a beginning, yet neither is a folder of the other.
        for (const key of keys) expect(await store.create(key, bytesOf(key))).toBe("created");
        const sorted = [...keys].sort();
        expect(sorted.indexOf("o/a.b")).toBeLessThan(sorted.indexOf("o/a/b"));
        for (const pageSize of [1, 2, 3, 1000]) expect(await keysOf(store, "o/", pageSize)).toEqual(sorted);
        for (const prefix of ["o/a", "o/a/", "o/a/b", "o/a.", "o", "o/b"]) {
          expect(await keysOf(store, prefix, 2)).toEqual(sorted.filter((key) => key.startsWith(prefix)));
        }
      });

      test("a page goes on behind `after`, whether or not that key exists", async () => {
        for (const key of ["after/b", "after/d/e", "after/d/g", "after/f"]) await store.create(key, bytesOf(key));
        const from = async (after: string) => (await store.list("after/", { after, limit: 10 })).objects.map((o) => o.key);
        expect(await from("after/a")).toEqual(["after/b", "after/d/e", "after/d/g", "after/f"]);
        expect(await from("after/b")).toEqual(["after/d/e", "after/d/g", "after/f"]);
        expect(await from("after/d/f")).toEqual(["after/d/g", "after/f"]);
        expect(await from("after/d/z")).toEqual(["after/f"]);
        expect(await from("after/e")).toEqual(["after/f"]);
        expect(await from("after/f")).toEqual([]);
        expect(await from("zzz")).toEqual([]);
        expect(await from("a")).toEqual(["after/b", "after/d/e", "after/d/g", "after/f"]);
      });

      test("a prefix that nothing has lists nothing", async () => {
        expect(await store.list("nothing/here/", { after: null, limit: 10 })).toEqual({ objects: [], next: null });
        expect(await store.list("many/0/000000/", { after: null, limit: 10 })).toEqual({ objects: [], next: null });
      });

      test("a create is listed as soon as it is answered, by every client", async () => {
        for (let i = 0; i < 20; i++) {
          await store.create(`fresh/${i}`, bytesOf("x"));
          expect(await keysOf(fixture.twin, "fresh/", 1000)).toHaveLength(i + 1);
        }
      });
    });

    describe("delete", () => {
      test("a deleted object is gone for reads, sizes and lists, and its key can be created again", async () => {
        await store.create("delete/one", bytesOf("x"));
        expect(await store.delete(["delete/one"])).toEqual([{ key: "delete/one", deleted: true }]);
        expect(await fixture.twin.read("delete/one")).toBeNull();
        expect(await store.size("delete/one")).toBeNull();
        expect(await keysOf(store, "delete/", 10)).toEqual([]);
        expect(await store.create("delete/one", bytesOf("y"))).toBe("created");
      });

      test("one outcome a key, in the order given, absent ones included", async () => {
        await store.create("delete/b", bytesOf("x"));
        await store.create("delete/a", bytesOf("x"));
        const keys = ["delete/b", "delete/absent", "nowhere/at/all", "delete/a", "delete/b"];
        expect(await store.delete(keys)).toEqual(keys.map((key) => ({ key, deleted: true })));
        expect(await store.delete([])).toEqual([]);
      });

      test("1,000 keys go in one call, and their neighbours stay", async () => {
        const keys = Array.from({ length: 1000 }, (_, i) => `bulk/${String(i).padStart(4, "0")}`);
        for (let at = 0; at < keys.length; at += 50) {
          await Promise.all(keys.slice(at, at + 50).map((key) => store.create(key, bytesOf("x"))));
        }
        await store.create("bulk/neighbour", bytesOf("x"));
        const outcomes = await store.delete(keys);
        expect(outcomes.every((outcome) => outcome.deleted)).toBe(true);
        expect(await keysOf(store, "bulk/", 1000)).toEqual(["bulk/neighbour"]);
      }, 60_000);

      test("deleting what begins like another key leaves the other", async () => {
        await store.create("delete/folder/inner", bytesOf("x"));
        expect(await store.delete(["delete/folder"])).toEqual([{ key: "delete/folder", deleted: true }]);
        expect(await store.read("delete/folder/inner")).toEqual(bytesOf("x"));
      });
    });

    describe("refusals", () => {
      const badKeys = ["", "/", "a//b", "/a", "a/", ".", "..", "a/../b", "a/./b", "a b", "ä", "a\0b", "a\\b", "~a", "a".repeat(513)];
      test.each(badKeys)("the key %j is refused by every call", async (key) => {
        expect(await codeOf(store.create(key, bytesOf("x")))).toBe("storage_failed");
        expect(await codeOf(store.read(key))).toBe("storage_failed");
        expect(await codeOf(store.size(key))).toBe("storage_failed");
        expect(await codeOf(store.delete([key]))).toBe("storage_failed");
      });

      test("a key of 512 bytes is stored", async () => {
        const key = `${Array.from({ length: 8 }, () => "k".repeat(63)).join("/")}k`;
        expect(key).toHaveLength(512);
        expect(await store.create(key, bytesOf("x"))).toBe("created");
        expect(await keysOf(store, "kkk", 10)).toEqual([key]);
      });

      test("limits out of bounds are refused", async () => {
        for (const limit of [0, -1, 1001, 1.5, Number.NaN]) {
          expect(await codeOf(store.list("many/", { after: null, limit }))).toBe("storage_failed");
        }
        expect(await codeOf(store.delete(Array.from({ length: 1001 }, (_, i) => `x/${i}`)))).toBe("storage_failed");
      });
    });

    test("after close every call rejects", async () => {
      const closing = await makeFixture();
      await closing.store.close();
      expect(await codeOf(closing.store.create("a", bytesOf("x")))).toBe("storage_failed");
      expect(await codeOf(closing.store.read("a"))).toBe("storage_failed");
      expect(await codeOf(closing.store.size("a"))).toBe("storage_failed");
      expect(await codeOf(closing.store.list("", { after: null, limit: 1 }))).toBe("storage_failed");
      expect(await codeOf(closing.store.delete(["a"]))).toBe("storage_failed");
      await closing.dispose();
    });
  });
}
