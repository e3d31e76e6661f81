import { expect, test } from "bun:test";
import { apply, type CommandRow, isRepeat } from "../../src/metadata/apply.ts";
import { checkInvariants } from "../../src/metadata/invariants.ts";
import { comparePlaces } from "../../src/metadata/object-index.ts";
import { MetadataState } from "../../src/metadata/state.ts";
import { decodeRow, encodeRowValue } from "../../src/metadata/state-format.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { RandomCommands } from "./random-commands.ts";

const SEEDS = 24;
const ROWS = 100;

/** A state from the stored form of another's rows. */
function reloaded(state: MetadataState): MetadataState {
  const copy = new MetadataState();
  for (const key of state.rowKeys()) {
    const row = state.row(key);
    if (row === null) throw new Error(`no row ${key}`);
    const value = encodeRowValue(row);
    copy.load(key, value, decodeRow(key, value));
  }
  copy.loaded(state.appliedIndex, state.appliedRowId);
  return copy;
}

function replay(rows: readonly CommandRow[]): MetadataState {
  const state = new MetadataState();
  for (const row of rows) apply(state, row);
  return state;
}

test("random commands keep every invariant, and reach most outcomes of most commands", () => {
  const seen = new Map<string, number>();
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = new RandomCommands(new SeededRandom(seed));
    for (let i = 0; i < ROWS; i++) {
      run.step();
      if (i % 4 === seed % 4) checkInvariants(run.fixture.state);
    }
    const copy = new MetadataState();
    for (const row of run.fixture.rows) {
      const isRepeated = isRepeat(copy, row);
      const outcomes = apply(copy, row);
      if (isRepeated) continue;
      outcomes.forEach((outcome, position) => {
        const key = `${row.commands[position]?.type} ${outcome.applied ? "applied" : outcome.code}`;
        seen.set(key, (seen.get(key) ?? 0) + 1);
      });
    }
  }
  const types = new Set([...seen.keys()].filter((key) => key.endsWith(" applied")).map((key) => key.split(" ")[0]));
  expect([...types].sort()).toEqual([
    "acquire_stream",
    "commit",
    "compact",
    "create_stream",
    "delete_stream",
    "destroy_objects",
    "end",
    "expire_stream",
    "fence",
    "finish_transfer",
    "hold_removal",
    "prepare_objects",
    "raise_ids",
    "register",
    "release_stream",
    "remove_node",
    "remove_objects",
    "reserve_ids",
    "resize",
    "start_transfer",
    "store_deadlines",
    "trim_stream",
  ]);
  const refusals = new Set([...seen.keys()].map((key) => key.split(" ")[1]));
  for (const code of [
    "owner_in_recovery",
    "not_owner",
    "owned",
    "fork_source",
    "wal_position",
    "object_state",
    "expired",
    "not_due",
    "proposer_dead",
    "transfer_pending",
  ]) {
    expect(refusals).toContain(code);
  }
});

test("the same rows give the same outcomes and the same hash at every index", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = new RandomCommands(new SeededRandom(seed));
    const other = new MetadataState();
    for (let i = 0; i < ROWS; i++) {
      run.step();
      const row = run.fixture.rows.at(-1);
      if (row === undefined) throw new Error("no row");
      apply(other, row);
      expect(other.hash()).toEqual(run.fixture.state.hash());
    }
  }
});

test("a state loaded at any index and brought on by the tail equals a full replay", () => {
  for (let seed = 1; seed <= 4; seed++) {
    const run = new RandomCommands(new SeededRandom(seed));
    const copies: MetadataState[] = [];
    for (let i = 0; i < ROWS; i++) {
      run.step();
      const row = run.fixture.rows.at(-1);
      if (row === undefined) throw new Error("no row");
      for (const copy of copies) apply(copy, row);
      if (i % 4 === seed % 4) copies.push(reloaded(run.fixture.state));
    }
    const full = replay(run.fixture.rows).hash();
    for (const copy of copies) expect(copy.hash()).toEqual(full);
    for (const copy of copies.slice(-3)) checkInvariants(copy);
  }
});

test("a repeat of the last batch of any registration changes no row but the counters, and has its outcomes", () => {
  const run = new RandomCommands(new SeededRandom(99));
  for (let i = 0; i < ROWS; i++) run.step();
  const { state } = run.fixture;
  for (const registration of [...state.registrations()]) {
    const before = new Map([...state.rowKeys()].map((key) => [key, state.row(key)?.entry]));
    expect(run.fixture.batch(registration.name, [{ type: "reserve_ids" }], registration.lastBatch)).toEqual([...registration.lastOutcomes]);
    const after = new Map([...state.rowKeys()].map((key) => [key, state.row(key)?.entry]));
    expect(after.size).toBe(before.size);
    for (const [key, entry] of before) if (key !== "c") expect(after.get(key)).toBe(entry);
  }
});

test("an id that is gone never comes back, whatever is repeated", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = new RandomCommands(new SeededRandom(seed));
    const gone = new Set<string>();
    let before = new Set<string>();
    for (let i = 0; i < ROWS; i++) {
      run.step();
      const keys = new Set([...run.fixture.state.rowKeys()].filter((key) => /^[so]/.test(key)));
      for (const key of before) if (!keys.has(key)) gone.add(key);
      for (const key of keys) expect(gone.has(key)).toBe(false);
      before = keys;
    }
  }
});

test("the covering objects are those that a full scan finds, at any index", () => {
  for (let seed = 1; seed <= SEEDS; seed++) {
    const run = new RandomCommands(new SeededRandom(seed));
    for (let i = 0; i < ROWS; i++) {
      run.step();
      const place = { streamId: run.random.below(101), offset: run.random.pick([0, 5, 12, 100]) };
      const scanned = [...run.fixture.state.objects()].filter(
        ({ state, summary }) =>
          state === "live" && summary !== null && summary.first.streamId <= place.streamId && comparePlaces(summary.last, place) >= 0,
      );
      const found = run.fixture.state.liveObjectsOf(place.streamId, place.offset);
      expect(found.map((entry) => entry.objectId).sort()).toEqual(scanned.map((entry) => entry.objectId).sort());
    }
  }
});

test("equal settings and owner names of streams share one object", () => {
  const run = new RandomCommands(new SeededRandom(5));
  for (let i = 0; i < ROWS; i++) run.step();
  const copy = reloaded(run.fixture.state);
  const settings = new Map<string, unknown>();
  for (const entry of copy.streams()) {
    const key = `${entry.settings.ttlSeconds} ${entry.settings.expiresAtMs}`;
    expect(settings.get(key) ?? entry.settings).toBe(entry.settings);
    settings.set(key, entry.settings);
    if (entry.owner !== null) expect(entry.owner).toBe(copy.ownerOf(entry)?.owner.name ?? entry.owner);
  }
  expect(copy.streamCount).toBeGreaterThan(0);
});
