/**
 * A node on a MinIO of four drives that fail in turn, under the load of the kill rounds, with storage and WAL in its
 * bucket (FAULTS S1). Such a store needs three drives to take a write and two to read, and answers "no such key" for
 * what the two that are left happen not to have.
 *
 *   bun test/store-faults/failing-drives.ts [--seconds 4] [--seed N] [--keep]
 *
 * With one drive away appends are taken; with more they get 503. Behind each fault, and behind a kill and a start while
 * drives are away, the node goes on by itself, and every acknowledged record is there once and in order. No key is ever created twice.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { isMinioThere, startMinio } from "../../scripts/minio.ts";
import { eventually } from "../cluster/eventually.ts";
import { EXECUTABLE, freePorts, type NodeOptions, NodeProcess } from "../cluster/node-process.ts";
import { describeCounts, StreamLoad } from "../cluster/stream-load.ts";
import { verifyStreams } from "../cluster/stream-reading.ts";
import { closeWithoutMinio } from "../support/minio-suite.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { SuiteVerdicts } from "../support/test-report.ts";
import { Drives } from "./drives.ts";
import { killInFault, runStretch, takeViolations } from "./fault-stretch.ts";
import { Rival } from "./rival.ts";

const DRIVES = 4;
/** Small, so that what the writers have under way fills it. */
const BACKLOG_BYTES = 1 << 20;

/** Each but the first takes drives away that have just got what the ones that came back lack. */
const FAULTS = [
  { away: [0], isWritable: true },
  { away: [2, 3], isWritable: false },
  { away: [0, 1, 2], isWritable: false },
] as const;
/** While the node is killed, and starts. */
const START_AWAY = [2, 3] as const;

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "4" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    keep: { type: "boolean", default: false },
  },
});
const faultMs = Number(values.seconds) * 1000;

const verdicts = new SuiteVerdicts();

process.exit(isMinioThere() ? await main() : closeWithoutMinio());

async function main(): Promise<number> {
  console.log(`failing drives: --seconds ${values.seconds} --seed ${values.seed}`);
  const minio = await startMinio(null, DRIVES);
  const drives = new Drives(minio);
  const rival = await Rival.start(minio);
  const folder = mkdtempSync(join(tmpdir(), "pico-drives-"));
  Object.assign(process.env, minio.environment);
  const options: NodeOptions = {
    program: EXECUTABLE,
    ports: await freePorts(),
    dataDirectory: join(folder, "data"),
    logPath: join(folder, "log"),
    flags: ["--storage", minio.uri("", `&maxUnflushedBytes=${BACKLOG_BYTES}`), "--wal-upload-threshold", "1000000"],
  };
  const load = new StreamLoad(options.ports, new SeededRandom(Number(values.seed)));
  let node: NodeProcess | null = null;
  try {
    node = await NodeProcess.start(options);
    for (const { away, isWritable } of FAULTS) await runFault(node, load, drives, away, isWritable);
    await killInFault(node, load, async () => {
      drives.take(...START_AWAY);
      await Bun.sleep(faultMs);
    });
    node = NodeProcess.spawn(options);
    await Bun.sleep(faultMs);
    drives.giveBack();
    const readyMs = await node.ready();
    console.log(`a kill and a start while ${START_AWAY.length} of ${DRIVES} drives are away: ready after ${(readyMs / 1000).toFixed(1)} s`);
    await verifyStreams(node.ports, load.streams, true);
    verdicts.judge("a kill and a start while drives are away", takeViolations(load));
    const exitCode = await node.stop();
    verdicts.judge("a graceful stop", exitCode === 0 ? [] : [`the exit code was ${exitCode}: ${node.lastWords()}`]);
    node = await NodeProcess.start(options);
    await verifyStreams(node.ports, load.streams, true);
    verdicts.judge("everything behind another start", takeViolations(load));
    verdicts.judge("no key was created twice", await rival.stop());
  } catch (error) {
    verdicts.judge("the run", [error instanceof Error ? error.message : String(error)]);
  } finally {
    drives.giveBack();
    await node?.kill();
    await rival.stop();
    await minio.stop();
  }
  const records = load.streams.reduce((sum, { tailMin }) => sum + tailMin, 0);
  console.log(`${load.streams.length} streams with ${records} records; ${rival.refusals} creates of taken keys refused`);
  if (verdicts.failed > 0 || values.keep) console.log(`data directory and log are kept in ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
  return verdicts.close();
}

async function runFault(node: NodeProcess, load: StreamLoad, drives: Drives, away: readonly number[], isWritable: boolean): Promise<void> {
  const name = `${away.length} of ${DRIVES} drives away`;
  const { during, after, recovered, residentBytes, problems } = await runStretch(node, load, async () => {
    drives.take(...away);
    await Bun.sleep(faultMs);
    // A store that lets an append wait is given some seconds before that is answered.
    if (!isWritable) await eventually("an append is refused", async () => load.counts.refusals > 0);
    drives.giveBack();
  });
  console.log(
    `${name} (${away.join(", ")}): ${describeCounts(during)}; taken again after ${recovered}; then ${describeCounts(after)}; at most ${residentBytes >> 20} MiB`,
  );
  const own: string[] = [];
  if (isWritable && during.records === 0) own.push("no append was taken though the store takes writes");
  verdicts.judge(name, [...problems, ...own]);
}
