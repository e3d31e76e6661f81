/**
 * Runs the public conformance suite of the Durable Streams protocol against the real server process, or
 * against `CONFORMANCE_URL`. The suite needs vitest under Node, so it is a child process; its JSON report
 * is counted here. Its option `subscriptions` stays off, which leaves its 6 subscription tests out: that
 * group is not offered. All others must have run and passed.
 *
 *   bun test/conformance/run.ts [--minio | --postgres]
 *
 * `--minio`: storage and WAL of the server are in a bucket of a real MinIO; `--postgres`: metadata and WAL in a real Postgres.
 */

import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { isMinioThere, type MinioServer, startMinio } from "../../scripts/minio.ts";
import { isPostgresThere, type PostgresServer, startPostgres } from "../../scripts/postgres.ts";
import { type ServerProcess, startServer } from "../pico/server-process.ts";
import { closeWithoutMinio } from "../support/minio-suite.ts";
import { closeWithoutPostgres } from "../support/postgres-suite.ts";
import { closeSuite } from "../support/test-report.ts";

const TESTS_EXPECTED = 332;
const root = dirname(dirname(import.meta.dir));

interface VitestReport {
  readonly numPassedTests: number;
  readonly numFailedTests: number;
  readonly numPendingTests: number;
  readonly testResults: readonly {
    readonly assertionResults: readonly {
      readonly status: string;
      readonly fullName: string;
      readonly failureMessages: readonly string[];
    }[];
  }[];
}

process.exit(await main());

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "pico-conformance-"));
  const givenUrl = process.env.CONFORMANCE_URL;
  let server: ServerProcess | null = null;
  let minio: MinioServer | null = null;
  let database: PostgresServer | null = null;
  try {
    if (process.argv.includes("--minio")) {
      if (!isMinioThere()) return closeWithoutMinio();
      minio = await startMinio();
    }
    if (process.argv.includes("--postgres")) {
      if (!isPostgresThere()) return closeWithoutPostgres();
      database = await startPostgres();
    }
    const storage = minio === null ? [] : ["--storage", minio.uri()];
    const tables = database === null ? [] : ["--meta-url", database.url(), "--wal", database.url()];
    // The suite waits for a long poll's end more often than not: a short one makes it quick.
    server = givenUrl === undefined ? await startServer(["--long-poll-timeout-sec", "2", ...storage, ...tables], minio?.environment) : null;
    const url = givenUrl ?? server?.durableStreamsUrl;
    if (url === undefined) throw new Error("there is no Durable Streams listener to test");
    const report = await runSuite(url, join(folder, "report.json"));
    return close(report);
  } finally {
    await server?.stop();
    await minio?.stop();
    await database?.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A configuration of our own keeps vitest from looking for test files of the project. */
async function runSuite(url: string, reportPath: string): Promise<VitestReport> {
  const suite = join(root, "node_modules/@durable-streams/server-conformance-tests/dist");
  const configPath = `${reportPath}.vitest.mjs`;
  writeFileSync(
    configPath,
    `export default ${JSON.stringify({
      root: suite,
      test: { include: ["test-runner.js"], exclude: [], testTimeout: 30_000, coverage: { enabled: false } },
    })};\n`,
  );
  const child = Bun.spawn(
    [
      "node",
      join(root, "node_modules/vitest/vitest.mjs"),
      "run",
      "--config",
      configPath,
      "--root",
      suite,
      "--reporter=default",
      "--reporter=json",
      `--outputFile.json=${reportPath}`,
    ],
    { cwd: suite, env: { ...process.env, CONFORMANCE_TEST_URL: url, CI: "1" }, stdio: ["ignore", "inherit", "inherit"] },
  );
  await child.exited;
  if (!existsSync(reportPath)) throw new Error("the suite left no report");
  return JSON.parse(readFileSync(reportPath, "utf8")) as VitestReport;
}

function close(report: VitestReport): number {
  const cases = report.testResults.flatMap((file) => file.assertionResults);
  for (const failed of cases.filter(({ status }) => status === "failed")) {
    console.log(`failed: ${failed.fullName}\n  ${failed.failureMessages.join("\n").split("\n").slice(0, 4).join("\n  ")}`);
  }
  const { numPassedTests: passed } = report;
  // One too few, or one too many, is a suite that is not the one we say we pass.
  const failed = report.numFailedTests + (passed + report.numFailedTests === TESTS_EXPECTED ? 0 : 1);
  if (passed !== TESTS_EXPECTED) console.log(`${passed} of ${TESTS_EXPECTED} tests passed, ${report.numPendingTests} left out`);
  return closeSuite(passed, failed);
}
