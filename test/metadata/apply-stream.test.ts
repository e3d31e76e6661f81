import { expect, test } from "bun:test";
import type { StreamSettings } from "../../src/metadata/command.ts";
import { checkInvariants } from "../../src/metadata/invariants.ts";
import { nodeName, PLAIN, START_MS, StateFixture, summaryOf, verdict } from "./state-fixture.ts";

const A = nodeName(1);
const B = nodeName(2);
const TTL_10: StreamSettings = { contentType: "text/plain", ttlSeconds: 10n, expiresAtMs: null };

/** Two nodes; ids of the first begin at 1. */
function pair(): StateFixture & { readonly idsOfB: number } {
  const f = new StateFixture();
  f.register(A);
  const { firstStreamId } = f.register(B);
  return Object.assign(f, { idsOfB: firstStreamId });
}

/** Makes stream 1 of `A` nobody's, as a crash does. */
function crash(f: StateFixture): void {
  f.run(B, { type: "fence", victim: A });
  f.run(B, { type: "end", victim: A, lastNumber: 0, heir: null });
}

test("the creator owns the stream from the same command", () => {
  const f = pair();
  const entry = f.create(A, 1, "chat/1");
  expect(entry).toMatchObject({ streamEpoch: 1, startOffset: 0, createdAtMs: f.atMs, forkCount: 0, isDeleted: false });
  expect(f.state.ownerOf(entry)?.owner.name).toEqual(A);
  expect(f.state.streamByName("chat/1")).toBe(entry);
});

test("a taken name is refused with the id that holds it", () => {
  const f = pair();
  f.create(A, 1, "a");
  const create = { type: "create_stream", streamId: f.idsOfB, name: "a", settings: PLAIN, isClosed: false, fork: null } as const;
  expect(f.run(B, create)).toEqual({ applied: false, code: "name_taken", facts: { streamId: 1, isDeleted: 0 } });
});

test("an id that is taken or that another node reserved is refused", () => {
  const f = pair();
  f.create(A, 1, "a");
  for (const streamId of [1, f.idsOfB]) {
    const create = { type: "create_stream", streamId, name: "b", settings: PLAIN, isClosed: false, fork: null } as const;
    expect(verdict(f.run(A, create))).toBe("id_taken");
  }
});

test("a name that was deleted can be created again under another id", () => {
  const f = pair();
  f.create(A, 1, "a");
  f.run(A, { type: "delete_stream", streamId: 1 });
  expect(f.state.streamByName("a")).toBeNull();
  expect(f.create(A, 2, "a").streamId).toBe(2);
});

test("only the owner deletes, trims or releases", () => {
  const f = pair();
  f.create(A, 1, "a");
  for (const command of [
    { type: "delete_stream", streamId: 1 },
    { type: "trim_stream", streamId: 1, startOffset: 1 },
    { type: "release_stream", streamId: 1, deadlineMs: null, walNumber: 0 },
    { type: "expire_stream", streamId: 1, deadlineMs: 0 },
  ] as const) {
    expect(verdict(f.run(B, command))).toBe("not_owner");
  }
});

test("between fence and end of the owner nothing touches its streams", () => {
  const f = pair();
  f.create(A, 1, "a", TTL_10);
  f.run(B, { type: "fence", victim: A });
  const entry = f.stream(1);
  f.atMs += 3_600_000;
  for (const command of [
    { type: "acquire_stream", streamId: 1 },
    { type: "expire_stream", streamId: 1, deadlineMs: 0 },
    { type: "delete_stream", streamId: 1 },
    { type: "start_transfer", streamId: 1, toNodeId: 2, deadlineMs: f.atMs + 1000 },
    { type: "trim_stream", streamId: 1, startOffset: 5 },
  ] as const) {
    expect(verdict(f.run(B, command))).toBe("owner_in_recovery");
  }
  expect(f.stream(1)).toBe(entry);
});

