/** The S3 store against a scripted double: what real stores and networks do when they are not well. */
import { afterAll, afterEach, beforeAll, expect, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";
import { isPicoError, type PicoError } from "../../src/lib/errors.ts";
import { OBJECT_BYTES_TARGET, S3_ATTEMPTS_MAX, S3_CALL_TIMEOUT_MS, S3_OBJECT_BYTES_MAX } from "../../src/lib/limits.ts";
import type { Logger } from "../../src/lib/log.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { listAll } from "../../src/storage/object-store.ts";
import { probeObjectStore } from "../../src/storage/object-store-probe.ts";
import { S3ObjectStore } from "../../src/storage/s3-object-store.ts";
import { FAKE_BUCKET, type FakeAnswer, type FakeRequest, FakeS3, type Habits, refusal } from "../support/fake-s3.ts";
import { HastyClock } from "../support/hasty-clock.ts";
import { useTestCredentials } from "../support/minio.ts";
import { noted } from "../support/noted-log.ts";
import { silentLog } from "../support/silent-log.ts";
import { describeObjectStore } from "./object-store-contract.ts";

let restore = () => {};
beforeAll(() => {
  restore = useTestCredentials();
});
afterAll(() => restore());

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

interface Options {
  readonly bucket?: string;
  readonly prefix?: string;
  /** By how much time-outs are shorter. */
  readonly haste?: number;
  readonly clockAheadMs?: number;
  readonly log?: Logger;
}

async function openStore(fake: FakeS3, { bucket = FAKE_BUCKET, prefix = "", haste = 1, clockAheadMs = 0, log = silentLog }: Options = {}) {
  const place = { bucket, prefix, region: null, endpoint: fake.endpoint, isPathStyle: null, isExpress: false, encryption: null };
  return S3ObjectStore.open({ place, clock: new HastyClock({ haste, aheadMs: clockAheadMs }), random: systemRandom, log });
}

async function setUp(habits: Habits = {}, options: Options = {}): Promise<{ fake: FakeS3; store: S3ObjectStore }> {
  const fake = await FakeS3.start(habits);
  closing.push(() => fake.stop());
  const store = await openStore(fake, options);
  closing.push(() => store.close());
  return { fake, store };
}

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);
const puts = ({ method }: FakeRequest): boolean => method === "PUT";
const gets = ({ method, key }: FakeRequest): boolean => method === "GET" && key !== "";
const heads = ({ method }: FakeRequest): boolean => method === "HEAD";
const lists = ({ method, key }: FakeRequest): boolean => method === "GET" && key === "";
const batches = ({ method }: FakeRequest): boolean => method === "POST";
const all = (): boolean => true;

async function errorOf(call: Promise<unknown>): Promise<PicoError> {
  const error = await call.then(
    (value) => new Error(`resolved with ${JSON.stringify(value)}`),
    (thrown: unknown) => thrown,
  );
  if (isPicoError(error)) return error;
  throw error;
}

async function keysOf(store: S3ObjectStore, prefix: string, pageSize: number): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of listAll(store, prefix, pageSize)) keys.push(key);
  return keys;
}

describeObjectStore("S3 on a double", async () => {
  const fake = await FakeS3.start();
  const store = await openStore(fake);
  const twin = await openStore(fake);
  return {
    store,
    twin,
    dispose: async () => {
      await store.close();
      await twin.close();
      await fake.stop();
    },
  };
});

// What an answer to a create means (FAULTS S3).

test("a conflict with another request is tried again", async () => {
  const { fake, store } = await setUp();
  fake.plan(puts, { kind: "answer", answer: refusal(409, "ConditionalRequestConflict") });
  expect(await store.create("a/b", bytesOf("mine"))).toBe("created");
});

test("a conflict that another request won is exists", async () => {
  const { fake, store } = await setUp();
  await (await openStore(fake)).create("a/b", bytesOf("theirs"));
  fake.plan(puts, { kind: "answer", answer: refusal(409, "ConditionalRequestConflict") });
  expect(await store.create("a/b", bytesOf("mine"))).toBe("exists");
  expect(await store.read("a/b")).toEqual(bytesOf("theirs"));
});

test("a create whose answer was lost is created, though its retry finds the key taken", async () => {
  const { fake, store } = await setUp();
  fake.plan(puts, { kind: "answer", answer: refusal(500, "InternalError") });
  fake.plan(puts, { kind: "change", change: () => refusal(500, "InternalError") });
  expect(await store.create("a/b", bytesOf("mine"))).toBe("created");
  expect(fake.count(puts)).toBe(3);
});

