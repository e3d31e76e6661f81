/**
 * Commands on nodes and registrations. Each has constant size and touches no stream, however many the
 * registration owns.
 *
 * Invariants:
 * - Epochs of a node id rise; at most one registration of it is live.
 * - A registration goes live → fenced → ended, or live → ended by its own word; never back.
 * - It ends only when everything in its WAL is committed.
 */
import { STREAM_IDS_PER_RESERVATION } from "../lib/limits.ts";
import { sameRegistration } from "../lib/registration.ts";
import type { ApplyContext } from "./apply.ts";
import type { Outcome } from "./command.ts";
import type { RegistrationEntry } from "./entries.ts";
import { type CommandOf, done, refused } from "./outcome.ts";
import type { MetadataState } from "./state.ts";

/** Fact `firstStreamId`: the first of the ids reserved with it. */
export function applyRegister(state: MetadataState, atMs: number, command: CommandOf<"register">): Outcome {
  const { nodeId, nodeEpoch } = command.node;
  const node = state.node(nodeId);
  const lastEpoch = node?.lastEpoch ?? null;
  if (command.replaces !== lastEpoch || (lastEpoch !== null && nodeEpoch <= lastEpoch)) {
    return refused("epoch_conflict", { lastEpoch: lastEpoch ?? 0 });
  }
  if (command.commandVersion < state.counters.commandVersion) {
    return refused("stale_version", { commandVersion: state.counters.commandVersion });
  }
  const predecessor = state.currentRegistration(nodeId);
  if (predecessor?.state === "live") putFenced(state, predecessor);
  const firstStreamId = takeStreamIds(state);
  state.putNode({ nodeId, lastEpoch: nodeEpoch, slots: command.slots, isRemoved: false });
  state.putRegistration({
    name: command.node,
    state: "live",
    addresses: command.addresses,
    wal: command.wal,
    slots: command.slots,
    failoverTimeoutMs: command.failoverTimeoutMs,
    commandVersion: command.commandVersion,
    registeredAtMs: atMs,
    committedNumber: 0,
    fencedNumber: null,
    endedAtMs: null,
    streamIdBlocks: [firstStreamId],
    heir: null,
    lastBatch: 0,
    lastOutcomes: [],
  });
  return done({ firstStreamId });
}

export function applyFence({ state }: ApplyContext, command: CommandOf<"fence">): Outcome {
  const victim = state.registration(command.victim);
  if (victim === null) return refused("unknown_registration");
  if (victim.state === "fenced") return refused("already_fenced");
  if (victim.state === "ended") return refused("already_ended");
  putFenced(state, victim);
  return done({ fencedNumber: victim.committedNumber });
}

export function applyEnd({ state, atMs, proposer }: ApplyContext, command: CommandOf<"end">): Outcome {
  const victim = state.registration(command.victim);
  if (victim === null) return refused("unknown_registration");
  if (victim.state === "ended") return refused("already_ended");
  if (victim.state === "live" && !sameRegistration(victim.name, proposer.name)) return refused("not_fenced");
  if (command.lastNumber !== victim.committedNumber) return refused("wal_position", { committedNumber: victim.committedNumber });
  if (command.heir !== null) {
    // An heir that is not alive would leave the streams in recovery again; a victim cannot inherit from itself.
    const heir = state.registration(command.heir);
    if (heir === null || heir.state !== "live" || sameRegistration(heir.name, victim.name)) return refused("unknown_registration");
  }
  state.putRegistration({ ...victim, state: "ended", endedAtMs: atMs, heir: command.heir });
  return done();
}

export function applyResize({ state }: ApplyContext, command: CommandOf<"resize">): Outcome {
  const node = state.node(command.nodeId);
  if (node === null || node.isRemoved) return refused("unknown_node");
  state.putNode({ ...node, slots: command.slots });
  return done();
}

export function applyRemoveNode({ state }: ApplyContext, command: CommandOf<"remove_node">): Outcome {
  const node = state.node(command.nodeId);
  if (node === null || node.isRemoved) return refused("unknown_node");
  // Also one that is fenced and not ended: its WAL may hold acknowledged records.
  for (const registration of state.registrationsOfNode(command.nodeId)) {
    if (registration.state !== "ended") return refused("node_alive");
  }
  state.putNode({ ...node, isRemoved: true });
  return done();
}

/** Fact `firstStreamId`. */
export function applyReserveIds({ state, proposer }: ApplyContext): Outcome {
  const firstStreamId = takeStreamIds(state);
  state.putRegistration({ ...proposer, streamIdBlocks: [...proposer.streamIdBlocks, firstStreamId] });
  return done({ firstStreamId });
}

function putFenced(state: MetadataState, victim: RegistrationEntry): void {
  state.putRegistration({ ...victim, state: "fenced", fencedNumber: victim.committedNumber });
}

function takeStreamIds(state: MetadataState): number {
  const firstStreamId = state.counters.nextStreamId;
  state.putCounters({ nextStreamId: firstStreamId + STREAM_IDS_PER_RESERVATION });
  return firstStreamId;
}
