/**
 * A real node under load, with storage and WAL on a real MinIO that misbehaves in every way of `fault-proxy.ts`.
 *
 *   bun test/store-faults/run.ts [--seconds 15] [--seed N] [--only stall,cut] [--keep]
 *
 * During each fault: what the node answers is right, appends that cannot be taken get 503 with `Retry-After`, and
 * memory is bounded. Behind each: appends are taken again by themselves, and every acknowledged record is there
 * once and in order. At the end, after a `kill -9` in a fault and a start, everything is read from its first record.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { isMinioThere, MINIO_BUCKET, startMinio } from "../../scripts/minio.ts";
import { HttpConnection } from "../cluster/http-connection.ts";
import { EXECUTABLE, freePorts, type NodeOptions, NodeProcess } from "../cluster/node-process.ts";
import { describeCounts, StreamLoad } from "../cluster/stream-load.ts";
import { verifyStreams } from "../cluster/stream-reading.ts";
import { closeWithoutMinio } from "../support/minio-suite.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { SuiteVerdicts } from "../support/test-report.ts";
import { FAULTS, type Fault, FaultProxy } from "./fault-proxy.ts";
import { killInFault, runStretch, takeViolations } from "./fault-stretch.ts";

/** Small, so that what the writers have under way fills it. */
const BACKLOG_BYTES = 512 << 10;
/** Each cache's, small as well: growth shows sooner. */
const CACHE_BYTES = 16 << 20;
/** From the begin of the last fault until the node is killed in it: long enough for a call to give up its tries. */
const KILL_MS = 4000;

const { values } = parseArgs({
  options: {
    // Longer than an append is kept waiting: whoever waited when the fault began is answered within it, and refused anew.
    seconds: { type: "string", default: "15" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    only: { type: "string", default: FAULTS.join(",") },
    keep: { type: "boolean", default: false },
  },
});
const faultMs = Number(values.seconds) * 1000;
const faults = FAULTS.filter((fault) => values.only.split(",").includes(fault));

const verdicts = new SuiteVerdicts();

process.exit(isMinioThere() ? await main() : closeWithoutMinio());

async function main(): Promise<number> {
  console.log(`store faults: --seconds ${values.seconds} --seed ${values.seed}`);
  const minio = await startMinio();
  const proxy = await FaultProxy.start(Number(new URL(minio.endpoint).port));
  const folder = mkdtempSync(join(tmpdir(), "pico-faults-"));
  Object.assign(process.env, minio.environment);
  const storage = `s3://${MINIO_BUCKET}?endpoint=${proxy.url}&pathStyle=true&maxUnflushedBytes=${BACKLOG_BYTES}`;
  const caches = ["--wal-cache-size", String(CACHE_BYTES), "--block-cache-size", String(CACHE_BYTES)];
  const options: NodeOptions = {
    program: EXECUTABLE,
    ports: await freePorts(),
    dataDirectory: join(folder, "data"),
    logPath: join(folder, "log"),
    flags: ["--storage", storage, "--wal-upload-threshold", "1000000", ...caches],
  };
  const load = new StreamLoad(options.ports, new SeededRandom(Number(values.seed)));
  let node: NodeProcess | null = null;
  try {
    node = await NodeProcess.start(options);
    for (const fault of faults) await runFault(fault, node, proxy, load);
    await killInFault(node, load, async () => {
      await proxy.set("internal-error");
      await Bun.sleep(KILL_MS);
    });
    await proxy.set(null);
    node = await NodeProcess.start(options);
    await closeRun(node, load);
  } catch (error) {
    verdicts.judge("the run", [error instanceof Error ? error.message : String(error)]);
  } finally {
    await node?.kill();
    await proxy.close();
    await minio.stop();
  }
  if (verdicts.failed > 0 || values.keep) console.log(`data directory and log are kept in ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
  return verdicts.close();
}

async function runFault(fault: Fault, node: NodeProcess, proxy: FaultProxy, load: StreamLoad): Promise<void> {
  const { during, after, recovered, residentBytes, problems } = await runStretch(node, load, async () => {
    await proxy.set(fault);
    await Bun.sleep(faultMs);
    await proxy.set(null);
  });
  const own: string[] = [];
  if (proxy.takeHits() === 0) own.push("no request met the fault");
  if (mustRefuse(fault) && during.refusals === 0) own.push("no append was answered 503 while the store took nothing");
  console.log(
    `${fault}: ${describeCounts(during)}; taken again after ${recovered}; then ${describeCounts(after)}; at most ${residentBytes >> 20} MiB`,
  );
  verdicts.judge(fault, [...problems, ...own]);
}

/** Faults under which nothing, or no upload, gets through: the bounded buffer fills. */
function mustRefuse(fault: Fault): boolean {
  return fault !== "delete-errors";
}

async function closeRun(node: NodeProcess, load: StreamLoad): Promise<void> {
  await verifyStreams(node.ports, load.streams, true);
  const problems = takeViolations(load);
  const gc = await readGc(node);
  const exitCode = await node.stop();
  if (exitCode !== 0) problems.push(`the graceful stop had the exit code ${exitCode}: ${node.lastWords()}`);
  const records = load.streams.reduce((sum, { tailMin }) => sum + tailMin, 0);
  console.log(`all of ${load.streams.length} streams with ${records} records read again after a kill; gc ${gc}`);
  verdicts.judge("everything after a kill", problems);
}

async function readGc({ ports }: NodeProcess): Promise<string> {
  const connection = new HttpConnection(ports.admin);
  const answer = await connection.request({ method: "GET", path: "/admin/cluster" });
  connection.close();
  return JSON.stringify((JSON.parse(answer?.body.toString() ?? "{}") as { gc?: unknown }).gc);
}