test("what fetch repeats by itself over a connection that had been closed is no other's create", async () => {
  const { fake, store } = await setUp();
  await store.create("a/first", bytesOf("opens the connection"));
  fake.plan(puts, { kind: "reset", isDone: true });
  expect(await store.create("a/b", bytesOf("mine"))).toBe("created");
  expect(await store.create("a/b", bytesOf("mine"))).toBe("exists");
});

test("equal bytes of another's object are exists all the same", async () => {
  const { fake, store } = await setUp();
  await (await openStore(fake)).create("a/b", bytesOf("same"));
  fake.plan(puts, { kind: "answer", answer: refusal(500, "InternalError") });
  expect(await store.create("a/b", bytesOf("same"))).toBe("exists");
});

test("where the store keeps no marks the bytes decide about an answer that was lost", async () => {
  const { fake, store } = await setUp({ dropsMetadata: true });
  fake.plan(puts, { kind: "change", change: () => refusal(500, "InternalError") });
  expect(await store.create("a/b", bytesOf("mine"))).toBe("created");
  fake.plan(puts, { kind: "answer", answer: refusal(500, "InternalError") });
  expect(await store.create("a/b", bytesOf("other"))).toBe("exists");
  expect(await store.create("a/b", bytesOf("others"))).toBe("exists");
});

test("where the store keeps no marks the bytes decide about what fetch repeated by itself, too", async () => {
  const { fake, store } = await setUp({ dropsMetadata: true });
  await store.create("a/first", bytesOf("opens the connection"));
  fake.plan(puts, { kind: "reset", isDone: true });
  expect(await store.create("a/b", bytesOf("mine"))).toBe("created");
});

test("a key that was taken and is gone leaves the outcome open", async () => {
  const { fake, store } = await setUp();
  fake.plan(puts, { kind: "answer", answer: refusal(412, "PreconditionFailed") });
  expect((await errorOf(store.create("a/b", bytesOf("mine")))).code).toBe("unknown_outcome");
});

test("a refusal whose cause cannot be looked at leaves the outcome open", async () => {
  const { fake, store } = await setUp();
  await store.create("a/b", bytesOf("theirs"));
  fake.plan(heads, { kind: "answer", answer: { status: 403 } });
  expect((await errorOf(store.create("a/b", bytesOf("mine")))).code).toBe("unknown_outcome");
});

test.each([
  ["refused", { kind: "answer", answer: refusal(403, "AccessDenied") }, "storage_failed"],
  ["too busy", { kind: "answer", answer: refusal(429, "SlowDown") }, "storage_failed"],
  ["full", { kind: "answer", answer: refusal(507, "XMinioStorageFull") }, "storage_full"],
  ["a server's fault", { kind: "answer", answer: refusal(503, "SlowDown") }, "unknown_outcome"],
  ["cut off before", { kind: "reset", isDone: false }, "unknown_outcome"],
] as const)("a create that is %s to the end rejects with what is known", async (_, fault, code) => {
  const { fake, store } = await setUp();
  fake.plan(puts, fault, 100);
  expect((await errorOf(store.create("a/b", bytesOf("mine")))).code).toBe(code);
  expect(fake.objects.size).toBe(0);
});

test("a store that nobody reaches did nothing", async () => {
  const { fake, store } = await setUp();
  closing.shift();
  await fake.stop();
  const error = await errorOf(store.create("a/b", bytesOf("mine")));
  expect(error.code).toBe("storage_failed");
  expect(error.facts.isRetryable).toBe(true);
});

// Success that is none (FAULTS S4).

/** Of an error's document in an answer that looks like a success. */
const NAMED = { etag: '"x"', "content-type": "application/xml" };

test("a success with an error inside, or without a word about what was stored, is settled and never believed", async () => {
  const { fake, store } = await setUp();
  fake.plan(puts, { kind: "answer", answer: { ...refusal(200, "InternalError"), status: 200 } });
  expect(await store.create("a/inside", bytesOf("x"))).toBe("created");
  fake.plan(puts, { kind: "answer", answer: { status: 200 } });
  expect(await store.create("a/empty", bytesOf("x"))).toBe("created");
  fake.plan(puts, { kind: "answer", answer: { ...refusal(200, "InternalError"), headers: NAMED } });
  expect(await store.create("a/named", bytesOf("x"))).toBe("created");
  expect([...fake.objects.keys()].sort()).toEqual(["a/empty", "a/inside", "a/named"]);
});

