/**
 * The size of the bucket follows what is live in it: a real node on a real MinIO is given streams, most of which are
 * then deleted and half of the rest trimmed.
 *
 *   bun test/store-faults/store-size.ts [--mib 2048] [--streams 10000]
 *
 * Compaction works by itself; it is over once the bucket has not changed for a while. Then the bucket holds at most
 * `SHARE_MAX` of the bytes that readers still get, and these are what was written.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ListObjectsV2Command, type S3Client } from "@aws-sdk/client-s3";
import { isMinioThere, MINIO_BUCKET, startMinio } from "../../scripts/minio.ts";
import { HttpConnection } from "../cluster/http-connection.ts";
import { EXECUTABLE, freePorts, NodeProcess } from "../cluster/node-process.ts";
import { closeWithoutMinio } from "../support/minio-suite.ts";
import { SuiteVerdicts } from "../support/test-report.ts";

const CLUSTER = "size";
const SHARE_MAX = 1.3;
const CLIENTS = 32;
const DELETED_SHARE = 0.9;
/** Destroyed objects stay a minute, and leave in rounds. */
const QUIET_MS = 100_000;
const SETTLE_MS_MAX = 20 * 60_000;
const LOOK_MS = 2000;
const ROUNDS = 8;

const { values } = parseArgs({ options: { mib: { type: "string", default: "2048" }, streams: { type: "string", default: "10000" } } });
const streams = Number(values.streams);
const recordBytes = Math.floor((Number(values.mib) * 2 ** 20) / streams / ROUNDS);

process.exit(isMinioThere() ? await main() : closeWithoutMinio());

async function main(): Promise<number> {
  const minio = await startMinio();
  Object.assign(process.env, minio.environment);
  const folder = mkdtempSync(join(tmpdir(), "pico-size-"));
  const ports = await freePorts();
  const flags = ["--storage", minio.uri(), "--cluster-id", CLUSTER];
  const options = { program: EXECUTABLE, ports, dataDirectory: join(folder, "data"), logPath: join(folder, "log"), flags };
  const client = minio.client();
  let node: NodeProcess | null = null;
  const verdicts = new SuiteVerdicts();
  try {
    node = await NodeProcess.start(options);
    await each(node, streams, (connection, at) => send(connection, "PUT", path(at), 201));
    for (let round = 0; round < ROUNDS; round++) {
      await each(node, streams, (connection, at) => send(connection, "POST", path(at), 200, recordOf(at, round)));
    }
    const full = await bucketBytes(client);
    console.log(`${streams} streams of ${ROUNDS} records of ${recordBytes} bytes written; data objects hold ${mib(full)} MiB so far`);
    await each(node, streams, (connection, at) => (isDeleted(at) ? send(connection, "DELETE", path(at), 204) : Promise.resolve()));
    await each(node, streams, (connection, at) => (isTrimmed(at) ? trim(connection, at) : Promise.resolve()));
    await node.stop();
    node = await NodeProcess.start(options);
    const live = Array.from({ length: streams }, (_, at) => (ROUNDS - firstKept(at)) * recordBytes).reduce((sum, bytes) => sum + bytes, 0);
    const startedMs = performance.now();
    const size = await settledBytes(client);
    const seconds = Math.round((performance.now() - startedMs - QUIET_MS) / 1000);
    console.log(`${mib(size)} MiB of data objects for ${mib(live)} MiB that are live: ${(size / live).toFixed(2)}, after ${seconds} s`);
    verdicts.judge("the size of the data objects", size <= live * SHARE_MAX ? [] : [`more than ${SHARE_MAX} times what is live`]);
    let wrong = 0;
    await each(node, streams, async (connection, at) => {
      if (!(await isWhole(connection, at))) wrong += 1;
    });
    verdicts.judge("each stream reads as it should", wrong === 0 ? [] : [`except ${wrong} of ${streams}`]);
    const exitCode = await node.stop();
    verdicts.judge("a graceful stop", exitCode === 0 ? [] : [`the exit code was ${exitCode}: ${node.lastWords()}`]);
  } catch (error) {
    verdicts.judge("the run", [error instanceof Error ? error.message : String(error)]);
  } finally {
    await node?.kill();
    client.destroy();
    await minio.stop();
    rmSync(folder, { recursive: true, force: true });
  }
  return verdicts.close();
}

