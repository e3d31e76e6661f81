/**
 * Commands that change who owns a stream: acquire, release, and the transfer between the two.
 *
 * Invariants:
 * - A stream has at most one owner. It is acquired only from nobody, and released only by its owner once
 *   the owner's committed WAL position covers its last entry.
 * - A release and an acquire carry the deadline on, so that no change of owner shortens a life.
 * - A transfer is pending until its target acquired, its deadline passed, or either side is gone.
 */
import { sameRegistration } from "../lib/registration.ts";
import type { ApplyContext } from "./apply.ts";
import { dropStream, isRefusal, ownedStream } from "./apply-stream.ts";
import type { Outcome } from "./command.ts";
import type { RegistrationEntry, StreamEntry } from "./entries.ts";
import { type CommandOf, done, refused } from "./outcome.ts";
import { type MetadataState, ttlMsOf } from "./state.ts";

/**
 * Fact `streamEpoch`. A stream past its deadline is removed instead, and the acquire refused as
 * `expired`. Acquiring what one owns already is applied and changes nothing.
 */
export function applyAcquire({ state, atMs, proposer }: ApplyContext, command: CommandOf<"acquire_stream">): Outcome {
  const entry = state.streamById(command.streamId);
  if (entry === null || entry.isDeleted) return refused("unknown_stream");
  const owner = state.ownerOf(entry);
  if (owner?.recovering) return refused("owner_in_recovery");
  if (owner !== null) {
    return sameRegistration(owner.owner.name, proposer.name) ? done({ streamEpoch: entry.streamEpoch }) : refused("owned");
  }
  const deadlineMs = state.unownedDeadlineMs(entry);
  if (deadlineMs !== null && atMs >= deadlineMs) {
    dropStream(state, entry);
    return refused("expired");
  }
  if (isTransferPending(state, entry, atMs) && entry.transfer?.toNodeId !== proposer.name.nodeId) return refused("transfer_pending");
  const streamEpoch = entry.streamEpoch + 1;
  state.putStream({
    ...entry,
    owner: proposer.name,
    streamEpoch,
    deadlineMs: ttlMsOf(entry.settings) === null ? null : deadlineMs,
    transfer: null,
  });
  return done({ streamEpoch });
}

/** Refused as `wal_position` with fact `committedNumber` where that does not cover the stream's last entry. */
export function applyRelease(context: ApplyContext, command: CommandOf<"release_stream">): Outcome {
  const { state, atMs, proposer } = context;
  const entry = ownedStream(context, command.streamId);
  if (isRefusal(entry)) return entry;
  const { committedNumber } = proposer;
  if (command.walNumber > committedNumber) return refused("wal_position", { committedNumber });
  state.putStream({ ...entry, owner: null, deadlineMs: releasedDeadlineMs(state, entry, command.deadlineMs, atMs) });
  return done();
}

export function applyStartTransfer({ state, atMs }: ApplyContext, command: CommandOf<"start_transfer">): Outcome {
  const entry = state.streamById(command.streamId);
  if (entry === null || entry.isDeleted) return refused("unknown_stream");
  const owner = state.ownerOf(entry);
  if (owner?.recovering) return refused("owner_in_recovery");
  if (isTransferPending(state, entry, atMs)) return refused("transfer_pending");
  const target = liveRegistrationOf(state, command.toNodeId);
  if (target === null) return refused("unknown_node");
  if (owner !== null && sameRegistration(owner.owner.name, target.name)) return refused("owned");
  state.putStream({ ...entry, transfer: { toNodeId: command.toNodeId, deadlineMs: command.deadlineMs } });
  return done();
}

/** Ends a transfer without a move: by either side at any time, by others once it is no longer pending. */
export function applyFinishTransfer({ state, atMs, proposer }: ApplyContext, command: CommandOf<"finish_transfer">): Outcome {
  const entry = state.streamById(command.streamId);
  if (entry === null || entry.isDeleted) return refused("unknown_stream");
  if (entry.transfer === null) return refused("no_transfer");
  const owner = state.ownerOf(entry);
  const isSide = entry.transfer.toNodeId === proposer.name.nodeId || (owner !== null && sameRegistration(owner.owner.name, proposer.name));
  if (!isSide && isTransferPending(state, entry, atMs)) return refused("transfer_pending");
  state.putStream({ ...entry, transfer: null });
  return done();
}

function isTransferPending(state: MetadataState, entry: StreamEntry, atMs: number): boolean {
  if (entry.transfer === null || atMs >= entry.transfer.deadlineMs) return false;
  if (liveRegistrationOf(state, entry.transfer.toNodeId) === null) return false;
  // Without a stored owner the stream was released and waits for its target; a stored one must be alive.
  return entry.owner === null || state.ownerOf(entry)?.recovering === false;
}

function liveRegistrationOf(state: MetadataState, nodeId: number): RegistrationEntry | null {
  const registration = state.currentRegistration(nodeId);
  return registration?.state === "live" ? registration : null;
}

/** What the owner states, but never below what is known; a TTL stream released without one lives a TTL from now. */
function releasedDeadlineMs(state: MetadataState, entry: StreamEntry, statedMs: number | null, atMs: number): number | null {
  const ttlMs = ttlMsOf(entry.settings);
  if (ttlMs === null) return null;
  return Math.max(state.unownedDeadlineMs(entry) ?? 0, statedMs ?? Math.min(Number.MAX_SAFE_INTEGER, atMs + ttlMs));
}