test("a read that is cut off, empty or an error inside is read again", async () => {
  const { fake, store } = await setUp();
  const bytes = Uint8Array.from({ length: 100_000 }, (_, at) => at % 251);
  await store.create("a/b", bytes);
  const partOf = (start: number, end: number) => ({
    status: 206,
    headers: { etag: '"x"', "content-range": `bytes ${start}-${end - 1}/100000` },
    body: bytes.slice(start, end),
  });
  const faults = [
    { kind: "cut" },
    { kind: "answer", answer: { status: 200 } },
    { kind: "answer", answer: { ...refusal(200, "InternalError"), status: 200 } },
    { kind: "answer", answer: { ...refusal(200, "InternalError"), headers: NAMED } },
    // Another range.
    { kind: "change", change: () => partOf(0, 5) },
    { kind: "change", change: () => partOf(11, 60_000) },
    // Less than it says.
    { kind: "change", change: () => ({ ...partOf(10, 60_000), body: bytes.slice(10, 50_000) }) },
    { kind: "change", change: () => ({ ...partOf(0, 1), body: "" }) },
  ] as const;
  for (const fault of faults) {
    for (const range of [undefined, { start: 10, end: 60_000 }]) {
      fake.plan(gets, fault as Parameters<FakeS3["plan"]>[1]);
      expect(await store.read("a/b", range)).toEqual(bytes.slice(range?.start, range?.end));
    }
    fake.plan(gets, fault as Parameters<FakeS3["plan"]>[1]);
    expect(await store.size("a/b")).toBe(100_000);
  }
});

test("an answer without a length, or longer than anything that is stored, is not read to its end", async () => {
  const { fake, store } = await setUp();
  await store.create("a/b", bytesOf("0123456789"));
  const bytes = 64 * 1024 * 1024;
  fake.plan(gets, { kind: "flood", bytes });
  expect(await store.read("a/b", { start: 2, end: 4 })).toEqual(bytesOf("23"));
  fake.plan(gets, { kind: "flood", bytes });
  expect(await store.size("a/b")).toBe(10);
  fake.plan(puts, { kind: "flood", bytes });
  await store.create("a/c", bytesOf("x"));
  expect(fake.floodedBytes).toBeLessThan(bytes);
  const tooLong = { "content-length": String(S3_OBJECT_BYTES_MAX + 1) };
  fake.plan(gets, { kind: "change", change: (answer) => ({ ...answer, headers: { ...answer.headers, ...tooLong } }) }, S3_ATTEMPTS_MAX);
  expect((await errorOf(store.read("a/b"))).facts.code).toBe("BadAnswer");
});

test("a list that is empty, an error inside or short of keys is asked for again", async () => {
  const { fake, store } = await setUp();
  for (const key of ["l/1", "l/2", "l/3"]) await store.create(key, bytesOf("x"));
  const answers = [
    { status: 200 },
    { status: 200, body: "<ListBucketResult></ListBucketResult>" },
    { ...refusal(200, "InternalError"), status: 200 },
  ];
  for (const answer of answers) {
    fake.plan(lists, { kind: "answer", answer });
    expect(await keysOf(store, "l/", 1000)).toEqual(["l/1", "l/2", "l/3"]);
  }
  fake.plan(lists, { kind: "cut" });
  expect(await keysOf(store, "l/", 1000)).toEqual(["l/1", "l/2", "l/3"]);
  const lose = (text: string) => text.replace(/<Contents><Key>l\/2.*?<\/Contents>/, "");
  fake.plan(lists, { kind: "change", change: (answer) => ({ ...answer, body: lose(String(answer.body)) }) });
  expect(await keysOf(store, "l/", 1000)).toEqual(["l/1", "l/2", "l/3"]);
  fake.plan(lists, { kind: "answer", answer: { status: 200 } }, 100);
  expect((await errorOf(store.list("l/", { after: null, limit: 10 }))).code).toBe("storage_failed");
});

test("a delete whose answer names no key deletes each by itself", async () => {
  const { fake, store } = await setUp();
  for (const key of ["d/1", "d/2", "d/3"]) await store.create(key, bytesOf("x"));
  fake.plan(batches, { kind: "answer", answer: { status: 200 } });
  expect(await store.delete(["d/1", "d/2", "d/3"])).toEqual(["d/1", "d/2", "d/3"].map((key) => ({ key, deleted: true })));
  expect(fake.objects.size).toBe(0);
});

