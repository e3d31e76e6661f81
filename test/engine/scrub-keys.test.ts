/** What the metadata says of each kind of key. */
import { describe, expect, test } from "bun:test";
import { judgeKey } from "../../src/engine/scrub-keys.ts";
import { TOMBSTONE_BYTES } from "../../src/engine/wal-segment-format.ts";
import type { RegistrationName } from "../../src/lib/registration.ts";
import type { Command } from "../../src/metadata/command.ts";
import { DirectMetadata } from "../support/direct-metadata.ts";
import { ManualClock } from "../support/manual-clock.ts";

const FIRST = { nodeId: 1, nodeEpoch: 10 };
const SECOND = { nodeId: 1, nodeEpoch: 11 };
const RANDOM = "00112233445566aa";
const SEGMENT_BYTES = 900;

/** Node 1 in its second life, the first one ended; objects 1 to 4: prepared, live, destroyed, removed. */
async function makeMetadata(): Promise<DirectMetadata> {
  const metadata = new DirectMetadata(new ManualClock());
  const apply = async (command: Command) => expect(await metadata.propose(command).outcome).toMatchObject({ applied: true });
  metadata.register(FIRST);
  metadata.register(SECOND);
  await apply({ type: "end", victim: FIRST, lastNumber: 0, heir: SECOND });
  await apply({ type: "prepare_objects", randoms: [RANDOM, RANDOM, RANDOM, RANDOM], expiresAtMs: 1 });
  await apply({ type: "commit", wal: SECOND, from: 0, to: 1, objects: [summaryOf(2)], closedStreams: [] });
  await apply({ type: "destroy_objects", objectIds: [3, 4] });
  await apply({ type: "remove_objects", objectIds: [4] });
  return metadata;
}

function summaryOf(objectId: number) {
  const place = { streamId: 1, offset: 0 };
  return { objectId, level: 0, sizeBytes: 100, streamCount: 1, recordCount: 1, first: place, last: place };
}

function segmentKey({ nodeId, nodeEpoch }: RegistrationName, number = 1): string {
  return `c/wal/${nodeId}/${nodeEpoch}/${String(number).padStart(16, "0")}`;
}

describe.each([
  ["a prepared object", `c/data/${RANDOM}/1`, 5, { kind: "known" }],
  ["a live object", `c/data/${RANDOM}/2`, 5, { kind: "live" }],
  ["a destroyed object", `c/data/${RANDOM}/3`, 5, { kind: "known" }],
  ["a removed object, whose write came late", `c/data/${RANDOM}/4`, 5, { kind: "orphan", reason: "removed_object" }],
  ["an id that was never given out", `c/data/${RANDOM}/5`, 5, { kind: "unexplained", reason: "unknown_object" }],
  ["a live id with another random part", "c/data/ffffffffffffffff/2", 5, { kind: "unexplained", reason: "unknown_object" }],
  ["an id with a zero before it", `c/data/${RANDOM}/02`, 5, { kind: "unexplained", reason: "unknown_kind" }],
  ["no object's name", "c/data/notes.txt", 5, { kind: "unexplained", reason: "unknown_kind" }],
  ["a segment of the present life", segmentKey(SECOND), SEGMENT_BYTES, { kind: "known" }],
  ["a segment of an ended life", segmentKey(FIRST), SEGMENT_BYTES, { kind: "orphan", reason: "ended_wal" }],
  ["a tombstone of an ended life", segmentKey(FIRST, 2), TOMBSTONE_BYTES, { kind: "known" }],
  [
    "a segment of a later life",
    segmentKey({ nodeId: 1, nodeEpoch: 12 }),
    SEGMENT_BYTES,
    { kind: "unexplained", reason: "unknown_registration" },
  ],
  [
    "a segment of another node",
    segmentKey({ nodeId: -7, nodeEpoch: 1 }),
    SEGMENT_BYTES,
    { kind: "unexplained", reason: "unknown_registration" },
  ],
  ["no segment's name", "c/wal/1/10/1", SEGMENT_BYTES, { kind: "unexplained", reason: "unknown_kind" }],
  ["a marker", "c/marker/0000000000000004", 5, { kind: "known" }],
  ["a part of the mirror", "c/mirror/log/1", 5, { kind: "known" }],
  ["a probe", "c/probe/1", 5, { kind: "known" }],
  ["a kind of a later program", "c/topics/1", 5, { kind: "unexplained", reason: "unknown_kind" }],
] as const)("%s", (_, key, sizeBytes, verdict) => {
  test(`is ${verdict.kind}`, async () => {
    expect(judgeKey("c", key, sizeBytes, (await makeMetadata()).view)).toMatchObject(verdict);
  });
});

test("ids that were skipped by a restore count as given out", async () => {
  const metadata = await makeMetadata();
  await metadata.propose({ type: "raise_ids", nextStreamId: 1, nextObjectId: 100 }).outcome;
  expect(judgeKey("c", `c/data/${RANDOM}/99`, 5, metadata.view)).toMatchObject({ kind: "orphan" });
  expect(judgeKey("c", `c/data/${RANDOM}/100`, 5, metadata.view)).toMatchObject({ kind: "unexplained" });
});