test("after the end a stream is acquired by whoever comes first, with a higher stream epoch", () => {
  const f = pair();
  f.create(A, 1, "a");
  expect(verdict(f.run(B, { type: "acquire_stream", streamId: 1 }))).toBe("owned");
  crash(f);
  expect(f.run(B, { type: "acquire_stream", streamId: 1 })).toEqual({ applied: true, facts: { streamEpoch: 2 } });
  expect(f.run(B, { type: "acquire_stream", streamId: 1 })).toEqual({ applied: true, facts: { streamEpoch: 2 } });
});

test("a trim point never falls", () => {
  const f = pair();
  f.create(A, 1, "a");
  expect(f.run(A, { type: "trim_stream", streamId: 1, startOffset: 5 }).facts).toEqual({ startOffset: 5 });
  expect(f.run(A, { type: "trim_stream", streamId: 1, startOffset: 3 }).facts).toEqual({ startOffset: 5 });
  expect(f.stream(1).startOffset).toBe(5);
});

test("a release is refused above the committed position and then makes the stream nobody's", () => {
  const f = pair();
  f.create(A, 1, "a");
  const release = { type: "release_stream", streamId: 1, deadlineMs: null, walNumber: 3 } as const;
  expect(f.run(A, release)).toEqual({ applied: false, code: "wal_position", facts: { committedNumber: 0 } });
  const [objectId = 0] = f.prepare(A, 1);
  f.run(A, { type: "commit", wal: A, from: 0, to: 3, objects: [summaryOf(objectId)], closedStreams: [] });
  expect(verdict(f.run(A, release))).toBe("applied");
  expect(f.state.ownerOf(f.stream(1))).toBeNull();
});

test("an owned TTL stream expires at the owner's stated deadline and no sooner", () => {
  const f = pair();
  f.create(A, 1, "a", TTL_10);
  f.atMs = START_MS + 15_000;
  expect(verdict(f.run(A, { type: "expire_stream", streamId: 1, deadlineMs: START_MS + 20_000 }))).toBe("not_due");
  f.atMs = START_MS + 20_000;
  expect(verdict(f.run(A, { type: "expire_stream", streamId: 1, deadlineMs: START_MS + 20_000 }))).toBe("applied");
  expect(f.state.streamByName("a")).toBeNull();
});

test("a stated deadline below the first TTL or the stored one expires nothing", () => {
  const f = pair();
  f.create(A, 1, "a", TTL_10);
  f.atMs = START_MS + 9_999;
  expect(verdict(f.run(A, { type: "expire_stream", streamId: 1, deadlineMs: 0 }))).toBe("not_due");
  f.run(A, { type: "store_deadlines", deadlines: [{ streamId: 1, deadlineMs: START_MS + 30_000 }] });
  f.atMs = START_MS + 29_999;
  expect(verdict(f.run(A, { type: "expire_stream", streamId: 1, deadlineMs: 0 }))).toBe("not_due");
});

test("a stored deadline never falls", () => {
  const f = pair();
  f.create(A, 1, "a", TTL_10);
  for (const deadlineMs of [START_MS + 30_000, START_MS + 20_000])
    f.run(A, { type: "store_deadlines", deadlines: [{ streamId: 1, deadlineMs }] });
  expect(f.stream(1).deadlineMs).toBe(START_MS + 30_000);
});

test("a stream without TTL or expiry never expires", () => {
  const f = pair();
  f.create(A, 1, "a");
  f.atMs += 1e12;
  expect(verdict(f.run(A, { type: "expire_stream", streamId: 1, deadlineMs: 0 }))).toBe("not_due");
});

test("an absolute expiry comes from the entry, whatever is stated", () => {
  const f = pair();
  f.create(A, 1, "a", { ...PLAIN, expiresAtMs: START_MS + 500 });
  f.atMs = START_MS + 499;
  expect(verdict(f.run(A, { type: "expire_stream", streamId: 1, deadlineMs: 0 }))).toBe("not_due");
  f.atMs = START_MS + 500;
  expect(verdict(f.run(A, { type: "expire_stream", streamId: 1, deadlineMs: 0 }))).toBe("applied");
});