test("an absence is believed only from a store: a missing bucket or an unknown path is an error", async () => {
  const { fake, store } = await setUp();
  expect(await store.read("a/b")).toBeNull();
  for (const answer of [refusal(404, "NoSuchBucket"), { status: 404, body: "<html>not found</html>" }, { status: 404 }]) {
    for (const call of [() => store.read("a/b"), () => store.size("a/b"), () => store.read("a/b", { start: 0, end: 5 })]) {
      fake.plan(gets, { kind: "answer", answer });
      expect((await errorOf(call())).code).toBe("storage_failed");
    }
  }
});

// Lists (FAULTS W9).

test("a store that cuts lists without saying so gives all keys", async () => {
  const { log, lines } = noted();
  const { fake, store } = await setUp({ cutsListsAt: 100 }, { log });
  const keys = Array.from({ length: 250 }, (_, at) => `w/${String(at).padStart(4, "0")}`);
  for (const key of keys) await store.create(key, bytesOf("x"));
  for (const pageSize of [1000, 70]) expect(await keysOf(store, "w/", pageSize)).toEqual(keys);
  expect(fake.count(lists)).toBeGreaterThan(3);
  expect(lines.map(({ text }) => text)).toEqual([expect.stringContaining("the store cuts lists")]);
});

test("a key that comes behind the end of a list is listed, and the store is not said to cut lists", async () => {
  const { log, lines } = noted();
  const { fake, store } = await setUp({}, { log });
  await store.create("w/1", bytesOf("x"));
  await store.create("x/1", bytesOf("x"));
  const later = fake.objects.get("x/1");
  if (later === undefined) throw new Error("no object");
  const change = (answer: FakeAnswer) => {
    fake.objects.set("w/2", later);
    return answer;
  };
  fake.plan(lists, { kind: "change", change });
  expect(await keysOf(store, "w/", 1000)).toEqual(["w/1", "w/2"]);
  expect(lines).toEqual([]);
});

test("a store that lists in no order gives keys in order, with pages of every size", async () => {
  const { store } = await setUp({ listsUnordered: true });
  const keys = Array.from({ length: 60 }, (_, at) => `u/${String(at).padStart(2, "0")}`);
  for (const key of keys) await store.create(key, bytesOf("x"));
  for (const pageSize of [1, 7, 59, 60, 1000]) expect(await keysOf(store, "u/", pageSize)).toEqual(keys);
  expect(await keysOf(store, "u/1", 3)).toEqual(keys.filter((key) => key.startsWith("u/1")));
});

test("a page without a key is not the last one while the store says that more come", async () => {
  const { fake, store } = await setUp();
  const keys = ["w/1", "w/2", "w/3"];
  for (const key of keys) await store.create(key, bytesOf("x"));
  const empty = (text: string) =>
    text
      .replace(/<Contents>.*<\/Contents>/, "")
      .replace("<KeyCount>3<", "<KeyCount>0<")
      .replace("<IsTruncated>false</IsTruncated>", "<IsTruncated>true</IsTruncated><NextContinuationToken>w/</NextContinuationToken>");
  fake.plan(lists, { kind: "change", change: (answer) => ({ ...answer, body: empty(String(answer.body)) }) }, 2);
  expect(await keysOf(store, "w/", 1000)).toEqual(keys);
  expect(fake.count(lists)).toBe(4);
});

test("a page that is not the last and does not say where to go on is asked for again, whatever the order", async () => {
  for (const listsUnordered of [false, true]) {
    const { fake, store } = await setUp({ listsUnordered });
    const keys = Array.from({ length: 1200 }, (_, at) => `w/${String(at).padStart(4, "0")}`);
    await store.create("w/0000", bytesOf("x"));
    const [any] = fake.objects.values();
    if (any === undefined) throw new Error("nothing stored");
    for (const key of keys) fake.objects.set(key, any);
    const lose = (text: string) => text.replace(/<NextContinuationToken>.*<\/NextContinuationToken>/, "");
    // In no order this is asked for once the store has shown that it has none.
    await store.list("w/", { after: null, limit: 1 });
    fake.plan(lists, { kind: "change", change: (answer) => ({ ...answer, body: lose(String(answer.body)) }) });
    expect(await keysOf(store, "w/", 1000)).toEqual(keys);
  }
});

