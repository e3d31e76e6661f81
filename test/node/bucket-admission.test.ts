import { expect, test } from "bun:test";
import { PutBucketLifecycleConfigurationCommand, PutBucketVersioningCommand } from "@aws-sdk/client-s3";
import type { MinioServer } from "../../scripts/minio.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import type { Logger } from "../../src/lib/log.ts";
import { systemRandom } from "../../src/lib/random.ts";
import { admitBucket } from "../../src/node/bucket-admission.ts";
import { examineBuckets } from "../../src/node/doctor-buckets.ts";
import { openStoresAlone } from "../../src/node/node-parts.ts";
import type { Settings } from "../../src/node/settings.ts";
import { judgeRules } from "../../src/storage/s3-bucket-facts.ts";
import { S3ObjectStore } from "../../src/storage/s3-object-store.ts";
import type { S3Place } from "../../src/storage/s3-place.ts";
import { FAKE_BUCKET, FakeS3, refusal } from "../support/fake-s3.ts";
import { HastyClock } from "../support/hasty-clock.ts";
import { describeOnMinio, useTestCredentials } from "../support/minio.ts";
import { silentLog } from "../support/silent-log.ts";

const ENABLED = { Status: "Enabled" } as const;

test("rules are judged by whether they concern the cluster's keys", () => {
  const judge = (...rules: Parameters<typeof judgeRules>[0] & object) => judgeRules(rules, "prefix/cluster/");
  const none = { expiring: [], archiving: [], removesOldVersions: false };
  expect(judge({ ...ENABLED, ID: "all", Filter: {}, Expiration: { Days: 3 } }).expiring).toEqual(['rule "all" after 3 days']);
  for (const prefix of ["", "pre", "prefix/cluster/", "prefix/cluster/data/"]) {
    expect(judge({ ...ENABLED, Filter: { Prefix: prefix }, Expiration: { Days: 3 } }).expiring).toHaveLength(1);
    expect(judge({ ...ENABLED, Filter: { And: { Prefix: prefix } }, Expiration: { Days: 3 } }).expiring).toHaveLength(1);
  }
  for (const filter of [{ Prefix: "logs/" }, { Tag: { Key: "a", Value: "b" } }, { And: { Tags: [{ Key: "a", Value: "b" }] } }]) {
    expect(judge({ ...ENABLED, Filter: filter, Expiration: { Days: 3 } })).toEqual(none);
  }
  expect(judge({ Status: "Disabled", Filter: {}, Expiration: { Days: 3 } })).toEqual(none);
  expect(judge({ ...ENABLED, Filter: {}, Expiration: { ExpiredObjectDeleteMarker: true } })).toEqual(none);
  expect(judge({ ...ENABLED, Filter: {}, NoncurrentVersionExpiration: { NoncurrentDays: 1 } }).removesOldVersions).toBe(true);
  expect(judge({ ...ENABLED, Filter: {}, Transitions: [{ Days: 1, StorageClass: "GLACIER" }] }).archiving).toHaveLength(1);
  expect(judge({ ...ENABLED, Filter: {}, Transitions: [{ Days: 1, StorageClass: "STANDARD_IA" }] })).toEqual(none);
  expect(judgeRules(null, "a/").expiring).toBeNull();
});

function placeAt(endpoint: string, bucket: string): S3Place {
  return { bucket, prefix: "", region: null, endpoint, isPathStyle: null, isExpress: false, encryption: null };
}

/** Admits the bucket; resolves with the warnings. */
async function admit(place: S3Place, stopping = new AbortController().signal): Promise<string[]> {
  const warnings: string[] = [];
  const log: Logger = { ...silentLog, warn: (message) => warnings.push(message) };
  const clock = new HastyClock();
  const store = await S3ObjectStore.open({ place, clock, random: systemRandom, log });
  try {
    await admitBucket({ store, clusterId: "cluster", clock, random: systemRandom, log, stopping });
  } finally {
    await store.close();
  }
  return warnings;
}

/** The double does not model settings of buckets. */
function asksSettings({ query }: { readonly query: URLSearchParams }): boolean {
  return query.has("versioning") || query.has("lifecycle");
}

async function codeOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => "resolved",
    (thrown: unknown) => thrown,
  );
  return isPicoError(error) ? error.code : String(error);
}

test("a bucket that cannot be used is refused at once where waiting does not help, and waited for otherwise", async () => {
  const restore = useTestCredentials();
  const fake = await FakeS3.start();
  const place = placeAt(fake.endpoint, FAKE_BUCKET);
  fake.plan(asksSettings, { kind: "answer", answer: refusal(403, "AccessDenied") }, 1000);
  expect(await admit(place)).toEqual([]);
  const untilProbe = ({ method }: { method: string }) => method === "PUT";
  fake.plan(untilProbe, { kind: "answer", answer: refusal(403, "AccessDenied") });
  expect(await codeOf(admit(place))).toBe("storage_failed");
  for (const answer of [refusal(503, "ServiceUnavailable"), refusal(507, "InsufficientStorage")]) {
    fake.plan(untilProbe, { kind: "answer", answer }, 12);
    expect(await admit(place)).toEqual(["the bucket cannot be used yet and is tried again"]);
  }
  fake.plan(untilProbe, { kind: "answer", answer: refusal(503, "ServiceUnavailable") }, 100_000);
  const stopping = new AbortController();
  const waiting = codeOf(admit(place, stopping.signal));
  stopping.abort();
  expect(await waiting).toBe("unavailable");
  await fake.stop();
  restore();
});

