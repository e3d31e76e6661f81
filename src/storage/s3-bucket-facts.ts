/**
 * What a bucket is set up to do with our objects: keep every deleted one as an old version, or delete or move them
 * behind our back.
 */
import { GetBucketLifecycleConfigurationCommand, GetBucketVersioningCommand, type LifecycleRule } from "@aws-sdk/client-s3";
import { isPicoError, messageOf } from "../lib/errors.ts";
import type { S3Calls } from "./s3-calls.ts";
import type { S3Connection } from "./s3-connection.ts";
import { isRefusedAs } from "./s3-failure.ts";

export interface BucketFacts {
  /** Deletes leave the object behind as an old version. Null: the store does not tell. */
  readonly isVersioned: boolean | null;
  /** Whether old versions are removed some day by a rule. */
  readonly removesOldVersions: boolean;
  /** Rules that delete objects of ours, in words: `rule "clean" after 30 days`. Null: the store does not tell. */
  readonly expiring: readonly string[] | null;
  /** Rules that move them where they cannot be read at once. */
  readonly archiving: readonly string[];
  /** Why something is not told. */
  readonly untold: readonly string[];
}

/** Storage classes that need hours before a read. */
const ARCHIVES: ReadonlySet<string> = new Set(["GLACIER", "DEEP_ARCHIVE"]);

/** `storePrefix`: of our keys, as the store sees them. */
export async function readBucketFacts(
  { calls, connection }: { readonly calls: S3Calls; readonly connection: S3Connection },
  storePrefix: string,
): Promise<BucketFacts> {
  const Bucket = connection.place.bucket;
  const untold: string[] = [];
  const ask = async <T>(operation: string, work: (signal: AbortSignal) => Promise<T>): Promise<T | null> => {
    try {
      return await calls.run({ operation, key: null, isWrite: false, bytes: 0 }, work);
    } catch (error) {
      // No right to ask, or nobody to answer, says nothing against the bucket.
      if (!isPicoError(error)) throw error;
      untold.push(messageOf(error));
      return null;
    }
  };
  const versioning = await ask("read the versioning", (abortSignal) =>
    connection.control((client) => client.send(new GetBucketVersioningCommand({ Bucket }), { abortSignal })),
  );
  const rules = await ask("read the lifecycle rules", async (abortSignal) => {
    try {
      const command = new GetBucketLifecycleConfigurationCommand({ Bucket });
      return (await connection.control((client) => client.send(command, { abortSignal }))).Rules ?? [];
    } catch (error) {
      if (isRefusedAs(error, "NoSuchLifecycleConfiguration")) return [];
      throw error;
    }
  });
  return {
    isVersioned: versioning === null ? null : versioning.Status === "Enabled",
    ...judgeRules(rules, storePrefix),
    untold,
  };
}

/** The rules that concern keys which begin with `storePrefix`. Rules for tagged objects do not: ours have no tags. */
export function judgeRules(
  rules: readonly LifecycleRule[] | null,
  storePrefix: string,
): Pick<BucketFacts, "expiring" | "archiving" | "removesOldVersions"> {
  if (rules === null) return { expiring: null, archiving: [], removesOldVersions: false };
  const ours = rules.filter((rule) => rule.Status === "Enabled" && concerns(rule, storePrefix));
  return {
    expiring: ours
      .filter(({ Expiration }) => Expiration?.Days !== undefined || Expiration?.Date !== undefined)
      .map(
        ({ ID, Expiration }) =>
          `${nameOf(ID)} ${Expiration?.Days === undefined ? `at ${Expiration?.Date?.toISOString()}` : `after ${Expiration.Days} days`}`,
      ),
    archiving: ours
      .filter(({ Transitions = [] }) => Transitions.some(({ StorageClass = "" }) => ARCHIVES.has(StorageClass)))
      .map(({ ID }) => nameOf(ID)),
    removesOldVersions: ours.some(({ NoncurrentVersionExpiration }) => NoncurrentVersionExpiration?.NoncurrentDays !== undefined),
  };
}

function concerns({ Filter, Prefix }: LifecycleRule, storePrefix: string): boolean {
  const { And, Tag } = Filter ?? {};
  if (Tag !== undefined || (And?.Tags?.length ?? 0) > 0) return false;
  const prefix = Filter?.Prefix ?? And?.Prefix ?? Prefix ?? "";
  return storePrefix.startsWith(prefix) || prefix.startsWith(storePrefix);
}

function nameOf(id: string | undefined): string {
  return id === undefined || id === "" ? "a rule without a name" : `rule ${JSON.stringify(id)}`;
}