test("an error of the second page fails the whole list", async () => {
  const { fake, store } = await setUp();
  for (let at = 0; at < 20; at++) await store.create(`w/${String(at).padStart(2, "0")}`, bytesOf("x"));
  fake.plan(
    (request) => lists(request) && request.query.get("start-after") !== null,
    { kind: "answer", answer: refusal(503, "SlowDown") },
    100,
  );
  expect((await errorOf(keysOf(store, "w/", 7))).code).toBe("storage_failed");
});

test("keys of others that are none of ours are passed over", async () => {
  const { fake, store } = await setUp();
  for (const key of ["x/a", "x/b", "x/c"]) await store.create(key, bytesOf("x"));
  const [any] = fake.objects.values();
  if (any === undefined) throw new Error("nothing stored");
  for (const key of ["x/", "x/b/", "x/b b"]) fake.objects.set(key, any);
  for (const pageSize of [1, 2, 1000]) expect(await keysOf(store, "x/", pageSize)).toEqual(["x/a", "x/b", "x/c"]);
});

test("a list without an end is an error of the store", async () => {
  const { fake, store } = await setUp({ listsUnordered: true });
  for (let at = 0; at < 5; at++) await store.create(`w/${at}`, bytesOf("x"));
  const isEndless = (text: string) =>
    text.replace("<IsTruncated>false</IsTruncated>", "<IsTruncated>true</IsTruncated><NextContinuationToken>w/0</NextContinuationToken>");
  fake.plan(lists, { kind: "change", change: (answer) => ({ ...answer, body: isEndless(String(answer.body)) }) }, 100);
  const error = await errorOf(store.list("w/", { after: null, limit: 3 }));
  expect(error.code).toBe("storage_failed");
  expect(error.facts).toMatchObject({ operation: "list", bucket: FAKE_BUCKET, code: "EndlessList" });
});

// Deletes (FAULTS G4, S5).

test.each(["ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired", "BadDigest"])(
  "%s says nothing about deletes of many keys: they are tried again as such",
  async (code) => {
    const { fake, store } = await setUp();
    for (const key of ["d/1", "d/2"]) await store.create(key, bytesOf("x"));
    fake.plan(batches, { kind: "answer", answer: refusal(400, code) });
    expect((await store.delete(["d/1", "d/2"])).every(({ deleted }) => deleted)).toBe(true);
    expect(fake.count(batches)).toBe(2);
  },
);

test("one refused key of a batch is refused with the store's word, and the others are deleted", async () => {
  const { fake, store } = await setUp({ locked: new Set(["d/2"]) });
  for (const key of ["d/1", "d/2", "d/3"]) await store.create(key, bytesOf("x"));
  expect(await store.delete(["d/3", "d/2", "d/1", "d/none"])).toEqual([
    { key: "d/3", deleted: true },
    { key: "d/2", deleted: false, code: "AccessDenied", message: "locked" },
    { key: "d/1", deleted: true },
    { key: "d/none", deleted: true },
  ]);
  expect([...fake.objects.keys()]).toEqual(["d/2"]);
  expect(await store.delete(["d/2"])).toMatchObject([{ key: "d/2", deleted: false, code: "AccessDenied" }]);
});

test.each([
  ["has no delete of many keys", { hasNoBatchDelete: true }],
  ["wants Content-MD5", { wantsContentMd5: true }],
  ["refuses the checksum that the SDK sends with it", { refusesChecksums: true }],
  ["names errors only", { namesNoDeleted: true }],
] as const)("a store that %s deletes all the same", async (_, habits) => {
  const { fake, store } = await setUp({ ...habits, locked: new Set(["d/1"]) });
  const keys = Array.from({ length: 30 }, (_, at) => `d/${at}`);
  for (const key of keys) await store.create(key, bytesOf("x"));
  for (let round = 0; round < 2; round++) {
    const outcomes = await store.delete(keys);
    expect(outcomes.map(({ key }) => key)).toEqual(keys);
    expect(outcomes.filter(({ deleted }) => !deleted)).toMatchObject([{ key: "d/1", code: "AccessDenied" }]);
  }
  expect([...fake.objects.keys()]).toEqual(["d/1"]);
});

