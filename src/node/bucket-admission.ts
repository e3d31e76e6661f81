/**
 * Whether a node may rely on a bucket, found out before anything is written there: a probe of what the WAL and the
 * uploads need, and a warning for settings of the bucket that will cost or lose something.
 *
 * A store that cannot be reached is waited for: it may be starting beside the node. What waiting does not mend (no such
 * bucket, no right, no credentials, a missing feature) ends the start.
 */
import { backOffMs } from "../lib/back-off.ts";
import { type Clock, sleep } from "../lib/clock.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { START_RETRY_MS_MAX, START_RETRY_MS_MIN } from "../lib/limits.ts";
import type { Logger } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import { probeObjectStore, type UndeletedProbe } from "../storage/object-store-probe.ts";
import type { BucketFacts } from "../storage/s3-bucket-facts.ts";
import type { S3ObjectStore } from "../storage/s3-object-store.ts";

export interface Admission {
  readonly store: S3ObjectStore;
  readonly clusterId: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Ends the waiting. */
  readonly stopping: AbortSignal;
}

/** Throws `settings` for a missing feature, `storage_failed` for what waiting does not mend, `unavailable` at a stop. */
export async function admitBucket({ store, clusterId, clock, random, log, stopping }: Admission): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      const warning = warningOf(await probeObjectStore(store, clusterId, random));
      if (warning !== null) log.warn(warning, { bucket: store.description });
      break;
    } catch (error) {
      if (!mayPass(error)) throw error;
      if (attempt === 1) log.warn("the bucket cannot be used yet and is tried again", { bucket: store.description, error });
      await sleep(clock, backOffMs(random, attempt, START_RETRY_MS_MIN, START_RETRY_MS_MAX), stopping);
      if (stopping.aborted) throw new PicoError("unavailable", "the node is stopping", { retryAfterSeconds: 1 });
    }
  }
  const facts = await store.bucketFacts(`${clusterId}/`);
  for (const why of facts.untold) log.debug("the bucket does not tell all of its settings", { bucket: store.description, why });
  for (const warning of warningsOf(facts)) log.warn(warning, { bucket: store.description });
}

/** What an operator should know of objects that the store did not let the probe delete; null where there are none. */
export function warningOf(undeleted: readonly UndeletedProbe[]): string | null {
  const [first] = undeleted;
  if (first === undefined) return null;
  const more = undeleted.length > 1 ? `, and ${undeleted.length - 1} more` : "";
  return `the bucket did not delete what was written to try it out: ${first.key} (${first.reason})${more}; what the node deletes may stay and be paid for, check the right to delete objects`;
}

/** What an operator should know of a bucket's settings. */
export function warningsOf({ isVersioned, removesOldVersions, expiring, archiving }: BucketFacts): string[] {
  const warnings: string[] = [];
  if (isVersioned === true) {
    const stays = removesOldVersions ? "for as long as its rule keeps them" : "for ever, since no rule removes them";
    warnings.push(
      `the bucket is versioned: what the node deletes stays as an old version and is paid for, ${stays}; suspend its versioning, or add a rule that expires noncurrent versions`,
    );
  }
  for (const rule of expiring ?? []) {
    warnings.push(
      `a lifecycle rule of the bucket deletes objects of this cluster: acknowledged records will be lost (${rule}); leave the cluster's prefix out of it`,
    );
  }
  for (const rule of archiving) {
    warnings.push(
      `a lifecycle rule of the bucket archives objects of this cluster, and reads of them will fail (${rule}); leave the cluster's prefix out of it`,
    );
  }
  return warnings;
}

function mayPass(error: unknown): boolean {
  if (isPicoError(error, "unknown_outcome") || isPicoError(error, "storage_full")) return true;
  return isPicoError(error, "storage_failed") && error.facts.isRetryable === true;
}
