/**
 * Commands on data objects.
 *
 * Invariants:
 * - An object goes prepared → live → destroyed, or prepared → destroyed; then it is removed. Never back,
 *   so a repeated commit or compaction finds its objects in another state and is refused (FAULTS G3).
 * - A commit extends the committed position of its WAL without a gap: a second recoverer, or a late
 *   upload of the dead, finds another position and is refused.
 * - A command on several objects changes all of them or none.
 */
import { sameRegistration } from "../lib/registration.ts";
import type { ApplyContext } from "./apply.ts";
import type { ObjectSummary, Outcome } from "./command.ts";
import type { ObjectEntry } from "./entries.ts";
import { comparePlaces } from "./object-index.ts";
import { type CommandOf, done, refused } from "./outcome.ts";

/** Ids are consecutive. Fact `firstObjectId`. */
export function applyPrepare({ state, proposer }: ApplyContext, command: CommandOf<"prepare_objects">): Outcome {
  const firstObjectId = state.counters.nextObjectId;
  state.putCounters({ nextObjectId: firstObjectId + command.randoms.length });
  for (const [position, random] of command.randoms.entries()) {
    state.putObject({
      objectId: firstObjectId + position,
      random,
      state: "prepared",
      preparedBy: proposer.name,
      preparedUntilMs: command.expiresAtMs,
      summary: null,
      liveIndex: null,
      destroyedIndex: null,
      destroyedAtMs: null,
    });
  }
  return done({ firstObjectId });
}

/**
 * Makes the objects live and moves the committed position. A prepared object past its expiry may still
 * be committed, as long as no command has destroyed it.
 */
export function applyCommit(context: ApplyContext, command: CommandOf<"commit">): Outcome {
  const { state, proposer } = context;
  const wal = state.registration(command.wal);
  if (wal === null) return refused("unknown_registration");
  if (!sameRegistration(wal.name, proposer.name)) {
    if (wal.state === "live") return refused("not_fenced");
    if (wal.state === "ended") return refused("already_ended");
  }
  const { committedNumber } = wal;
  if (command.from !== committedNumber || command.to <= command.from) return refused("wal_position", { committedNumber });
  const fault = faultOfOutputs(context, command.objects);
  if (fault !== null) return fault;
  makeLive(context, command.objects);
  state.putRegistration({ ...wal, committedNumber: command.to });
  for (const streamId of command.closedStreams) {
    const entry = state.streamById(streamId);
    // The WAL may hold streams that were deleted since.
    if (entry !== null && !entry.isClosed) state.putStream({ ...entry, isClosed: true });
  }
  return done();
}

/**
 * Replaces live objects by a run: outputs of one level whose ranges of places ascend and are disjoint, with
 * no stream that lies outside of what the inputs span, and no more records than they had. No outputs: nothing
 * of the inputs was still needed.
 */
export function applyCompact(context: ApplyContext, command: CommandOf<"compact">): Outcome {
  const inputs = objectsIn(context, command.inputs, (entry) => entry.state === "live");
  if (!Array.isArray(inputs)) return inputs;
  const fault = faultOfOutputs(context, command.outputs) ?? faultOfRun(inputs, command.outputs);
  if (fault !== null) return fault;
  for (const entry of inputs) putDestroyed(context, entry);
  makeLive(context, command.outputs);
  return done();
}

/**
 * Live objects are destroyed on the word of the proposer, which found them dead. A prepared one is given
 * up by who prepared it at any time, by others once its expiry has passed.
 */
export function applyDestroy(context: ApplyContext, command: CommandOf<"destroy_objects">): Outcome {
  const { atMs, proposer } = context;
  const entries = objectsIn(context, command.objectIds, (entry) => {
    if (entry.state !== "prepared") return entry.state === "live";
    return sameRegistration(entry.preparedBy, proposer.name) || atMs >= entry.preparedUntilMs;
  });
  if (!Array.isArray(entries)) return entries;
  for (const entry of entries) putDestroyed(context, entry);
  return done();
}

/** The store confirmed that it no longer has them. */
export function applyRemove(context: ApplyContext, command: CommandOf<"remove_objects">): Outcome {
  const entries = objectsIn(context, command.objectIds, (entry) => entry.state === "destroyed");
  if (!Array.isArray(entries)) return entries;
  for (const entry of entries) context.state.removeObject(entry);
  return done();
}

/** The entries, each named once and fit; else the refusal, with fact `objectId`. */
function objectsIn(context: ApplyContext, objectIds: readonly number[], isFit: (entry: ObjectEntry) => boolean): ObjectEntry[] | Outcome {
  const entries = new Map<number, ObjectEntry>();
  for (const objectId of objectIds) {
    const entry = context.state.object(objectId);
    if (entry === null) return refused("unknown_object", { objectId });
    if (!isFit(entry) || entries.has(objectId)) return refused("object_state", { objectId });
    entries.set(objectId, entry);
  }
  return [...entries.values()];
}

/** Why these objects cannot be made live by the proposer; null where they can. */
function faultOfOutputs(context: ApplyContext, summaries: readonly ObjectSummary[]): Outcome | null {
  const disordered = summaries.find((summary) => comparePlaces(summary.first, summary.last) > 0);
  if (disordered !== undefined) return refused("object_state", { objectId: disordered.objectId });
  const { proposer } = context;
  const found = objectsIn(
    context,
    summaries.map((summary) => summary.objectId),
    (entry) => entry.state === "prepared" && sameRegistration(entry.preparedBy, proposer.name),
  );
  return Array.isArray(found) ? null : found;
}

/** Why the outputs cannot take the place of the inputs; null where they can. Fact `objectId`: the output. */
function faultOfRun(inputs: readonly ObjectEntry[], outputs: readonly ObjectSummary[]): Outcome | null {
  const replaced = inputs.flatMap(({ summary }) => (summary === null ? [] : [summary]));
  const lowestId = Math.min(...replaced.map(({ first }) => first.streamId));
  const highestId = Math.max(...replaced.map(({ last }) => last.streamId));
  const recordsMax = replaced.reduce((sum, { recordCount }) => sum + recordCount, 0);
  let records = 0;
  let before: ObjectSummary | null = null;
  for (const output of outputs) {
    records += output.recordCount;
    const isInOrder = before === null || (output.level === before.level && comparePlaces(before.last, output.first) < 0);
    const isInside = output.first.streamId >= lowestId && output.last.streamId <= highestId;
    if (!isInOrder || !isInside || records > recordsMax) return refused("object_state", { objectId: output.objectId });
    before = output;
  }
  return null;
}

function makeLive({ state, index }: ApplyContext, summaries: readonly ObjectSummary[]): void {
  for (const summary of summaries) {
    const entry = state.object(summary.objectId);
    if (entry !== null) state.putObject({ ...entry, state: "live", summary, liveIndex: index });
  }
}

function putDestroyed({ state, index, atMs }: ApplyContext, entry: ObjectEntry): void {
  state.putObject({ ...entry, state: "destroyed", destroyedIndex: index, destroyedAtMs: atMs });
}
