/** Whether the stores hold what a database that is missing, or empty, would not know: then no node starts. */
import { parseWalFileName } from "../engine/wal-file.ts";
import { ObjectWal } from "../engine/wal-store-object.ts";
import type { Clock } from "../lib/clock.ts";
import { messageOf } from "../lib/errors.ts";
import { silentLogger } from "../lib/log.ts";
import { systemRandom } from "../lib/random.ts";
import { listFiles } from "../storage/file-object-list.ts";
import { namesInFolder } from "../storage/path-facts.ts";
import type { S3ObjectStore } from "../storage/s3-object-store.ts";
import { openS3ObjectStore } from "../storage/s3-opener.ts";
import type { S3Place } from "../storage/s3-place.ts";
import type { Finding } from "./doctor.ts";
import type { DatabaseExamination } from "./doctor-database.ts";
import { describeMissing, findTrace, type StoresBeside } from "./missing-database.ts";
import { lookAtPostgresWal } from "./postgres-wal.ts";
import type { Settings } from "./settings.ts";

type Opener = (place: S3Place) => Promise<S3ObjectStore>;

/** Null where a new database may begin. */
export async function examineMissing(
  { what: lack, isFileThere }: NonNullable<DatabaseExamination["lack"]>,
  settings: Settings,
  clock: Clock,
): Promise<Finding | null> {
  const opened: S3ObjectStore[] = [];
  const openBucket = async (place: S3Place) => {
    const bucket = await openS3ObjectStore({ place, clock, random: systemRandom, log: silentLogger });
    opened.push(bucket);
    return bucket;
  };
  try {
    const { clusterId, isMirrored } = settings;
    const store = await lookAtObjects(settings, openBucket);
    const trace = await findTrace({ store, wal: await lookAtWal(settings, openBucket, clock), clusterId, isMirrored });
    if (trace === null) return null;
    const refused = `pico serve would be refused: ${describeMissing(lack, trace)}`;
    return { level: "fail", what: "database", detail: isFileThere ? `${refused}. Move the empty one away before` : refused };
  } catch (error) {
    return { level: "warn", what: "database", detail: `${lack}, and whether the stores are empty too is not known: ${messageOf(error)}` };
  } finally {
    for (const bucket of opened) await bucket.close();
  }
}

async function lookAtObjects({ storage }: Settings, openBucket: Opener): Promise<StoresBeside["store"]> {
  if (storage.kind === "s3") return openBucket(storage.place);
  if (storage.kind === "memory") return { description: "memory:", list: async () => ({ objects: [], next: null }) };
  const { directory } = storage;
  return { description: `file://${directory}`, list: (prefix, { after, limit }) => listFiles(directory, prefix, after, limit) };
}

/** One on local disk is read without its lock: names tell whose it is. */
async function lookAtWal({ wal, clusterId }: Settings, openBucket: Opener, clock: Clock): Promise<StoresBeside["wal"]> {
  if (wal.kind === "s3") return new ObjectWal(await openBucket(wal.place), clusterId);
  if (wal.kind === "postgres") return lookAtPostgresWal(wal, clusterId, clock);
  if (wal.kind === "memory") return { description: "memory:", registrations: async () => [] };
  const { directory } = wal;
  const found = (await namesInFolder(directory)).flatMap((name) => parseWalFileName(name)?.registration ?? []);
  return { description: `local disk at ${directory}`, registrations: async () => found };
}