test.each([200, 202])("a delete that is answered %d has deleted", async (status) => {
  const { fake, store } = await setUp();
  await store.create("d/1", bytesOf("x"));
  fake.plan(({ method }) => method === "DELETE", { kind: "change", change: () => ({ status }) }, 100);
  expect(await store.delete(["d/1"])).toEqual([{ key: "d/1", deleted: true }]);
  expect(fake.objects.size).toBe(0);
});

test("a delete that nobody answers is open, one that is refused is not", async () => {
  const { fake, store } = await setUp();
  await store.create("d/1", bytesOf("x"));
  fake.plan(all, { kind: "reset", isDone: false }, 100);
  expect((await errorOf(store.delete(["d/1", "d/2"]))).code).toBe("unknown_outcome");
  const other = await setUp();
  other.fake.plan(all, { kind: "answer", answer: refusal(403, "InvalidAccessKeyId") }, 100);
  expect((await errorOf(other.store.delete(["d/1", "d/2"]))).code).toBe("storage_failed");
});

// Time.

test("a silent store: every call ends, a create with its outcome open", async () => {
  const { fake, store } = await setUp({}, { haste: 20 });
  fake.plan(all, { kind: "silence" }, 1000);
  const [create, ...reads] = await Promise.all([
    errorOf(store.create("a/b", bytesOf("x"))),
    errorOf(store.read("a/b")),
    errorOf(store.size("a/b")),
    errorOf(store.list("a/", { after: null, limit: 5 })),
  ]);
  expect(create?.code).toBe("unknown_outcome");
  expect(reads.map(({ code }) => code)).toEqual(["storage_failed", "storage_failed", "storage_failed"]);
  expect((await errorOf(store.delete(["a/b", "a/c"]))).code).toBe("unknown_outcome");
});

test("a long read that goes on coming is not cut off", async () => {
  const { fake, store } = await setUp({}, { haste: 6 });
  await store.create("a/b", bytesOf("x"));
  const [small] = fake.objects.values();
  if (small === undefined) throw new Error("nothing stored");
  fake.objects.set("a/long", { ...small, bytes: new Uint8Array(32 * 1024 * 1024).fill(7) });
  fake.plan(gets, { kind: "slow", parts: 15, pauseMs: 100 });
  expect((await store.read("a/long"))?.length).toBe(32 * 1024 * 1024);
  expect(fake.count(gets)).toBe(1);
}, 60_000);

test("the time of a read grows with its size: a whole object of 64 MiB may take longer than all attempts of a short one", async () => {
  const haste = 4;
  const { fake, store } = await setUp({}, { haste });
  await store.create("a/b", bytesOf("x"));
  const [small] = fake.objects.values();
  if (small === undefined) throw new Error("nothing stored");
  const bytes = new Uint8Array(OBJECT_BYTES_TARGET).fill(7);
  fake.objects.set("a/long", { ...small, bytes });
  const slow = { parts: 80, pauseMs: 100 };
  expect(slow.parts * slow.pauseMs * haste).toBeGreaterThan(S3_CALL_TIMEOUT_MS);
  fake.plan(gets, { kind: "slow", ...slow });
  expect(Buffer.compare((await store.read("a/long")) ?? new Uint8Array(), bytes)).toBe(0);
  // Not by another attempt, which the fake answers at once.
  expect(fake.count(gets)).toBe(1);
}, 60_000);

test("a long read that is slow where the one before was quick is tried again, and then is not cut off", async () => {
  const { fake, store } = await setUp({}, { haste: 2 });
  await store.create("a/b", bytesOf("x"));
  const [small] = fake.objects.values();
  if (small === undefined) throw new Error("nothing stored");
  const bytes = new Uint8Array(16 * 1024 * 1024).fill(7);
  fake.objects.set("a/long", { ...small, bytes });
  const isWhole = async () => Buffer.compare((await store.read("a/long")) ?? new Uint8Array(), bytes) === 0;
  // The first is watched, the second no more.
  for (let read = 0; read < 2; read++) expect(await isWhole()).toBe(true);
  // Longer than the first time of an attempt.
  const slow = { kind: "slow", parts: 40, pauseMs: 100 } as const;
  fake.plan(gets, slow, 2);
  expect(await isWhole()).toBe(true);
  expect(fake.count(gets)).toBe(4);
  // From then on it is watched at once.
  fake.plan(gets, slow);
  expect(await isWhole()).toBe(true);
  expect(fake.count(gets)).toBe(5);
}, 60_000);

