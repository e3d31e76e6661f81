/**
 * What a restore finds in the WAL: what the next start will replay, what is lost, and streams that nobody knows.
 *
 * Nothing of a life in a bucket means that nothing was written, or all of it is uploaded; but only if it is the bucket
 * that the life names. Under another name it may be a copy, or the same by another way, and then the same is true. Or it
 * is a mistaken place, and what was acknowledged is elsewhere. Nothing here can tell these apart: the operator must.
 */
import { decodeWalEntries } from "../engine/wal-entry.ts";
import { describeSegment } from "../engine/wal-segment-format.ts";
import { inspectWal, takeOverWal } from "../engine/wal-takeover.ts";
import { STREAM_IDS_PER_RESERVATION } from "../lib/limits.ts";
import { formatRegistration, type RegistrationName, sameRegistration } from "../lib/registration.ts";
import type { RegistrationEntry } from "../metadata/entries.ts";
import type { View } from "../metadata/view.ts";
import { namesPlace } from "./database-witness.ts";
import type { RestoreOptions } from "./restore-options.ts";
import type { RestoredLog } from "./restored-log.ts";

/** A stream that the restored state does not know, and of which the WAL has records. */
export interface LostStream {
  readonly streamId: number;
  readonly records: number;
}

export interface WalFindings {
  readonly segments: number;
  readonly bytes: number;
  readonly streamIdMax: number;
  readonly lostStreams: readonly LostStream[];
  /** Registrations whose WAL was on a disk that is not here. */
  readonly lost: readonly RegistrationEntry[];
  /** Registrations that wrote to a bucket of another name, and of which nothing is here. */
  readonly moved: readonly RegistrationEntry[];
  readonly losses: readonly string[];
}

/** Throws `corrupt` where a WAL is damaged, and as the store does. Writes nothing. */
export async function surveyWals(options: RestoreOptions, log: RestoredLog): Promise<WalFindings> {
  const { wal, clock, random, onProgress } = options;
  const { view } = log.metadata;
  const found = { segments: 0, bytes: 0, streamIdMax: 0 };
  const lost: RegistrationEntry[] = [];
  const moved: RegistrationEntry[] = [];
  const present = await wal.registrations();
  const records = new Map<number, number>();
  for (const entry of view.registrations()) {
    if (entry.state === "ended") continue;
    const isHere = present.some((name) => sameRegistration(name, entry.name));
    if (!isHere && (entry.wal.kind === "local" || wal.kind === "local")) {
      lost.push(entry);
      continue;
    }
    if (!isHere && !namesPlace(entry, wal)) moved.push(entry);
    const position = entry.fencedNumber ?? entry.committedNumber;
    const taken = await inspectWal({ store: wal, clock, random, registration: entry.name, position });
    for await (const { number, bytes, segment } of taken.segments()) {
      found.segments += 1;
      found.bytes += bytes.length;
      onProgress({ step: "wal", done: found.bytes });
      for (const { streamId, batch } of decodeWalEntries(segment.body, describeSegment(entry.name, number))) {
        found.streamIdMax = Math.max(found.streamIdMax, streamId);
        if (view.streamById(streamId) === null) records.set(streamId, (records.get(streamId) ?? 0) + (batch?.count ?? 0));
      }
    }
  }
  const isDeleted = deletedIds(view, log.createdIds);
  const lostStreams = [...records]
    .filter(([streamId]) => !isDeleted(streamId))
    .map(([streamId, count]) => ({ streamId, records: count }))
    .sort((left, right) => left.streamId - right.streamId);
  const describe = ({ name, wal: { description } }: RegistrationEntry) =>
    `what ${formatRegistration(name)} had acknowledged and not uploaded was in the WAL ${description}, and ${wal.description} has nothing of it`;
  const losses = [
    ...lost.map(describe),
    ...moved.map(
      (entry) =>
        `${describe(entry)} (nothing is lost if the one is a whole copy of the other, or its new name: else name that WAL with --wal)`,
    ),
  ];
  return { ...found, lostStreams, lost, moved, losses };
}

/**
 * Ends the WAL of those that wrote to a bucket of another name. If it is this bucket they can write no more, and the
 * tombstone is what the next start finds of them here. Throws as `takeOverWal`.
 */
export async function closeMoved(
  { wal, clock, random }: RestoreOptions,
  { metadata }: RestoredLog,
  moved: WalFindings["moved"],
  takenBy: RegistrationName,
): Promise<void> {
  for (const { name } of moved) {
    const entry = metadata.view.registration(name);
    const position = entry?.fencedNumber ?? entry?.committedNumber ?? 0;
    await takeOverWal({ store: wal, clock, random, registration: name, position, takenBy });
  }
}

/**
 * Tells, of an id that the state does not know, whether its stream was deleted. A registration gives the ids of a block
 * out in order, so what is above all that the log knows of the block was created later than the log goes.
 */
function deletedIds(view: View, created: ReadonlySet<number>): (streamId: number) => boolean {
  const firsts = [...view.registrations()].flatMap(({ streamIdBlocks }) => streamIdBlocks);
  const blockOf = (streamId: number) => firsts.find((first) => streamId >= first && streamId < first + STREAM_IDS_PER_RESERVATION) ?? 0;
  const highest = new Map<number, number>();
  for (const streamId of created) highest.set(blockOf(streamId), Math.max(highest.get(blockOf(streamId)) ?? 0, streamId));
  return (streamId) => streamId <= (highest.get(blockOf(streamId)) ?? 0);
}
