/**
 * The full check of a state's invariants: work in proportion to its size, for tests and simulations.
 * Throws `InvariantError` naming the first that is broken.
 */
import { assert } from "../lib/assert.ts";
import type { MetadataState } from "./state.ts";
import { encodeRowValue } from "./state-format.ts";
import { RowSum } from "./state-hash.ts";

export function checkInvariants(state: MetadataState): void {
  checkStreams(state);
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
  for (const entry of state.objects()) {
    assert(entry.objectId < state.counters.nextObjectId, `object ${entry.objectId} has an id that was given out`);
    assert((entry.destroyedIndex !== null) === (entry.state === "destroyed"), `object ${entry.objectId} is destroyed at an index`);
    assert(entry.state !== "live" || entry.summary !== null, `live object ${entry.objectId} has a summary`);
    if (entry.state === "live") live.add(entry.objectId);
    if (entry.state === "prepared") prepared.add(entry.objectId);
    if (entry.state !== "live" || entry.summary === null) continue;
    const found = state.liveObjectsOf(entry.summary.first.streamId, entry.summary.first.offset);
    assert(found.includes(entry), `live object ${entry.objectId} is found`);
    for (const other of found) assert(other.state === "live", `object ${other.objectId} that is found is live`);
  }
  for (const entry of state.preparedObjects()) assert(prepared.delete(entry.objectId), `object ${entry.objectId} is prepared`);
  assert(prepared.size === 0, "every prepared object is known as such");
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