test("a long read that comes too slowly, or stops, ends", async () => {
  const { fake, store } = await setUp({}, { haste: 20 });
  await store.create("a/b", new Uint8Array(100_000));
  for (const pauseMs of [20, 100_000]) {
    fake.plan(gets, { kind: "slow", parts: pauseMs === 20 ? 1000 : 1, pauseMs }, S3_ATTEMPTS_MAX);
    expect((await errorOf(store.read("a/b"))).code).toBe("storage_failed");
    fake.forget();
  }
}, 60_000);

test("a create that was done and never answered is found to be our own", async () => {
  const { fake, store } = await setUp({}, { haste: 2 });
  fake.plan(puts, { kind: "silence" });
  expect(await store.create("a/b", bytesOf("mine"))).toBe("created");
});

test("tries are bounded", async () => {
  const { fake, store } = await setUp();
  fake.plan(all, { kind: "answer", answer: refusal(503, "SlowDown") }, 1000);
  expect((await errorOf(store.read("a/b"))).facts).toMatchObject({
    operation: "read",
    bucket: FAKE_BUCKET,
    key: "a/b",
    status: 503,
    code: "SlowDown",
  });
  expect(fake.requests.length).toBe(S3_ATTEMPTS_MAX);
});

test("close ends what is under way", async () => {
  const { fake, store } = await setUp();
  fake.plan(all, { kind: "silence" }, 1000);
  const reading = errorOf(store.read("a/b"));
  while (fake.requests.length === 0) await Bun.sleep(1);
  await store.close();
  expect((await reading).code).toBe("storage_failed");
});

test.each([20, -20])("a clock that is %d minutes off is corrected by each of 16 parallel calls", async (minutes) => {
  const { fake, store } = await setUp({ clockAheadMs: minutes * 60_000 });
  const outcomes = await Promise.all(Array.from({ length: 16 }, (_, at) => store.create(`c/${at}`, bytesOf("x"))));
  expect(outcomes).toEqual(Array.from({ length: 16 }, () => "created" as const));
  expect(await keysOf(store, "c/", 5)).toHaveLength(16);
  expect((await store.delete(["c/1", "c/2"])).every(({ deleted }) => deleted)).toBe(true);
  expect(Math.round(((await store.clockSkewMs()) ?? 0) / 60_000)).toBe(minutes);
  expect(fake.count(puts)).toBeLessThanOrEqual(32);
});

test("a clock that cannot be corrected is named", async () => {
  const { fake, store } = await setUp();
  fake.plan(all, { kind: "answer", answer: refusal(403, "RequestTimeTooSkewed") }, 1000);
  for (const call of [
    () => store.create("a/b", bytesOf("x")),
    () => store.read("a/b"),
    () => store.list("a/", { after: null, limit: 1 }),
  ]) {
    expect((await errorOf(call())).message).toContain("clock");
  }
});

// What a person reads.

test.each([
  ["NoSuchBucket", refusal(404, "NoSuchBucket"), "there is no bucket"],
  ["AccessDenied", refusal(403, "AccessDenied"), "s3:PutObject"],
  ["InvalidAccessKeyId", refusal(403, "InvalidAccessKeyId"), "AWS_ACCESS_KEY_ID"],
  ["PermanentRedirect", { ...refusal(301, "PermanentRedirect"), headers: { "x-amz-bucket-region": "eu-west-1" } }, "region=eu-west-1"],
  ["AuthorizationHeaderMalformed", refusal(400, "AuthorizationHeaderMalformed", "wrong", "<Region>eu-west-1</Region>"), "region=eu-west-1"],
  ["NotImplemented", refusal(501, "NotImplemented"), "lacks"],
] as const)("%s: operation, bucket, key and remedy, no secret, and no second try", async (code, answer, remedy) => {
  const { fake, store } = await setUp();
  fake.plan(all, { kind: "answer", answer }, 1000);
  const call = code === "NotImplemented" ? store.create("a/b", bytesOf("x")) : store.read("a/b");
  const error = await errorOf(call);
  expect(error.code).toBe("storage_failed");
  expect(error.facts).toMatchObject({ bucket: FAKE_BUCKET, key: "a/b", code, isRetryable: false });
  for (const word of [FAKE_BUCKET, "a/b", remedy]) expect(error.message).toContain(word);
  expect(JSON.stringify([error.message, error.facts])).not.toContain("pico-test-secret");
  expect(fake.requests.length).toBe(1);
  expect((await errorOf(store.list("a/", { after: null, limit: 1 }))).message).toContain(code === "NotImplemented" ? "lacks" : remedy);
});

