import { expect, test } from "bun:test";
import { CHECKSUM_BYTES, checksum64 } from "../../src/lib/checksum.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import type { Command } from "../../src/metadata/command.ts";
import { decodeBatch, encodeBatch, encodeCommand } from "../../src/metadata/command-format.ts";

const node = { nodeId: -7, nodeEpoch: 1_760_000_000_000 };
const summary = {
  objectId: 9,
  level: 1,
  sizeBytes: 65_536,
  streamCount: 3,
  recordCount: 300,
  first: { streamId: 1, offset: 0 },
  last: { streamId: 2 ** 40, offset: 299 },
};

/** One of each type with the bytes that it has for ever (type number first). */
const golden: readonly (readonly [Command, string])[] = [
  [
    {
      type: "register",
      node,
      addresses: { pico: "http://a:1", durableStreams: null, admin: "http://a:2" },
      wal: { kind: "object", description: "s3://b" },
      slots: 8,
      failoverTimeoutMs: 5000,
      commandVersion: 1,
      replaces: 1_759_000_000_000,
    },
    "01fffffff98080b3c19c33010a687474703a2f2f613a3100010a687474703a2f2f613a32020673333a2f2f62088827010180ecc7e49833",
  ],
  [{ type: "fence", victim: node }, "02fffffff98080b3c19c33"],
  [{ type: "end", victim: node, lastNumber: 300, heir: { nodeId: 1, nodeEpoch: 2 } }, "03fffffff98080b3c19c33ac02010000000102"],
  [{ type: "resize", nodeId: 3, slots: 200 }, "0400000003c801"],
  [{ type: "remove_node", nodeId: 3 }, "0500000003"],
  [{ type: "reserve_ids" }, "06"],
  [{ type: "hold_removal", untilMs: 300 }, "0701ac02"],
  [{ type: "raise_ids", nextStreamId: 300, nextObjectId: 5 }, "08ac0205"],
  [
    {
      type: "create_stream",
      streamId: 2 ** 20 + 1,
      name: "chat/é",
      settings: { contentType: "text/plain", ttlSeconds: 2n ** 64n - 1n, expiresAtMs: null },
      isClosed: true,
      fork: { sourceId: 5, sourceName: "src", offset: 10, requestedOffset: null, requestedSubOffset: 4 },
    },
    "1081804007636861742fc3a90a746578742f706c61696e01ffffffffffffffff00010105037372630a0004",
  ],
  [{ type: "delete_stream", streamId: 1 }, "1101"],
  [{ type: "expire_stream", streamId: 1, deadlineMs: 128 }, "12018001"],
  [{ type: "trim_stream", streamId: 1, startOffset: 5 }, "130105"],
  [{ type: "acquire_stream", streamId: 1 }, "1401"],
  [{ type: "release_stream", streamId: 1, deadlineMs: 7, walNumber: 9 }, "1501010709"],
  [{ type: "store_deadlines", deadlines: [{ streamId: 1, deadlineMs: 2 }] }, "16010102"],
  [{ type: "start_transfer", streamId: 1, toNodeId: 2, deadlineMs: 3 }, "17010000000203"],
  [{ type: "finish_transfer", streamId: 1 }, "1801"],
  [{ type: "prepare_objects", randoms: ["00ff00ff00ff00ff"], expiresAtMs: 5 }, "2001103030666630306666303066663030666605"],
  [
    { type: "commit", wal: node, from: 1, to: 2, objects: [summary], closedStreams: [4] },
    "21fffffff98080b3c19c33010201090180800403ac020100808080808020ab020104",
  ],
  [{ type: "compact", inputs: [1, 2], outputs: [] }, "2202010200"],
  [{ type: "destroy_objects", objectIds: [1] }, "230101"],
  [{ type: "remove_objects", objectIds: [1] }, "240101"],
];

function payloadOf(commands: readonly Command[]): Uint8Array {
  return encodeBatch(commands.map(encodeCommand));
}

/** `bytes` with a checksum that fits, so that only the content is at fault. */
function sealed(bytes: readonly number[]): Uint8Array {
  const payload = new Uint8Array(bytes.length + CHECKSUM_BYTES);
  payload.set(bytes);
  new DataView(payload.buffer).setBigUint64(bytes.length, checksum64(payload.subarray(0, bytes.length)));
  return payload;
}

function codeOf(run: () => unknown): string {
  try {
    run();
  } catch (error) {
    return isPicoError(error) ? error.code : "another error";
  }
  return "none";
}

for (const [command, bytes] of golden) {
  test(`${command.type} has its permanent bytes`, () => {
    expect(encodeCommand(command).toHex()).toBe(bytes);
  });
}

test("every command of a batch comes back as it was", () => {
  const commands = golden.map(([command]) => command);
  expect(decodeBatch(payloadOf(commands), "row 1")).toEqual({ version: 2, commands });
});

test("a batch needs the version of its newest command, so that older programs read all others", () => {
  const hold: Command = { type: "hold_removal", untilMs: null };
  expect(decodeBatch(payloadOf([hold]), "row 1")).toEqual({ version: 2, commands: [hold] });
  const newer = new Set(["hold_removal", "raise_ids"]);
  for (const [command] of golden) expect(payloadOf([command])[0]).toBe(newer.has(command.type) ? 2 : 1);
});

test("a batch has its permanent frame", () => {
  expect(payloadOf([{ type: "reserve_ids" }]).toHex()).toMatch(/^010106[0-9a-f]{16}$/);
});

test("an unknown command type is incompatible, never skipped", () => {
  expect(codeOf(() => decodeBatch(sealed([1, 1, 255]), "row 1"))).toBe("incompatible");
});

test("a newer command version is incompatible", () => {
  expect(codeOf(() => decodeBatch(sealed([3, 0]), "row 1"))).toBe("incompatible");
});

test("any flipped bit of a batch is corrupt", () => {
  const payload = payloadOf(golden.map(([command]) => command));
  for (let bit = 0; bit < payload.length * 8; bit++) {
    const damaged = payload.slice();
    damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
    expect(codeOf(() => decodeBatch(damaged, "row 1"))).toBe("corrupt");
  }
});

test("a batch cut short anywhere is corrupt", () => {
  const payload = payloadOf(golden.map(([command]) => command));
  for (let length = 0; length < payload.length; length++) {
    expect(codeOf(() => decodeBatch(payload.slice(0, length), "row 1"))).toBe("corrupt");
  }
});

test("a list longer than its bytes is corrupt and takes no memory", () => {
  expect(codeOf(() => decodeBatch(sealed([1, 0xff, 0xff, 0xff, 0xff, 0x7f]), "row 1"))).toBe("corrupt");
});

test("bytes behind the last command are corrupt", () => {
  expect(codeOf(() => decodeBatch(sealed([1, 1, 6, 0]), "row 1"))).toBe("corrupt");
});
