/**
 * Conditional creates. Each call gives its object a mark of its own (`x-amz-meta-pico-create`), so that "the key is
 * taken" can be told from "by my own earlier attempt": an attempt may lose its answer, and `fetch` repeats a request by
 * itself where a kept connection has just been closed (FAULTS S3).
 */
import { equalBytes } from "../lib/bytes.ts";
import { PicoError } from "../lib/errors.ts";
import { type Random, randomHex } from "../lib/random.ts";
import type { S3Calls } from "./s3-calls.ts";
import type { S3Connection } from "./s3-connection.ts";
import { badAnswer } from "./s3-failure.ts";
import { readWhole } from "./s3-read.ts";
import { hashBody } from "./s3-sha256.ts";

const MARK_HEADER = "x-amz-meta-pico-create";

/** `storeKey` is `key` with the prefix. Throws `storage_failed`, `storage_full`, `unknown_outcome`. */
export async function createObject(
  { calls, connection, random }: { readonly calls: S3Calls; readonly connection: S3Connection; readonly random: Random },
  key: string,
  storeKey: string,
  bytes: Uint8Array,
): Promise<"created" | "exists"> {
  const mark = randomHex(random, 16);
  const bodySha256 = await hashBody(bytes);
  const headers = {
    "if-none-match": "*",
    "content-type": "application/octet-stream",
    [MARK_HEADER]: mark,
    ...encryptionHeaders(connection),
  };
  const call = { operation: "create", key, isWrite: true, bytes: bytes.length };
  const outcome = await calls.run(call, async (signal): Promise<"created" | "taken"> => {
    const answer = await connection.request({ method: "PUT", key: storeKey, headers, body: bytes, bodySha256, signal }, [200, 201, 412]);
    if (answer.status === 412) return "taken";
    if (answer.body.length > 0 && new TextDecoder().decode(answer.body).includes("<Error")) {
      throw badAnswer(answer.status, `the store answered ${answer.status} with an error inside`);
    }
    if (answer.headers.get("etag") === null)
      throw badAnswer(answer.status, `the store answered ${answer.status} and did not name what it stored`);
    return "created";
  });
  if (outcome === "created") return outcome;

  try {
    const found = await calls.run({ operation: "create", key, isWrite: false, bytes: 0 }, async (signal) => {
      const { status, headers } = await connection.request({ method: "HEAD", key: storeKey, signal }, [200, 404]);
      return status === 404 ? null : { mark: headers.get(MARK_HEADER) };
    });
    if (found === null) throw new Error("the key was taken a moment ago, and nothing is there now");
    if (found.mark === mark) return "created";
    // What has a mark is another's. Where the store kept none, only the bytes can tell; always, since what `fetch` repeated
    // by itself is nothing that we were told of.
    if (found.mark !== null) return "exists";
    const stored = await readWhole({ calls, connection }, key, storeKey, bytes.length);
    if (stored === null) throw new Error("the key was taken a moment ago, and nothing is there now");
    return equalBytes(stored, bytes) ? "created" : "exists";
  } catch (error) {
    throw new PicoError(
      "unknown_outcome",
      `create at ${connection.describeKey(key)} was refused since the key is taken, and whose object it is could not be found out: ${error instanceof Error ? error.message : String(error)}`,
      { operation: "create", bucket: connection.place.bucket, key },
      error,
    );
  }
}

function encryptionHeaders({ place: { encryption } }: S3Connection): Readonly<Record<string, string>> {
  if (encryption === null) return {};
  const { algorithm, kmsKeyId } = encryption;
  return {
    "x-amz-server-side-encryption": algorithm,
    ...(kmsKeyId === null ? {} : { "x-amz-server-side-encryption-aws-kms-key-id": kmsKeyId }),
  };
}
