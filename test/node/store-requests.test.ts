/** What a node asks of a bucket: one create for a lone append, and nothing at rest. Time is simulated, the store's answers are real. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { ObjectWal } from "../../src/engine/wal-store-object.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { UPLOAD_INTERVAL_MS_DEFAULT } from "../../src/lib/limits.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { EXCLUSIVE_LIFE } from "../../src/node/life-lock.ts";
import { NodeCore } from "../../src/node/node-core.ts";
import { S3ObjectStore } from "../../src/storage/s3-object-store.ts";
import { MemoryDatabase, MemorySqlStore } from "../metadata/memory-sql-store.ts";
import { coreSettings, NO_ADDRESSES } from "../support/core-settings.ts";
import { FAKE_BUCKET, FakeS3 } from "../support/fake-s3.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { useTestCredentials } from "../support/minio.ts";
import { silentLog } from "../support/silent-log.ts";
import { record } from "../support/test-node.ts";

const HOUR_MS = 3_600_000;
/** Turns of the event loop in which the store's answers arrive. */
const ANSWER_MS = 20;
/** Seconds in a row without a request. */
const QUIET_TURNS = 5;

let restore = () => {};
beforeAll(() => {
  restore = useTestCredentials();
});
afterAll(() => restore());

/** As a node on a bucket has them; the daily look at the whole store is meant to ask it, and left out. */
const settings = coreSettings({ uploadSegments: 1000, uploadIntervalMs: UPLOAD_INTERVAL_MS_DEFAULT, isMirrored: true });

async function startNode(lingerMs = 0) {
  const fake = await FakeS3.start();
  const place = {
    bucket: FAKE_BUCKET,
    prefix: "",
    region: null,
    endpoint: fake.endpoint,
    isPathStyle: null,
    isExpress: false,
    encryption: null,
  };
  const store = await S3ObjectStore.open({ place, clock: systemClock, random: systemRandom, log: silentLog });
  const clock = new ManualClock(systemClock.nowMs());
  const core = await NodeCore.open({
    clock,
    random: systemRandom,
    log: silentLog,
    sql: new MemorySqlStore(new MemoryDatabase(clock)),
    store,
    wal: new ObjectWal(store, "c"),
    settings: { ...settings, lingerMs },
    lifeLock: EXCLUSIVE_LIFE,
  });
  await passing(clock, core.start(NO_ADDRESSES));
  const append = (body: string) =>
    passing(
      clock,
      core.streams.append({
        name: "/a",
        records: [record(body)],
        close: false,
        producer: null,
        matchTail: null,
        streamSeq: null,
        mimeType: null,
      }),
    );
  const create = { name: "/a", contentType: "text/plain", ttlSeconds: null, expiresAtMs: null, isClosed: false, records: [], fork: null };
  await passing(clock, core.streams.create(create));
  // What the start and the create set off, the copy of the command log among it, is over.
  for (let quiet = 0, requests = -1; quiet < QUIET_TURNS; quiet = requests === fake.requests.length ? quiet + 1 : 0) {
    requests = fake.requests.length;
    await clock.advance(1000);
    await Bun.sleep(ANSWER_MS);
  }
  return {
    fake,
    clock,
    append,
    async stop() {
      core.abandon();
      await store.close();
      await fake.stop();
    },
  };
}

/** Lets simulated time pass until the promise settles. */
async function passing<T>(clock: ManualClock, promise: Promise<T>): Promise<T> {
  let isOver = false;
  const over = promise.finally(() => {
    isOver = true;
  });
  over.catch(() => {});
  for (let turns = 0; turns < 5000 && !isOver; turns++) {
    await clock.advance(5);
    await Bun.sleep(1);
  }
  if (!isOver) throw new Error("the promise does not settle");
  return over;
}

const describeRequests = (fake: FakeS3, from: number) => fake.requests.slice(from).map(({ method, key }) => `${method} ${key}`);

test("a lone append of an idle node is one create", async () => {
  const node = await startNode();
  for (let round = 1; round <= 3; round++) {
    const before = node.fake.requests.length;
    await node.append(`record ${round}`);
    await Bun.sleep(ANSWER_MS);
    expect(describeRequests(node.fake, before)).toEqual([expect.stringMatching(/^PUT c\/wal\/1\/\d+\/\d{16}$/)]);
    await node.clock.advance(1000);
  }
  await node.stop();
});

test("appends that come within the linger share a create", async () => {
  const node = await startNode(200);
  const before = node.fake.requests.length;
  await Promise.all(["a", "b", "c"].map(node.append));
  expect(node.fake.requests.length - before).toBe(1);
  await node.stop();
});

test("a node at rest asks the store nothing, for an hour after its last upload", async () => {
  const node = await startNode();
  await node.append("the last one");
  const isUploaded = () => [...node.fake.objects.keys()].some((key) => key.startsWith("c/data/"));
  for (let minutes = 0; minutes < 5 || !isUploaded(); minutes++) {
    if (minutes > 60) throw new Error("nothing was uploaded");
    for (let second = 0; second < 60; second++) await node.clock.advance(1000);
    await Bun.sleep(ANSWER_MS);
  }
  const before = node.fake.requests.length;
  for (let passedMs = 0; passedMs < HOUR_MS; passedMs += 1000) {
    await node.clock.advance(1000);
    if (passedMs % 60_000 === 0) await Bun.sleep(ANSWER_MS);
  }
  await Bun.sleep(ANSWER_MS);
  expect(describeRequests(node.fake, before)).toEqual([]);
  await node.stop();
}, 60_000);
