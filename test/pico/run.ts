/**
 * Runs the Pico suite against the real server process, or against `PICO_URL` (and `PICO_DS_URL`, the
 * Durable Streams listener of the same node). A foreign server's settings are told by `PICO_LONG_POLL_SEC`,
 * `PICO_SSE_SEC` and `PICO_REQUEST_BYTES`.
 *
 *   bun test/pico/run.ts [--minio | --postgres]
 *
 * `--minio`: storage and WAL of the server are in a bucket of a real MinIO; `--postgres`: metadata and WAL in a real Postgres.
 */

import { isMinioThere, startMinio } from "../../scripts/minio.ts";
import { isPostgresThere, startPostgres } from "../../scripts/postgres.ts";
import { closeWithoutMinio } from "../support/minio-suite.ts";
import { closeWithoutPostgres } from "../support/postgres-suite.ts";
import { closeSuite } from "../support/test-report.ts";
import { appendCases } from "./cases/append-cases.ts";
import { commonCases } from "./cases/common-cases.ts";
import { createCases } from "./cases/create-cases.ts";
import { edgeCases } from "./cases/edge-cases.ts";
import { liveCases } from "./cases/live-cases.ts";
import { producerCases } from "./cases/producer-cases.ts";
import { protocolsCases } from "./cases/protocols-cases.ts";
import { readCases } from "./cases/read-cases.ts";
import { streamCases } from "./cases/stream-cases.ts";
import { workedCases } from "./cases/worked-cases.ts";
import { startServer } from "./server-process.ts";
import { runSuite, type SuiteResult, type Target } from "./suite.ts";

const CASES = [
  ...commonCases,
  ...edgeCases,
  ...createCases,
  ...appendCases,
  ...producerCases,
  ...readCases,
  ...liveCases,
  ...streamCases,
  ...protocolsCases,
  ...workedCases,
];

/** Short waits and a small body limit, so that reaching them is quick. */
const LONG_POLL_SECONDS = 2;
const SSE_SECONDS = 3;
const REQUEST_BYTES = 1024 * 1024;
const PAGE_BYTES = 64 * 1024;

process.exit(await main());

async function main(): Promise<number> {
  if (process.env.PICO_URL !== undefined) return close(await runSuite(foreignTarget(process.env.PICO_URL), CASES));
  if (process.argv.includes("--minio")) return runOnMinio();
  if (process.argv.includes("--postgres")) return runOnPostgres();
  return close(await runOwnServer([]));
}

async function runOnMinio(): Promise<number> {
  if (!isMinioThere()) return closeWithoutMinio();
  const minio = await startMinio();
  try {
    return close(await runOwnServer(["--storage", minio.uri()], minio.environment));
  } finally {
    await minio.stop();
  }
}

async function runOnPostgres(): Promise<number> {
  if (!isPostgresThere()) return closeWithoutPostgres();
  const database = await startPostgres();
  try {
    return close(await runOwnServer(["--meta-url", database.url(), "--wal", database.url()]));
  } finally {
    await database.stop();
  }
}

function close({ passed, failed, skipped }: SuiteResult): number {
  return closeSuite(passed, failed, skipped);
}

/** `places`: flags of where the node keeps its state. */
async function runOwnServer(places: readonly string[], environment: Readonly<Record<string, string>> = {}): Promise<SuiteResult> {
  const server = await startServer(
    [
      ...["--long-poll-timeout-sec", String(LONG_POLL_SECONDS)],
      ...["--sse-max-duration-sec", String(SSE_SECONDS)],
      ...["--max-request-size", String(REQUEST_BYTES)],
      ...places,
    ],
    environment,
  );
  const result = await runSuite(
    {
      picoUrl: server.picoUrl,
      durableStreamsUrl: server.durableStreamsUrl,
      longPollSeconds: LONG_POLL_SECONDS,
      sseSeconds: SSE_SECONDS,
      requestBytesMax: REQUEST_BYTES,
      pageBytes: PAGE_BYTES,
    },
    CASES,
  );
  const exitCode = await server.stop();
  if (exitCode === 0) return result;
  console.log(`failed: the server's graceful stop ended with exit code ${exitCode}`);
  return { ...result, failed: result.failed + 1 };
}

function foreignTarget(picoUrl: string): Target {
  return {
    picoUrl,
    durableStreamsUrl: process.env.PICO_DS_URL ?? null,
    longPollSeconds: Number(process.env.PICO_LONG_POLL_SEC ?? 25),
    sseSeconds: Number(process.env.PICO_SSE_SEC ?? 55),
    requestBytesMax: Number(process.env.PICO_REQUEST_BYTES ?? 32 * 1024 * 1024),
    pageBytes: PAGE_BYTES,
  };
}
