/**
 * Reads of objects and ranges. An answer counts only if its length is what the store announced (one that goes on beyond
 * what can be stored is not read to its end), and a 404 only if it says that the key is absent: a missing bucket or a
 * gateway that knows no path is no absence (FAULTS S4).
 */
import { clipRange } from "./object-key.ts";
import type { Receiving, S3Calls } from "./s3-calls.ts";
import type { ObjectAnswer, S3Connection } from "./s3-connection.ts";
import { badAnswer, isRefusedAs } from "./s3-failure.ts";

interface Channel {
  readonly calls: S3Calls;
  readonly connection: S3Connection;
}

interface Range {
  readonly start: number;
  readonly end: number;
}

/**
 * Null where the key is absent. `bytesExpected`: about what will come, for a time-out that is known beforehand; with null the time is
 * that of the size which the store announces, for as long as bytes go on coming.
 */
export function readWhole(channel: Channel, key: string, storeKey: string, bytesExpected: number | null): Promise<Uint8Array | null> {
  return channel.calls.run({ operation: "read", key, isWrite: false, bytes: bytesExpected ?? 0 }, async (signal, _, receiving) => {
    const watch = bytesExpected === null ? { signal, receiving } : { signal };
    const answer = await get(channel.connection, storeKey, {}, [200], watch);
    return answer === null ? null : wholeBody(answer);
  });
}

/** The bytes of a range that is not empty, clipped to the object; null where the key is absent. */
export function readRange(channel: Channel, key: string, storeKey: string, range: Range): Promise<Uint8Array | null> {
  const call = { operation: "read", key, isWrite: false, bytes: range.end - range.start };
  return channel.calls.run(call, async (signal, _, receiving) => {
    const headers = { range: `bytes=${range.start}-${range.end - 1}` };
    const watch = { signal, receiving, partBytesMax: range.end - range.start };
    const answer = await get(channel.connection, storeKey, headers, [200, 206, 416], watch);
    if (answer === null) return null;
    if (answer.status === 416) return new Uint8Array(0);
    if (answer.status === 206) return rangeBody(answer, range);
    // Whoever ignores ranges answers with everything.
    const whole = wholeBody(answer);
    const { start, end } = clipRange(range, whole.length);
    return whole.slice(start, end);
  });
}

/** Size in bytes; null where the key is absent. Asked by a read of one byte: the answer to a HEAD cannot say what is absent. */
export function readSize(channel: Channel, key: string, storeKey: string): Promise<number | null> {
  return channel.calls.run({ operation: "size", key, isWrite: false, bytes: 0 }, async (signal) => {
    const answer = await get(channel.connection, storeKey, { range: "bytes=0-0" }, [200, 206, 416], { signal, partBytesMax: 1 });
    if (answer === null) return null;
    if (answer.status === 200) return wholeBody(answer).length;
    // Only an empty object has no first byte.
    if (answer.status === 416) return 0;
    rangeBody(answer, { start: 0, end: 1 });
    return totalOf(answer);
  });
}

async function get(
  connection: S3Connection,
  key: string,
  headers: Readonly<Record<string, string>>,
  expected: readonly number[],
  watch: { readonly signal: AbortSignal; readonly receiving?: Receiving; readonly partBytesMax?: number },
): Promise<ObjectAnswer | null> {
  try {
    const answer = await connection.request({ method: "GET", key, headers, ...watch }, expected);
    // An empty answer of something that is no store would pass for an empty object.
    if (answer.status !== 416 && answer.headers.get("etag") === null)
      throw badAnswer(answer.status, "the answer does not name what it has");
    return answer;
  } catch (error) {
    if (isRefusedAs(error, "NoSuchKey") && error.failure.status === 404) return null;
    throw error;
  }
}

function wholeBody(answer: ObjectAnswer): Uint8Array {
  const announced = answer.headers.get("content-length");
  if (announced === null) throw badAnswer(answer.status, "the answer does not say how long the object is");
  if (Number(announced) !== answer.body.length) throw cutOff(answer, Number(announced));
  assertNoErrorInside(answer);
  return answer.body;
}

function rangeBody(answer: ObjectAnswer, range: Range): Uint8Array {
  const form = /^bytes (\d+)-(\d+)\/(\d+)$/.exec(answer.headers.get("content-range") ?? "");
  const [start, last, total] = (form ?? []).slice(1).map(Number);
  if (start === undefined || last === undefined || total === undefined)
    throw badAnswer(answer.status, "the answer does not say which range it has");
  const end = Math.min(range.end, total);
  if (start !== range.start || last !== end - 1) {
    throw badAnswer(
      answer.status,
      `bytes ${start} to ${last} of ${total} were answered to a request for ${range.start} to ${range.end - 1}`,
    );
  }
  if (answer.body.length !== end - start) throw cutOff(answer, end - start);
  return answer.body;
}

function totalOf({ headers }: ObjectAnswer): number {
  return Number(headers.get("content-range")?.split("/")[1]);
}

/** Our objects are of a type of their own, and none begins like a document. */
function assertNoErrorInside({ status, headers, body }: ObjectAnswer): void {
  if (!/\bxml\b/.test(headers.get("content-type") ?? "")) return;
  const text = new TextDecoder().decode(body.subarray(0, 200));
  if (/^\s*(<\?xml[^>]*>\s*)?<Error[\s>]/.test(text)) throw badAnswer(status, `the store answered ${status} with an error inside`);
}

function cutOff({ status, body }: ObjectAnswer, expected: number) {
  return badAnswer(status, `${body.length} bytes came of ${expected}`);
}