function path(at: number): string {
  return `/size/${at}`;
}

function isDeleted(at: number): boolean {
  return at % 10 < DELETED_SHARE * 10;
}

/** Of those that stay each second one loses its first half. */
function isTrimmed(at: number): boolean {
  return !isDeleted(at) && Math.floor(at / 10) % 2 === 0;
}

function firstKept(at: number): number {
  return isDeleted(at) ? ROUNDS : isTrimmed(at) ? ROUNDS / 2 : 0;
}

/** Told from every other, and not to be compressed by anybody. */
function recordOf(at: number, round: number): string {
  return `${at}.${round};`.padEnd(recordBytes, `${(at * 7919 + round * 104_729) % 999_983}`);
}

async function trim(connection: HttpConnection, at: number): Promise<void> {
  const answer = await connection.request({ method: "POST", path: path(at), headers: { "pico-trim-seq": String(ROUNDS / 2) } });
  if (answer?.status !== 200) throw new Error(`trimming ${path(at)}: ${answer?.status}`);
}

async function isWhole(connection: HttpConnection, at: number): Promise<boolean> {
  const from = firstKept(at);
  const answer = await connection.request({ method: "GET", path: `${path(at)}?seq=${from}&bytes=4000000&format=raw` });
  if (isDeleted(at)) return answer?.status === 404;
  const expected = Array.from({ length: ROUNDS - from }, (_, index) => recordOf(at, from + index)).join("");
  return answer?.status === 200 && answer.body.toString() === expected;
}

async function send(connection: HttpConnection, method: "PUT" | "POST" | "DELETE", name: string, status: number, body = ""): Promise<void> {
  for (;;) {
    const answer = await connection.request({ method, path: name, headers: { "content-type": "text/plain" }, body });
    if (answer?.status === status) return;
    if (answer?.status !== 503) throw new Error(`${method} ${name}: ${answer?.status} ${answer?.body}`);
    await Bun.sleep(100);
  }
}

async function each(node: NodeProcess, count: number, work: (connection: HttpConnection, at: number) => Promise<void>): Promise<void> {
  let next = 0;
  await Promise.all(
    Array.from({ length: CLIENTS }, async () => {
      const connection = new HttpConnection(node.ports.pico);
      while (next < count) await work(connection, next++);
      connection.close();
    }),
  );
}

/** Of the data objects, once they have not changed for a while. */
async function settledBytes(client: S3Client): Promise<number> {
  const limitMs = performance.now() + SETTLE_MS_MAX;
  let bytes = await bucketBytes(client);
  let sinceMs = performance.now();
  while (performance.now() - sinceMs < QUIET_MS) {
    if (performance.now() > limitMs) throw new Error(`the bucket still changes after ${SETTLE_MS_MAX} ms`);
    await Bun.sleep(LOOK_MS);
    const now = await bucketBytes(client);
    if (now !== bytes) sinceMs = performance.now();
    bytes = now;
  }
  return bytes;
}

async function bucketBytes(client: S3Client): Promise<number> {
  let bytes = 0;
  let token: string | undefined;
  do {
    const page = await client.send(
      new ListObjectsV2Command({ Bucket: MINIO_BUCKET, Prefix: `${CLUSTER}/data/`, ContinuationToken: token }),
    );
    for (const { Size } of page.Contents ?? []) bytes += Size ?? 0;
    token = page.NextContinuationToken;
  } while (token !== undefined);
  return bytes;
}

function mib(bytes: number): string {
  return (bytes / (1 << 20)).toFixed(1);
}