test("a stream whose owner crashed lives a TTL from the end; then anybody expires it", () => {
  const f = pair();
  f.create(A, 1, "a", TTL_10);
  f.atMs = START_MS + 60_000;
  crash(f);
  expect(f.state.unownedDeadlineMs(f.stream(1))).toBe(START_MS + 70_000);
  f.atMs = START_MS + 69_999;
  expect(verdict(f.run(B, { type: "expire_stream", streamId: 1, deadlineMs: 0 }))).toBe("not_due");
  f.atMs = START_MS + 70_000;
  expect(verdict(f.run(B, { type: "expire_stream", streamId: 1, deadlineMs: 0 }))).toBe("applied");
});

test("an acquire past the deadline removes the stream instead", () => {
  const f = pair();
  f.create(A, 1, "a", TTL_10);
  crash(f);
  f.atMs += 10_000;
  expect(verdict(f.run(B, { type: "acquire_stream", streamId: 1 }))).toBe("expired");
  expect(f.state.streamByName("a")).toBeNull();
});

test("release and acquire carry the deadline, and never shorten it", () => {
  const f = pair();
  f.create(A, 1, "a", TTL_10);
  f.run(A, { type: "release_stream", streamId: 1, deadlineMs: START_MS + 12_000, walNumber: 0 });
  expect(f.state.unownedDeadlineMs(f.stream(1))).toBe(START_MS + 12_000);
  f.run(B, { type: "acquire_stream", streamId: 1 });
  f.run(B, { type: "release_stream", streamId: 1, deadlineMs: START_MS + 1, walNumber: 0 });
  expect(f.state.unownedDeadlineMs(f.stream(1))).toBe(START_MS + 12_000);
});

test("an heir inherits the life that the crash lengthened", () => {
  const f = pair();
  f.create(A, 1, "a", TTL_10);
  f.atMs = START_MS + 60_000;
  f.run(B, { type: "fence", victim: A });
  f.run(B, { type: "end", victim: A, lastNumber: 0, heir: B });
  f.atMs = START_MS + 69_999;
  expect(verdict(f.run(B, { type: "expire_stream", streamId: 1, deadlineMs: 0 }))).toBe("not_due");
});

test("a life follows the latest end of a chain of heirs, also where the database's clock stepped back between them", () => {
  const f = pair();
  const C = nodeName(3);
  f.register(C);
  f.create(A, 1, "a", TTL_10);
  f.atMs = START_MS + 60_000;
  f.run(B, { type: "fence", victim: A });
  f.run(B, { type: "end", victim: A, lastNumber: 0, heir: B });
  f.atMs = START_MS + 20_000;
  f.run(B, { type: "end", victim: B, lastNumber: 0, heir: C });
  f.run(C, { type: "end", victim: C, lastNumber: 0, heir: null });
  expect(f.state.unownedDeadlineMs(f.stream(1))).toBe(START_MS + 70_000);
});

test("a TTL of 2^64-1 seconds never comes due", () => {
  const f = pair();
  f.create(A, 1, "a", { ...PLAIN, ttlSeconds: 2n ** 64n - 1n });
  crash(f);
  f.atMs = 8_640_000_000_000_000;
  expect(verdict(f.run(B, { type: "expire_stream", streamId: 1, deadlineMs: 0 }))).toBe("not_due");
});

test("a fork takes the source's start and counts only when it is created", () => {
  const f = pair();
  f.create(A, 1, "source");
  f.run(A, { type: "trim_stream", streamId: 1, startOffset: 4 });
  expect(verdict(f.fork(A, 2, 1, 3))).toBe("fork_source");
  expect(verdict(f.fork(A, 1, 1, 5))).toBe("id_taken");
  expect(verdict(f.fork(A, 2, 99, 5))).toBe("fork_source");
  expect(verdict(f.fork(B, f.idsOfB, 1, 5))).toBe("fork_source");
  expect(f.stream(1).forkCount).toBe(0);
  expect(verdict(f.fork(A, 2, 1, 5))).toBe("applied");
  expect(verdict(f.fork(A, 2, 1, 5))).toBe("name_taken");
  expect(f.stream(1).forkCount).toBe(1);
  expect(f.stream(2).startOffset).toBe(4);
  checkInvariants(f.state);
});

