/**
 * The full check of a state's invariants: work in proportion to its size, for tests and simulations.
 * Throws `InvariantError` naming the first that is broken.
 */
import { assert } from "../lib/assert.ts";
import type { RegistrationEntry } from "./entries.ts";
import type { MetadataState } from "./state.ts";
import { encodeRowValue } from "./state-format.ts";
import { RowSum } from "./state-hash.ts";

export function checkInvariants(state: MetadataState): void {
  checkStreams(state);
  checkTallies(state);
  checkRegistrations(state);
  checkObjects(state);
  checkHash(state);
}

function checkStreams(state: MetadataState): void {
  const forks = new Map<number, number>();
  const listed = state.listStreams("", null, Number.MAX_SAFE_INTEGER);
  let visible = 0;
  for (const entry of state.streams()) {
    if (!entry.isDeleted) visible += 1;
    assert(entry.streamId < state.counters.nextStreamId, `stream ${entry.streamId} has a reserved id`);
    assert(state.streamByName(entry.name)?.streamId === entry.streamId, `the name of stream ${entry.streamId} is its own`);
    assert(entry.owner === null || state.registration(entry.owner) !== null, `the owner of stream ${entry.streamId} is known`);
    assert(entry.isDeleted ? entry.forkCount > 0 : true, `stream ${entry.streamId} is kept only for its forks`);
    if (entry.fork !== null) forks.set(entry.fork.sourceId, (forks.get(entry.fork.sourceId) ?? 0) + 1);
  }
  assert(listed.length === visible, "every stream that is not deleted is listed");
  for (const entry of state.streams()) {
    assert(entry.forkCount === (forks.get(entry.streamId) ?? 0), `fork count of stream ${entry.streamId}`);
    forks.delete(entry.streamId);
  }
  assert(forks.size === 0, "the source of every fork is kept");
}

/** What is kept up with each change is what counting finds. */
function checkTallies(state: MetadataState): void {
  const owned = new Map<RegistrationEntry, number>();
  const transferring = new Set<number>();
  for (const entry of state.streams()) {
    const owner = state.ownerOf(entry)?.owner;
    if (owner !== undefined) owned.set(owner, (owned.get(owner) ?? 0) + 1);
    if (entry.transfer !== null) transferring.add(entry.streamId);
    const forks = [...state.forksOf(entry.streamId)];
    assert(forks.length === entry.forkCount, `the forks of stream ${entry.streamId} are listed`);
    assert(
      forks.every(({ fork }) => fork?.sourceId === entry.streamId),
      `the forks of stream ${entry.streamId} are its own`,
    );
  }
  const counts = state.ownedCounts();
  assert(counts.size === owned.size, "every owner is counted, and nobody else");
  for (const [owner, count] of owned) assert(counts.get(owner) === count, `the streams of node ${owner.name.nodeId} are counted`);
  const listed = [...state.transferringStreams()].map(({ streamId }) => streamId);
  assert(listed.length === transferring.size && listed.every((streamId) => transferring.has(streamId)), "transfers are listed");
  checkObjectFigures(state);
}

function checkObjectFigures(state: MetadataState): void {
  const { levels, prepared, destroyed, oldestDestroyedIndex } = state.objectFigures();
  const objects = [...state.objects()];
  const gone = objects.filter((entry) => entry.state === "destroyed").map((entry) => entry.destroyedIndex ?? 0);
  assert(destroyed === gone.length, "destroyed objects are counted");
  assert(oldestDestroyedIndex === (gone.length === 0 ? null : Math.min(...gone)), "the oldest destruction is known");
  assert(prepared === objects.filter((entry) => entry.state === "prepared").length, "prepared objects are counted");
  const live = objects.filter((entry) => entry.state === "live");
  assert(live.length === levels.reduce((sum, level) => sum + level.objects, 0), "every live object is in a level");
  for (const { level, objects: count, bytes } of levels) {
    const ofLevel = live.filter(({ summary }) => summary?.level === level);
    assert(count > 0 && ofLevel.length === count, `the objects of level ${level} are counted`);
    assert(ofLevel.reduce((sum, { summary }) => sum + (summary?.sizeBytes ?? 0), 0) === bytes, `the bytes of level ${level} are counted`);
  }
}

function checkRegistrations(state: MetadataState): void {
  const live = new Map<number, number>();
  for (const entry of state.registrations()) {
    const { nodeId, nodeEpoch } = entry.name;
    const node = state.node(nodeId);
    assert(node !== null && nodeEpoch <= node.lastEpoch, `node ${nodeId} knows its epochs`);
    assert((entry.endedAtMs !== null) === (entry.state === "ended"), `an end has a time, at ${nodeId}@${nodeEpoch}`);
    assert(entry.heir === null || state.registration(entry.heir) !== null, `the heir of ${nodeId}@${nodeEpoch} is known`);
    if (entry.fencedNumber !== null) assert(entry.fencedNumber <= entry.committedNumber, "a committed position never falls");
    if (entry.state === "live") live.set(nodeId, (live.get(nodeId) ?? 0) + 1);
  }
  for (const [nodeId, count] of live) assert(count === 1, `node ${nodeId} has one live registration`);
}

function checkObjects(state: MetadataState): void {
  const live = new Set<number>();
  const prepared = new Set<number>();
  const destroyed = new Set<number>();
  for (const entry of state.objects()) {
    assert(entry.objectId < state.counters.nextObjectId, `object ${entry.objectId} has an id that was given out`);
    assert((entry.destroyedIndex !== null) === (entry.state === "destroyed"), `object ${entry.objectId} is destroyed at an index`);
    assert(entry.state !== "live" || entry.summary !== null, `live object ${entry.objectId} has a summary`);
    if (entry.state === "live") live.add(entry.objectId);
    if (entry.state === "destroyed") destroyed.add(entry.objectId);
    if (entry.state === "prepared") prepared.add(entry.objectId);
    if (entry.state !== "live" || entry.summary === null) continue;
    const found = state.liveObjectsOf(entry.summary.first.streamId, entry.summary.first.offset);
    assert(found.includes(entry), `live object ${entry.objectId} is found`);
    for (const other of found) assert(other.state === "live", `object ${other.objectId} that is found is live`);
  }
  for (const entry of state.preparedObjects()) assert(prepared.delete(entry.objectId), `object ${entry.objectId} is prepared`);
  assert(prepared.size === 0, "every prepared object is known as such");
  let newest = 0;
  for (const { objectId, destroyedIndex } of state.destroyedObjects()) {
    assert(!live.has(objectId) && destroyed.delete(objectId), `object ${objectId} that may leave the store is destroyed, and not live`);
    assert(destroyedIndex !== null && destroyedIndex >= newest, `object ${objectId} is listed behind those destroyed before it`);
    newest = destroyedIndex;
  }
  assert(destroyed.size === 0, "every destroyed object is known as such");
}

function checkHash(state: MetadataState): void {
  const sum = new RowSum();
  for (const key of state.rowKeys()) {
    const row = state.row(key);
    assert(row !== null, `row ${key} exists`);
    sum.add(key, encodeRowValue(row));
  }
  const kept = state.hash();
  assert(kept.rowCount === sum.rowCount, "the kept row count is that of the rows");
  assert(kept.rowSum === sum.rowSum, "the kept sum is that of the rows");
}
