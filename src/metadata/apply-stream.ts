/**
 * Commands on streams as such: create, delete, expire, trim, deadlines.
 *
 * Invariants:
 * - Only today's owner changes a stream, and nobody does between the fence and the end of its owner
 *   (`owner_in_recovery`). A stream that nobody owns is expired by any live registration.
 * - A deleted stream that forks still need stays, with its name taken, until the last kept fork goes.
 * - `forkCount` rises only with a fork that is created, in the same command (FAULTS E4).
 * - Nothing shortens a life: a stored deadline never falls, and a stated one counts only above it.
 */
import { assert } from "../lib/assert.ts";
import { STREAM_IDS_PER_RESERVATION } from "../lib/limits.ts";
import { sameRegistration } from "../lib/registration.ts";
import type { ApplyContext } from "./apply.ts";
import type { ForkOrigin, Outcome } from "./command.ts";
import type { RegistrationEntry, StreamEntry } from "./entries.ts";
import { type CommandOf, done, refused } from "./outcome.ts";
import { type MetadataState, ttlMsOf } from "./state.ts";

/** The stream, where the proposer owns it today; else the refusal that says why not. */
export function ownedStream({ state, proposer }: ApplyContext, streamId: number): StreamEntry | Outcome {
  const entry = state.streamById(streamId);
  if (entry === null || entry.isDeleted) return refused("unknown_stream");
  const owner = state.ownerOf(entry);
  if (owner?.recovering) return refused("owner_in_recovery");
  if (owner === null || !sameRegistration(owner.owner.name, proposer.name)) return refused("not_owner");
  return entry;
}

export function isRefusal(found: StreamEntry | Outcome): found is Outcome {
  return "applied" in found;
}

/** The proposer owns the stream. Refused as `name_taken` with facts `streamId` and `isDeleted` (1: kept for its forks). */
export function applyCreate(context: ApplyContext, command: CommandOf<"create_stream">): Outcome {
  const { state, atMs, proposer } = context;
  const taken = state.streamByName(command.name);
  if (taken !== null) return refused("name_taken", { streamId: taken.streamId, isDeleted: taken.isDeleted ? 1 : 0 });
  if (state.streamById(command.streamId) !== null || !hasReserved(proposer, command.streamId)) return refused("id_taken");
  let startOffset = 0;
  if (command.fork !== null) {
    const source = forkSource(context, command.fork);
    if (source === null) return refused("fork_source");
    startOffset = source.startOffset;
    state.putStream({ ...source, forkCount: source.forkCount + 1 });
  }
  state.putStream({
    streamId: command.streamId,
    name: command.name,
    settings: command.settings,
    createdAtMs: atMs,
    streamEpoch: 1,
    owner: proposer.name,
    deadlineMs: null,
    startOffset,
    isClosed: command.isClosed,
    fork: command.fork,
    forkCount: 0,
    isDeleted: false,
    transfer: null,
  });
  return done({ startOffset });
}

export function applyDelete(context: ApplyContext, command: CommandOf<"delete_stream">): Outcome {
  const entry = ownedStream(context, command.streamId);
  if (isRefusal(entry)) return entry;
  dropStream(context.state, entry);
  return done();
}

export function applyExpire(context: ApplyContext, command: CommandOf<"expire_stream">): Outcome {
  const { state, atMs } = context;
  const found = state.streamById(command.streamId);
  const isUnowned = found !== null && !found.isDeleted && state.ownerOf(found) === null;
  const entry = isUnowned ? found : ownedStream(context, command.streamId);
  if (isRefusal(entry)) return entry;
  const floorMs = state.unownedDeadlineMs(entry);
  if (floorMs === null || atMs < floorMs || atMs < command.deadlineMs) return refused("not_due");
  dropStream(state, entry);
  return done();
}

/** Never falls: a trim point below the present one is applied and changes nothing. Fact `startOffset`: the one that holds. */
export function applyTrim(context: ApplyContext, command: CommandOf<"trim_stream">): Outcome {
  const entry = ownedStream(context, command.streamId);
  if (isRefusal(entry)) return entry;
  if (command.startOffset > entry.startOffset) context.state.putStream({ ...entry, startOffset: command.startOffset });
  return done({ startOffset: Math.max(command.startOffset, entry.startOffset) });
}

/** Streams that went, or went elsewhere, meanwhile are passed over. Fact `stored`: how many were not. */
export function applyStoreDeadlines(context: ApplyContext, command: CommandOf<"store_deadlines">): Outcome {
  let stored = 0;
  for (const { streamId, deadlineMs } of command.deadlines) {
    const entry = ownedStream(context, streamId);
    if (isRefusal(entry) || ttlMsOf(entry.settings) === null) continue;
    stored += 1;
    const floorMs = context.state.unownedDeadlineMs(entry) ?? 0;
    context.state.putStream({ ...entry, deadlineMs: Math.max(floorMs, deadlineMs) });
  }
  return done({ stored });
}

/**
 * Deletes a stream: it goes, or stays hidden while forks need its records. When it goes, so does each
 * source above it that waited only for it; the work is the length of that chain.
 */
export function dropStream(state: MetadataState, entry: StreamEntry): void {
  let current = entry;
  for (;;) {
    if (current.forkCount > 0) {
      state.putStream({ ...current, isDeleted: true, transfer: null });
      return;
    }
    state.removeStream(current);
    if (current.fork === null) return;
    const source = state.streamById(current.fork.sourceId);
    assert(source !== null, "the source of a fork is kept as long as the fork");
    const left = { ...source, forkCount: source.forkCount - 1 };
    state.putStream(left);
    if (!left.isDeleted || left.forkCount > 0) return;
    current = left;
  }
}

/** The source, alive, the proposer's own, and with the fork offset not yet trimmed; else null. */
function forkSource(context: ApplyContext, fork: ForkOrigin): StreamEntry | null {
  const source = ownedStream(context, fork.sourceId);
  return isRefusal(source) || fork.offset < source.startOffset ? null : source;
}

function hasReserved(proposer: RegistrationEntry, streamId: number): boolean {
  return proposer.streamIdBlocks.some((first) => streamId >= first && streamId < first + STREAM_IDS_PER_RESERVATION);
}