test("a deleted source stays hidden with its name taken until its last fork goes", () => {
  const f = pair();
  f.create(A, 1, "source");
  f.fork(A, 2, 1);
  f.fork(A, 3, 1);
  f.run(A, { type: "delete_stream", streamId: 1 });
  expect(f.state.streamByName("source")).toMatchObject({ isDeleted: true, forkCount: 2 });
  expect(f.state.listStreams("", null, 10).map((entry) => entry.streamId)).toEqual([2, 3]);
  expect(verdict(f.fork(A, 4, 1))).toBe("fork_source");
  expect(verdict(f.run(A, { type: "delete_stream", streamId: 1 }))).toBe("unknown_stream");
  const create = { type: "create_stream", streamId: 5, name: "source", settings: PLAIN, isClosed: false, fork: null } as const;
  expect(f.run(A, create).facts).toEqual({ streamId: 1, isDeleted: 1 });
  f.run(A, { type: "delete_stream", streamId: 2 });
  expect(f.state.streamById(1)).not.toBeNull();
  f.run(A, { type: "delete_stream", streamId: 3 });
  expect(f.state.streamCount).toBe(0);
  checkInvariants(f.state);
});

test("the last fork takes a whole chain of deleted sources with it, up to the first that lives", () => {
  const f = pair();
  f.create(A, 1, "root");
  for (let id = 2; id <= 40; id++) f.fork(A, id, id - 1);
  for (let id = 2; id <= 39; id++) f.run(A, { type: "delete_stream", streamId: id });
  expect(f.state.streamCount).toBe(40);
  checkInvariants(f.state);
  f.run(A, { type: "delete_stream", streamId: 40 });
  expect([...f.state.streams()].map((entry) => [entry.streamId, entry.forkCount])).toEqual([[1, 0]]);
});

test("an expired source with forks is kept like a deleted one", () => {
  const f = pair();
  f.create(A, 1, "source", TTL_10);
  f.fork(A, 2, 1);
  f.atMs += 10_000;
  f.run(A, { type: "expire_stream", streamId: 1, deadlineMs: 0 });
  expect(f.stream(1).isDeleted).toBe(true);
});

test("a transfer lets only its target acquire until it is no longer pending", () => {
  const f = pair();
  const C = nodeName(3);
  f.register(C);
  f.create(A, 1, "a");
  const start = { type: "start_transfer", streamId: 1, toNodeId: 2, deadlineMs: f.atMs + 5000 } as const;
  expect(verdict(f.run(C, { ...start, toNodeId: 9 }))).toBe("unknown_node");
  expect(verdict(f.run(C, { ...start, toNodeId: 1 }))).toBe("owned");
  expect(verdict(f.run(C, start))).toBe("applied");
  expect(verdict(f.run(C, start))).toBe("transfer_pending");
  f.run(A, { type: "release_stream", streamId: 1, deadlineMs: null, walNumber: 0 });
  expect(verdict(f.run(C, { type: "acquire_stream", streamId: 1 }))).toBe("transfer_pending");
  expect(verdict(f.run(C, { type: "finish_transfer", streamId: 1 }))).toBe("transfer_pending");
  expect(verdict(f.run(B, { type: "acquire_stream", streamId: 1 }))).toBe("applied");
  expect(f.stream(1)).toMatchObject({ transfer: null, streamEpoch: 2 });
  expect(verdict(f.run(B, { type: "finish_transfer", streamId: 1 }))).toBe("no_transfer");
});

test("a transfer ends with its deadline, and with either side", () => {
  const f = pair();
  const C = nodeName(3);
  f.register(C);
  f.create(A, 1, "a");
  const start = { type: "start_transfer", streamId: 1, toNodeId: 2, deadlineMs: f.atMs + 5000 } as const;
  f.run(C, start);
  f.atMs += 5000;
  expect(verdict(f.run(C, { type: "finish_transfer", streamId: 1 }))).toBe("applied");
  f.run(C, { ...start, deadlineMs: f.atMs + 5000 });
  f.run(C, { type: "fence", victim: B });
  expect(verdict(f.run(C, { type: "finish_transfer", streamId: 1 }))).toBe("applied");
});
