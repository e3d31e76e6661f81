/** Buckets: whether they are reached with these credentials, keep what a WAL needs, and agree about the time. */
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { silentLogger } from "../lib/log.ts";
import { systemRandom } from "../lib/random.ts";
import { probeObjectStore } from "../storage/object-store-probe.ts";
import type { S3ObjectStore } from "../storage/s3-object-store.ts";
import { openS3ObjectStore } from "../storage/s3-opener.ts";
import { type S3Place, sameS3Place } from "../storage/s3-place.ts";
import { warningOf, warningsOf } from "./bucket-admission.ts";
import type { Finding } from "./doctor.ts";
import type { Settings } from "./settings.ts";

/** Stores refuse requests whose time is a quarter of an hour off; until then all is well. */
const SKEW_MS_REFUSED = 15 * 60_000;
const SKEW_MS_WELL = 60_000;

export async function* examineBuckets({ storage, wal, clusterId }: Settings, clock: Clock): AsyncGenerator<Finding, void, undefined> {
  const objects = storage.kind === "s3" ? storage.place : null;
  if (objects !== null) yield* examineBucket("objects bucket", objects, clusterId, clock);
  const isOther = wal.kind === "s3" && (objects === null || !sameS3Place(objects, wal.place));
  if (isOther) yield* examineBucket("WAL bucket", wal.place, clusterId, clock);
}

async function* examineBucket(what: string, place: S3Place, clusterId: string, clock: Clock): AsyncGenerator<Finding, void, undefined> {
  let store: S3ObjectStore | null = null;
  try {
    store = await openS3ObjectStore({ place, clock, random: systemRandom, log: silentLogger });
    const skewMs = await store.clockSkewMs();
    if (skewMs !== null) yield describeSkew(`${what} clock`, skewMs);
    const undeleted = warningOf(await probeObjectStore(store, clusterId, systemRandom));
    yield { level: "ok", what, detail: `${store.description} is reached, and creates a key once` };
    if (undeleted !== null) yield { level: "warn", what, detail: undeleted };
    for (const warning of warningsOf(await store.bucketFacts(`${clusterId}/`))) yield { level: "warn", what, detail: warning };
  } catch (error) {
    yield { level: "fail", what, detail: messageOf(error) };
  } finally {
    await store?.close();
  }
}

function describeSkew(what: string, skewMs: number): Finding {
  // The store tells whole seconds.
  const seconds = Math.round(Math.abs(skewMs) / 1000);
  if (seconds * 1000 <= SKEW_MS_WELL) return { level: "ok", what, detail: `the store's clock and this machine's are ${seconds} s apart` };
  const detail = `the clock of this machine is ${seconds} s ${skewMs > 0 ? "behind" : "ahead of"} the store's`;
  const remedy = "set the clock, and keep it set (NTP)";
  return seconds * 1000 < SKEW_MS_REFUSED
    ? { level: "warn", what, detail: `${detail}; ${remedy}` }
    : { level: "fail", what, detail: `${detail}, and requests are refused from 900 s on; ${remedy}` };
}