test.each(["storage", "wal"] as const)(
  "a node refuses a bucket that ignores conditions, also where it is the one of its %s alone",
  async (role) => {
    const restore = useTestCredentials();
    const good = await FakeS3.start();
    const bad = await FakeS3.start({ ignoresConditions: true });
    for (const fake of [good, bad]) fake.plan(asksSettings, { kind: "answer", answer: refusal(403, "AccessDenied") }, 1000);
    const placeOf = (part: typeof role) => placeAt((part === role ? bad : good).endpoint, FAKE_BUCKET);
    const parameters = { lingerMs: 0, batchBytesMax: 1, inFlightMax: 1, backlogBytesMax: 1 };
    const settings = {
      clusterId: "cluster",
      storage: { kind: "s3", id: -2, place: placeOf("storage") },
      wal: { kind: "s3", id: -3, place: placeOf("wal"), parameters },
    } as unknown as Settings;
    expect(await codeOf(openStoresAlone(settings, silentLog, new AbortController().signal))).toBe("settings");
    for (const fake of [good, bad]) await fake.stop();
    restore();
  },
);

test("a bucket that deletes nothing is used all the same, with one warning", async () => {
  const restore = useTestCredentials();
  const fake = await FakeS3.start();
  fake.plan(asksSettings, { kind: "answer", answer: refusal(403, "AccessDenied") }, 1000);
  fake.plan(({ method }) => method === "DELETE", { kind: "answer", answer: refusal(403, "AccessDenied") }, 1000);
  const place = placeAt(fake.endpoint, FAKE_BUCKET);
  const warnings = await admit(place);
  expect(warnings).toEqual([expect.stringContaining("did not delete what was written to try it out: cluster/probe/")]);
  expect(warnings[0]).toContain("AccessDenied");
  expect(fake.objects.size).toBe(1);
  const parameters = { lingerMs: 0, batchBytesMax: 1, inFlightMax: 1, backlogBytesMax: 1 };
  const settings = { storage: { kind: "s3", id: -2, place }, wal: { kind: "s3", id: -2, place, parameters }, clusterId: "cluster" };
  const levels: string[] = [];
  for await (const { level, what } of examineBuckets(settings as unknown as Settings, systemClock)) levels.push(`${level} ${what}`);
  expect(levels).toEqual(["ok objects bucket clock", "ok objects bucket", "warn objects bucket"]);
  await fake.stop();
  restore();
});

describeOnMinio("buckets with settings of their own", (server) => {
  async function newBucket(server: MinioServer, name: string): Promise<S3Place> {
    await server.makeBucket(name);
    return placeAt(server.endpoint, name);
  }

  test("a plain bucket gets no warning, and a missing one is refused", async () => {
    expect(await admit(await newBucket(server(), "plain"))).toEqual([]);
    expect(await codeOf(admit(placeAt(server().endpoint, "missing")))).toBe("storage_failed");
  });

  test("a versioned bucket gets one", async () => {
    const place = await newBucket(server(), "versioned");
    const client = server().client();
    await client.send(new PutBucketVersioningCommand({ Bucket: place.bucket, VersioningConfiguration: { Status: "Enabled" } }));
    client.destroy();
    expect(await admit(place)).toEqual([expect.stringContaining("versioned")]);
  });

  test("a rule that deletes objects of the cluster gets one, a rule for others does not", async () => {
    const place = await newBucket(server(), "expiring");
    const client = server().client();
    const rule = (id: string, prefix: string) => ({ ...ENABLED, ID: id, Filter: { Prefix: prefix }, Expiration: { Days: 30 } });
    await client.send(
      new PutBucketLifecycleConfigurationCommand({
        Bucket: place.bucket,
        LifecycleConfiguration: { Rules: [rule("ours", "cluster/"), rule("theirs", "logs/")] },
      }),
    );
    client.destroy();
    const warnings = await admit(place);
    expect(warnings).toHaveLength(1);
    expect(warnings[0]).toContain('rule "ours" after 30 days');
  });

  test("doctor names what is well and what is not", async () => {
    const storage = { kind: "s3", id: -2, place: await newBucket(server(), "doctor") } as const;
    const parameters = { lingerMs: 0, batchBytesMax: 1, inFlightMax: 1, backlogBytesMax: 1 };
    const wal = { kind: "s3", id: -3, place: placeAt(server().endpoint, "missing"), parameters } as const;
    const levels: string[] = [];
    const settings = { storage, wal, clusterId: "cluster" } as unknown as Settings;
    for await (const { level, what } of examineBuckets(settings, systemClock)) levels.push(`${level} ${what}`);
    expect(levels).toEqual(["ok objects bucket clock", "ok objects bucket", "ok WAL bucket clock", "fail WAL bucket"]);
    const ahead: string[] = [];
    for await (const { level, what } of examineBuckets(
      { ...settings, wal: { ...wal, place: storage.place } },
      new HastyClock({ aheadMs: 20 * 60_000 }),
    )) {
      ahead.push(`${level} ${what}`);
    }
    expect(ahead).toEqual(["fail objects bucket clock", "ok objects bucket"]);
  });
});
