/** The verification of a data object: nothing of it goes unlooked at. */
import { expect, test } from "bun:test";
import { verifyObject } from "../../src/engine/scrub-object.ts";
import { isPicoError } from "../../src/lib/errors.ts";
import { OBJECT_HEAD_READ_BYTES, SCRUB_READ_BYTES } from "../../src/lib/limits.ts";
import { codeOf } from "../support/code-of.ts";
import { buildObjects, CLUSTER_ID, namedStream } from "./data-object-fixtures.ts";

const KEY = "cluster0/data/0123456789abcdef/1";

function verify(bytes: Uint8Array, reads: [number, number][] = []): Promise<void> {
  return verifyObject(KEY, { clusterId: CLUSTER_ID, objectId: 1, sizeBytes: bytes.length }, async (start, end) => {
    reads.push([start, end]);
    return bytes.slice(start, end);
  });
}

/** Many streams, blocks and leaves in few bytes. */
function smallObject(level = 0): Uint8Array {
  const streams = [1, 2, 5, 9].map((streamId) => namedStream(streamId, 3, 12, 20));
  const [object] = buildObjects(streams, { level, blockBytesTarget: 200, leafBytes: 128 });
  return object?.bytes ?? new Uint8Array();
}

test("a whole object passes, of level 0 and above", async () => {
  for (const level of [0, 1]) await verify(smallObject(level));
});

test("any flipped bit is found, and the object is named", async () => {
  const whole = smallObject();
  for (let at = 0; at < whole.length; at++) {
    const bytes = whole.slice();
    bytes[at] = (bytes[at] ?? 0) ^ (1 << (at % 8));
    const error = await verify(bytes).catch((thrown: unknown) => thrown);
    expect([at, isPicoError(error, "corrupt"), String(error).includes(KEY)]).toEqual([at, true, true]);
  }
});

test("another object, and one that is cut, are found", async () => {
  const whole = smallObject();
  const other = { clusterId: CLUSTER_ID, objectId: 2, sizeBytes: whole.length };
  expect(await codeOf(() => verifyObject(KEY, other, async (start, end) => whole.slice(start, end)))).toBe("corrupt");
  expect(await codeOf(() => verify(whole.slice(0, -1)))).toBe("corrupt");
});

test("a large object is read once, in a bounded number of bounded parts", async () => {
  const [object] = buildObjects([namedStream(1, 0, 300, 40_000)]);
  const bytes = object?.bytes ?? new Uint8Array();
  const reads: [number, number][] = [];
  await verify(bytes, reads);
  const lengths = reads.map(([start, end]) => end - start);
  expect(bytes.length).toBeGreaterThan(SCRUB_READ_BYTES * 2);
  expect(Math.max(...lengths)).toBeLessThanOrEqual(SCRUB_READ_BYTES);
  expect(lengths.reduce((sum, length) => sum + length, 0)).toBeLessThan(bytes.length + OBJECT_HEAD_READ_BYTES);
  expect(reads.length).toBeLessThan(12);
});
