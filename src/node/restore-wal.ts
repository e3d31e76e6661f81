/** What a restore finds in the WAL: what the next start will replay, what is lost, and streams that nobody knows. */
import { decodeWalEntries } from "../engine/wal-entry.ts";
import { describeSegment } from "../engine/wal-segment.ts";
import { inspectWal } from "../engine/wal-takeover.ts";
import { STREAM_IDS_PER_RESERVATION } from "../lib/limits.ts";
import { formatRegistration, sameRegistration } from "../lib/registration.ts";
import type { RegistrationEntry } from "../metadata/entries.ts";
import type { View } from "../metadata/view.ts";
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
  readonly losses: readonly string[];
}

/** Throws `corrupt` where a WAL is damaged, and as the store does. Writes nothing. */
export async function surveyWals(options: RestoreOptions, log: RestoredLog): Promise<WalFindings> {
  const { wal, clock, random, onProgress } = options;
  const { view } = log.metadata;
  const found = { segments: 0, bytes: 0, streamIdMax: 0 };
  const lost: RegistrationEntry[] = [];
  const present = await wal.registrations();
  const records = new Map<number, number>();
  for (const entry of view.registrations()) {
    if (entry.state === "ended") continue;
    const isHere = present.some((name) => sameRegistration(name, entry.name));
    // In a bucket nothing of it means that nothing was written, or all of it is uploaded.
    if (!isHere && (entry.wal.kind === "local" || wal.kind === "local")) {
      lost.push(entry);
      continue;
    }
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
  const losses = lost.map(
    ({ name, wal: { description } }) =>
      `what ${formatRegistration(name)} had acknowledged and not uploaded was in the WAL ${description}, and ${wal.description} has nothing of it`,
  );
  return { ...found, lostStreams, lost, losses };
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
