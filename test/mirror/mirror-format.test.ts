/** The bytes that the objects of the mirror have for ever. */
import { expect, test } from "bun:test";
import { decodeLogChunk, encodeLogChunk } from "../../src/mirror/log-chunk.ts";
import { logKey, manifestKey, parseLogKey, parseSnapshotKey, partKey } from "../../src/mirror/mirror-object.ts";
import {
  decodeSnapshotManifest,
  decodeSnapshotPart,
  encodeSnapshotManifest,
  encodeSnapshotPart,
} from "../../src/mirror/mirrored-snapshot.ts";
import { codeOf } from "../support/code-of.ts";

const cluster = { clusterId: "c", clusterIdentity: "0123456789abcdef0123456789abcdef" };
const rows = [7, 8].map((index) => ({
  index,
  atMs: 300 + index,
  rowId: "ab".repeat(15) + index.toString(16).padStart(2, "0"),
  proposer: { nodeId: -7, nodeEpoch: 300 },
  batch: index,
  payload: Uint8Array.of(1, 2, index),
}));
const chunk = { rows, unbrokenFrom: 5 };
const part = [{ key: "s1", value: Uint8Array.of(9) }];
const manifest = {
  head: { index: 8, rowId: "cd".repeat(16), rowCount: 1, rowSum: 2n ** 64n - 1n },
  parts: [{ bytes: 300, checksum: 1n }],
};
const golden: readonly (readonly [string, Uint8Array, string, (bytes: Uint8Array) => unknown])[] = [
  [
    "log chunk",
    encodeLogChunk(cluster, chunk),
    "ce494570c74c73ee50494358000101000123456789abcdef0123456789abcdef01630000000000000007000000000000000502b302ababababababababababababababab07fffffff9ac020703010207b402ababababababababababababababab08fffffff9ac020803010208",
    (bytes) => decodeLogChunk(bytes, "c", 7),
  ],
  [
    "snapshot part",
    encodeSnapshotPart(cluster, 8, 3, part),
    "0da1eb72fdc98b1550494358000102000123456789abcdef0123456789abcdef0163000000000000000803010273310109",
    (bytes) => decodeSnapshotPart(bytes, "c", 8, 3),
  ],
  [
    "snapshot manifest",
    encodeSnapshotManifest(cluster, manifest),
    "6c60af2f02b0b43850494358000103000123456789abcdef0123456789abcdef01630000000000000008cdcdcdcdcdcdcdcdcdcdcdcdcdcdcdcd01ffffffffffffffff01ac020000000000000001",
    (bytes) => decodeSnapshotManifest(bytes, "c", 8),
  ],
];

test("objects of the mirror come back as they were", () => {
  expect(decodeLogChunk(encodeLogChunk(cluster, chunk), "c", 7)).toEqual({ ...chunk, clusterIdentity: cluster.clusterIdentity });
  expect(decodeSnapshotPart(encodeSnapshotPart(cluster, 8, 3, part), "c", 8, 3)).toEqual(part);
  const decoded = decodeSnapshotManifest(encodeSnapshotManifest(cluster, manifest), "c", 8);
  expect(decoded).toEqual({ ...manifest, clusterIdentity: cluster.clusterIdentity });
});

for (const [what, bytes, hex, decode] of golden) {
  test(`a ${what} has its permanent bytes`, () => {
    expect(bytes.toHex()).toBe(hex);
  });

  test(`any flipped bit of a ${what}, and any cut, is corrupt`, async () => {
    for (let bit = 0; bit < bytes.length * 8; bit++) {
      const damaged = bytes.slice();
      damaged[bit >> 3] = (damaged[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      expect(await codeOf(() => decode(damaged))).toBe("corrupt");
    }
    for (let length = 0; length < bytes.length; length++) expect(await codeOf(() => decode(bytes.slice(0, length)))).toBe("corrupt");
  });
}

test("an object under another key, of another kind or cluster is corrupt", async () => {
  const bytes = encodeLogChunk(cluster, chunk);
  for (const first of [6, 8]) expect(await codeOf(() => decodeLogChunk(bytes, "c", first))).toBe("corrupt");
  expect(await codeOf(() => decodeLogChunk(bytes, "d", 7))).toBe("corrupt");
  expect(await codeOf(() => decodeSnapshotPart(bytes, "c", 7, 0))).toBe("corrupt");
  expect(await codeOf(() => decodeSnapshotPart(encodeSnapshotPart(cluster, 8, 3, part), "c", 8, 2))).toBe("corrupt");
});

test("keys sort as indexes do, and only our own are read", () => {
  expect(logKey("c", 12)).toBe("c/mirror/log/0000000000000012");
  expect(logKey("c", 12, 2)).toBe("c/mirror/log/0000000000000012.2");
  expect(partKey("c", 12, 3)).toBe("c/mirror/snapshot/0000000000000012/000003");
  expect(manifestKey("c", 12)).toBe("c/mirror/snapshot/0000000000000012/manifest");
  expect(parseLogKey("c", logKey("c", 12, 2))).toEqual({ first: 12, repair: 2 });
  expect(parseLogKey("c", "c/mirror/log/12")).toBeNull();
  expect(parseSnapshotKey("c", manifestKey("c", 12))).toEqual({ index: 12, isManifest: true });
  expect(parseSnapshotKey("c", partKey("c", 12, 3))).toEqual({ index: 12, isManifest: false });
  expect(parseSnapshotKey("c", "c/mirror/snapshot/0000000000000012/other")).toBeNull();
});