test.each([
  ["an answer 507", refusal(507, "XMinioStorageFull")],
  ["a quota", refusal(403, "QuotaExceeded")],
  ["a quota of MinIO", refusal(400, "XMinioAdminBucketQuotaExceeded")],
] as const)("%s is a full store, which is tried again by whoever wants", async (_, answer) => {
  const { fake, store } = await setUp();
  fake.plan(puts, { kind: "answer", answer });
  expect((await errorOf(store.create("a/b", bytesOf("x")))).code).toBe("storage_full");
  expect(fake.count(puts)).toBe(1);
});

test("requests carry no key's secret, and their signature covers the body", async () => {
  const { fake, store } = await setUp({}, { prefix: "p/" });
  await store.create("a/b", bytesOf("x"));
  expect([...fake.objects.keys()]).toEqual(["p/a/b"]);
  expect(JSON.stringify(fake.requests.map(({ headers }) => headers))).not.toContain("pico-test-secret");
});

test("what the store encrypts with is said in each create", async () => {
  const { fake } = await setUp();
  const encryption = { algorithm: "aws:kms", kmsKeyId: "some-key" } as const;
  const place = { bucket: FAKE_BUCKET, prefix: "", region: null, endpoint: fake.endpoint, isPathStyle: null, isExpress: false, encryption };
  const store = await S3ObjectStore.open({ place, clock: systemClock, random: systemRandom, log: silentLog });
  await store.create("a/b", bytesOf("x"));
  await store.close();
  expect(fake.requests[0]?.headers).toMatchObject({
    "x-amz-server-side-encryption": "aws:kms",
    "x-amz-server-side-encryption-aws-kms-key-id": "some-key",
  });
});

// The probe (FAULTS S2).

test("a probe leaves nothing behind", async () => {
  const { fake, store } = await setUp();
  await probeObjectStore(store, "cluster", systemRandom);
  expect(fake.objects.size).toBe(0);
});

test.each([
  ["ignores conditions", { ignoresConditions: true }],
  ["has no conditions", { hasNoConditions: true }],
] as const)("a store that %s is refused by the name of the feature, and nothing stays there", async (_, habits) => {
  const { fake, store } = await setUp(habits);
  const error = await errorOf(probeObjectStore(store, "cluster", systemRandom));
  expect(error.code).toBe("settings");
  expect(error.message).toContain("If-None-Match");
  expect(fake.objects.size).toBe(0);
});

test("a store that says yes to the create of a taken key is refused, though it keeps what was there", async () => {
  const { fake, store } = await setUp();
  fake.plan(puts, { kind: "change", change: (answer) => answer });
  fake.plan(puts, { kind: "change", change: () => ({ status: 200, headers: { etag: '"x"' } }) });
  expect((await errorOf(probeObjectStore(store, "cluster", systemRandom))).code).toBe("settings");
  expect(fake.count(puts)).toBe(2);
});

test("a probe of a store that keeps no marks passes", async () => {
  const { fake, store } = await setUp({ dropsMetadata: true });
  await probeObjectStore(store, "cluster", systemRandom);
  expect(fake.objects.size).toBe(0);
});

test("a probe removes what earlier ones left, once it is old, and nothing else", async () => {
  const { fake, store } = await setUp();
  fake.plan(({ method }) => method === "DELETE", { kind: "answer", answer: refusal(403, "AccessDenied") }, 2);
  await probeObjectStore(store, "cluster", systemRandom);
  await probeObjectStore(store, "cluster", systemRandom);
  expect(fake.objects.size).toBe(2);
  const [old, young] = [...fake.objects];
  if (old === undefined || young === undefined) throw new Error("two probes left one key each");
  fake.objects.set(old[0], { ...old[1], modifiedMs: old[1].modifiedMs - 2 * 3600_000 });
  const foreign = `cluster/probe/${"0".repeat(32)}`;
  fake.objects.set(foreign, { ...old[1], modifiedMs: 0 });
  fake.objects.set("cluster/probe/other", { ...old[1], modifiedMs: 0 });
  await probeObjectStore(store, "cluster", systemRandom);
  expect([...fake.objects.keys()].sort()).toEqual([young[0], foreign, "cluster/probe/other"].sort());
});
