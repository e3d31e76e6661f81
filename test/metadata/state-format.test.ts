import { expect, test } from "bun:test";
import { isPicoError } from "../../src/lib/errors.ts";
import { decodeRow, encodeRowValue, type StateRow } from "../../src/metadata/state-format.ts";
import { rowChecksum } from "../../src/metadata/state-hash.ts";

const owner = { nodeId: -7, nodeEpoch: 300 };

/** One of each kind with the key and bytes that it has for ever (row version first). */
const golden: readonly (readonly [string, StateRow, string])[] = [
  [
    "c",
    {
      kind: "counters",
      entry: { nextStreamId: 300, nextObjectId: 2, commandVersion: 1, appliedAtMs: 128, removalHeldUntilMs: null },
    },
    "01ac0202018001",
  ],
  [
    "c",
    {
      kind: "counters",
      entry: { nextStreamId: 300, nextObjectId: 2, commandVersion: 2, appliedAtMs: 128, removalHeldUntilMs: 129 },
    },
    "02ac02020280 01018101".replaceAll(" ", ""),
  ],
  ["n-7", { kind: "node", entry: { nodeId: -7, lastEpoch: 300, slots: 4, isRemoved: true } }, "01ac020401"],
  [
    "r-7@300",
    {
      kind: "registration",
      entry: {
        name: owner,
        state: "ended",
        addresses: { pico: "p", durableStreams: null, admin: null },
        wal: { kind: "local", description: "w" },
        slots: 4,
        failoverTimeoutMs: 128,
        commandVersion: 1,
        registeredAtMs: 5,
        committedNumber: 6,
        fencedNumber: 3,
        endedAtMs: 9,
        streamIdBlocks: [1, 300],
        heir: { nodeId: 2, nodeEpoch: 1 },
        lastBatch: 7,
        lastOutcomes: [
          { applied: true, facts: { streamId: 1 } },
          { applied: false, code: "batch_order", facts: {} },
        ],
      },
    },
    "01030101700000010177048001010506010301090201ac020100000002010702000108 73747265616d4964011800".replaceAll(" ", ""),
  ],
  [
    "s1048577",
    {
      kind: "stream",
      entry: {
        streamId: 1_048_577,
        name: "é",
        settings: { contentType: "t", ttlSeconds: 255n, expiresAtMs: null },
        createdAtMs: 1,
        streamEpoch: 2,
        owner,
        deadlineMs: 128,
        startOffset: 3,
        isClosed: true,
        fork: { sourceId: 4, sourceName: "s", offset: 5, requestedOffset: 6, requestedSubOffset: 7 },
        forkCount: 1,
        isDeleted: false,
        transfer: { toNodeId: 3, deadlineMs: 9 },
      },
    },
    "0102c3a901740100000000000000ff00010201fffffff9ac0201800103010104017305010607010001 0000000309".replaceAll(" ", ""),
  ],
  [
    "o9",
    {
      kind: "object",
      entry: {
        objectId: 9,
        random: "00ff",
        state: "destroyed",
        preparedBy: owner,
        preparedUntilMs: 1,
        summary: {
          objectId: 9,
          level: 1,
          sizeBytes: 2,
          streamCount: 3,
          recordCount: 4,
          first: { streamId: 5, offset: 6 },
          last: { streamId: 7, offset: 8 },
        },
        liveIndex: 10,
        destroyedIndex: 11,
        destroyedAtMs: 12,
      },
    },
    "01043030666603fffffff9ac0201010901020304050607 08010a010b010c".replaceAll(" ", ""),
  ],
];

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return isPicoError(error) ? error.code : "another error";
  }
  return "none";
}

for (const [key, row, bytes] of golden) {
  test(`a ${row.kind} row has its permanent bytes and comes back as it was`, () => {
    const value = encodeRowValue(row);
    expect(value.toHex()).toBe(bytes);
    expect(decodeRow(key, value)).toEqual(row);
  });

  test(`a ${row.kind} row cut short anywhere is corrupt`, () => {
    const value = encodeRowValue(row);
    for (let length = 0; length < value.length; length++) expect(codeOf(() => decodeRow(key, value.slice(0, length)))).toBe("corrupt");
  });

  test(`a ${row.kind} row of a newer version is incompatible`, () => {
    const value = encodeRowValue(row);
    value[0] = row.kind === "counters" ? 3 : 2;
    expect(codeOf(() => decodeRow(key, value))).toBe("incompatible");
  });
}

test("each state of a registration and of an object has its permanent number", () => {
  const expectRow = (key: string, row: StateRow, bytes: string, at: number, number: number) => {
    const value = Uint8Array.fromHex(bytes);
    value[at] = number;
    expect(encodeRowValue(row).toHex()).toBe(value.toHex());
    expect(decodeRow(key, value)).toEqual(row);
  };
  let rows = 0;
  for (const [key, row, bytes] of golden) {
    if (row.kind === "registration") {
      for (const [at, state] of (["live", "fenced", "ended"] as const).entries()) {
        expectRow(key, { kind: row.kind, entry: { ...row.entry, state } }, bytes, 1, at + 1);
        rows += 1;
      }
    } else if (row.kind === "object") {
      for (const [at, state] of (["prepared", "live", "destroyed"] as const).entries()) {
        expectRow(key, { kind: row.kind, entry: { ...row.entry, state } }, bytes, 6, at + 1);
        rows += 1;
      }
    }
  }
  expect(rows).toBe(6);
});

test("a row of an unknown kind is incompatible", () => {
  for (const key of ["", "x1", "s", "sx", "r1", "c1", "s1 "])
    expect(codeOf(() => decodeRow(key, new Uint8Array([1])))).toBe("incompatible");
});

test("the checksum of a row covers its key and has its permanent value", () => {
  expect(rowChecksum("c", new Uint8Array([1])).toString(16)).toBe("4990f5d3cd9dbc37");
  expect(rowChecksum("c", new Uint8Array([1]))).not.toBe(rowChecksum("d", new Uint8Array([1])));
});
