/**
 * Restore: makes a database from the bucket alone, where the one of the node is lost.
 *
 * 1. The newest complete snapshot of the mirror and the log behind it go into an empty database, and the real
 *    metadata log loads and applies them. A damaged snapshot gives way to the one before.
 * 2. Registrations whose WAL is in the store and which the log does not know are registered again, so that the next
 *    start replays their WAL as it does any other.
 * 3. The restore registers itself, above every epoch that was ever seen, fences whoever still counts as alive, and
 *    raises the ids: none that was handed out since the last mirrored command is handed out again.
 * 4. The state is held against the store: marker, data objects, WAL.
 * 5. The new rows go into the mirror. From there on a process that goes on with the lost database meets them and
 *    stops.
 * 6. Where a life wrote to a bucket of another name, and nothing of it is here, its WAL is closed here.
 *
 * Invariants:
 * - Nothing is written to the bucket before everything was checked, and nothing of it is deleted.
 * - Every step can be repeated: a restore that was cut short leaves a longer log for the next, no more.
 */
import { isPicoError, messageOf, PicoError } from "../lib/errors.ts";
import { RESTORE_ITEMS_MAX, RESTORE_TRIES_MAX } from "../lib/limits.ts";
import { formatRegistration } from "../lib/registration.ts";
import { Mirror } from "../mirror/mirror.ts";
import { assertMarkerReached, compareObjects } from "./restore-objects.ts";
import type { RestoreOptions } from "./restore-options.ts";
import { registerRestore, takeBack } from "./restore-registrations.ts";
import { closeMoved, type LostStream, surveyWals } from "./restore-wal.ts";
import { RestoredLog } from "./restored-log.ts";

export interface RestoreReport {
  readonly clusterIdentity: string;
  /** Of the snapshot that the log was put behind; 0: there was none, and all of the log. */
  readonly snapshotIndex: number;
  /** Last command that the mirror had, its time, and the hash of the state there, 16 hex digits. */
  readonly mirroredIndex: number;
  readonly mirroredAtMs: number;
  readonly stateHash: string;
  readonly streams: number;
  /** Registrations whose register command was lost, and whose WAL is there. */
  readonly takenBack: readonly string[];
  /** What the next start replays. */
  readonly walSegments: number;
  readonly walBytes: number;
  /** Some of the streams that were created after the last mirrored command; `lostStreamCount` of all. */
  readonly lostStreams: readonly LostStream[];
  readonly lostStreamCount: number;
  readonly objects: number;
  /** Objects in the store that the state does not know; `pico admin scrub` tells more. */
  readonly orphanCount: number;
  readonly orphanBytes: number;
  /** What is wrong, and was passed over. */
  readonly problems: readonly string[];
}

/**
 * Throws `settings` (fact `isStartup`) where the store has no mirror, `corrupt` where something is missing or damaged
 * (what `isForced` passes over says so), `unavailable` where another process goes on writing to the mirror, and what
 * store and database throw. The database is whole when this resolves, and not to be used otherwise.
 */
export async function restoreDatabase(options: RestoreOptions): Promise<RestoreReport> {
  for (let tries = 1; ; tries++) {
    try {
      return await restoreOnce(options);
    } catch (error) {
      if (!(error instanceof OvertakenError)) throw error;
      if (tries < RESTORE_TRIES_MAX) continue;
      throw new PicoError(
        "unavailable",
        `another process writes to the mirror in ${options.store.description} while it is restored; stop the node that does, and restore again`,
        { retryAfterSeconds: 60 },
        error.cause,
      );
    }
  }
}

/** The mirror went on behind what was restored. */
class OvertakenError extends Error {}

async function restoreOnce(options: RestoreOptions): Promise<RestoreReport> {
  const problems: string[] = [];
  const log = await RestoredLog.load(options, problems);
  try {
    return await completeRestore(options, log, problems);
  } catch (error) {
    // A node that goes on moves the marker and removes objects, on the word of commands that came since.
    if (isPicoError(error, "corrupt") && (await log.isOvertaken())) throw new OvertakenError(messageOf(error), { cause: error });
    throw error;
  } finally {
    await log.close();
  }
}

async function completeRestore(options: RestoreOptions, log: RestoredLog, problems: readonly string[]): Promise<RestoreReport> {
  const { metadata, snapshotIndex } = log;
  const { index: mirroredIndex, rowSum } = metadata.stateHash();
  const mirroredAtMs = metadata.view.appliedAtMs;
  const streams = metadata.view.streamCount;
  await assertMarkerReached(options, log);
  const takenBack = await takeBack(options, log);
  const wal = await surveyWals(options, log);
  const objects = await compareObjects(options, log);
  const losses = [...log.losses, ...wal.losses, ...objects.losses];
  if (losses.length > 0 && !options.isForced) {
    throw new PicoError(
      "corrupt",
      `not restored: ${losses.join("; ")}. If it can be brought back, do that and restore again; --force restores what there is without it`,
      {
        where: options.store.description,
      },
    );
  }
  const self = await registerRestore(options, log, { lost: wal.lost, streamIdMax: wal.streamIdMax, objectIdMax: objects.objectIdMax });
  await mirrorRestored(options, log);
  await closeMoved(options, log, wal.moved, self);
  return {
    clusterIdentity: metadata.clusterIdentity,
    snapshotIndex,
    mirroredIndex,
    mirroredAtMs,
    stateHash: rowSum.toString(16).padStart(16, "0"),
    streams,
    takenBack: takenBack.map(formatRegistration),
    walSegments: wal.segments,
    walBytes: wal.bytes,
    lostStreams: wal.lostStreams.slice(0, RESTORE_ITEMS_MAX),
    lostStreamCount: wal.lostStreams.length,
    objects: objects.found,
    orphanCount: objects.orphanCount,
    orphanBytes: objects.orphanBytes,
    problems: [...problems, ...losses],
  };
}

/** The first to write behind the mirrored log is the one who goes on with it. */
async function mirrorRestored({ store, clusterId, clock, log, onProgress }: RestoreOptions, { sql, metadata }: RestoredLog): Promise<void> {
  onProgress({ step: "mirror", done: 0 });
  const mirror = new Mirror({ store, sql, metadata, clusterId, clock, log, onFatal: () => undefined });
  try {
    if (await mirror.cover(metadata.view.appliedIndex)) return;
  } catch (error) {
    if (isPicoError(error, "corrupt")) throw new OvertakenError(messageOf(error), { cause: error });
    throw error;
  }
  throw new PicoError("storage_failed", `the restored log could not be mirrored to ${store.description}; try again`, {});
}
