/**
 * The HTTP benchmark: our server and its peers on the same machine under the same load.
 *
 *   bun run bench [--rounds 5] [--seconds 3] [--only append-64,sse-500] [--without node]
 *                 [--source] [--baseline CHECKOUT] [--flags "--wal-cache-size 1000"]
 *
 * For each load all servers are up, each on a fresh folder, and take turns: one round is one measurement of
 * each, and a ratio is the median of the ratios within the rounds, so that a disk or a neighbour that
 * slows down for a while slows everybody. `--baseline` measures another checkout of ours in the same rounds.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { describeMachine } from "./lib/machine.ts";
import { type MeasuredTarget, renderWorkload } from "./lib/report.ts";
import { makeFolder, removeFolder, ServerProcess } from "./lib/server-process.ts";
import type { Protocol } from "./lib/stream-client.ts";
import { nodePeer, ourServer, rustPeer, type Subject } from "./lib/subjects.ts";
import { type LoadTarget, WORKLOADS, type Workload } from "./lib/workloads.ts";

/** Runs before the rounds, not counted: compilers and caches get warm. */
const WARM_UP_SECONDS = 2;

interface Options {
  readonly rounds: number;
  readonly seconds: number;
  readonly workloads: readonly Workload[];
  readonly subjects: readonly Subject[];
}

/** A started server with everything that a load needs of it. */
interface Runner {
  readonly measured: MeasuredTarget;
  readonly target: LoadTarget;
  readonly process: ServerProcess;
  readonly paths: readonly string[];
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      rounds: { type: "string", default: "5" },
      seconds: { type: "string", default: "3" },
      only: { type: "string", default: "" },
      without: { type: "string", default: "" },
      source: { type: "boolean", default: false },
      baseline: { type: "string" },
      flags: { type: "string", default: "" },
    },
  });
  const flags = values.flags.split(" ").filter((word) => word !== "");
  const subjects: (Subject | null)[] = [
    ourServer({ id: "pico", checkout: join(import.meta.dir, ".."), fromSource: values.source, flags }),
    values.baseline === undefined ? null : ourServer({ id: "baseline", checkout: values.baseline, fromSource: values.source, flags }),
    rustPeer(),
    nodePeer(),
  ];
  const only = values.only.split(",").filter((id) => id !== "");
  const without = values.without.split(",");
  return {
    rounds: Number(values.rounds),
    seconds: Number(values.seconds),
    workloads: WORKLOADS.filter(({ id }) => only.length === 0 || only.includes(id)),
    subjects: subjects.filter((subject) => subject !== null).filter(({ id }) => !without.includes(id)),
  };
}

async function runWorkload(workload: Workload, { subjects, rounds, seconds }: Options): Promise<readonly MeasuredTarget[]> {
  const folders: string[] = [];
  const processes = new Set<ServerProcess>();
  try {
    const runners: Runner[] = [];
    for (const subject of subjects) {
      const folder = makeFolder();
      folders.push(folder);
      runners.push(...(await startSubject(subject, workload, folder, processes)));
    }
    for (const runner of runners) await measureOnce(workload, runner, WARM_UP_SECONDS);
    for (const { measured } of runners) measured.rounds.length = 0;
    for (let round = 0; round < rounds; round++) {
      for (const runner of runners) await measureOnce(workload, runner, seconds);
    }
    return runners.map(({ measured }) => measured);
  } finally {
    await Promise.all([...processes].map((process) => process.kill()));
    for (const folder of folders) removeFolder(folder);
  }
}

/** One runner for each protocol that is measured of the server. */
async function startSubject(
  subject: Subject,
  workload: Workload,
  folder: string,
  processes: Set<ServerProcess>,
): Promise<readonly Runner[]> {
  const prepared = await subject.prepare(join(folder, "data"));
  const log = join(folder, "log");
  let process = await ServerProcess.start(prepared, log);
  processes.add(process);
  const { endpoints } = prepared;
  const protocols: Protocol[] = workload.overPico && endpoints.pico !== null ? ["durableStreams", "pico"] : ["durableStreams"];
  const targets: { target: LoadTarget; paths: readonly string[] }[] = [];
  for (const protocol of protocols) {
    const url = protocol === "pico" ? (endpoints.pico ?? "") : endpoints.durableStreams;
    const target = { url, protocol, folder };
    targets.push({ target, paths: await workload.prepare(target) });
  }
  if (workload.restarts) {
    await process.stop();
    processes.delete(process);
    process = await ServerProcess.start(prepared, log);
    processes.add(process);
  }
  return targets.map(({ target, paths }) => ({
    measured: { subject: subject.id, protocol: target.protocol, rounds: [], failure: null },
    target,
    process,
    paths,
  }));
}

/** A server that fails under the load is not measured any further; the report says how it failed. */
async function measureOnce(workload: Workload, { measured, target, process, paths }: Runner, seconds: number): Promise<void> {
  if (measured.failure !== null) return;
  const cpuBefore = process.cpuSeconds();
  try {
    const { figures, operations } = await workload.measure(target, paths, seconds);
    measured.rounds.push({ ...figures, cpu: ((process.cpuSeconds() - cpuBefore) * 1e6) / operations });
  } catch (error) {
    measured.failure = error instanceof Error ? error.message : String(error);
  }
}

const options = readOptions();
for (const line of describeMachine()) console.log(line);
for (const { id, description } of options.subjects) console.log(`${id}: ${description}`);
console.log(`rounds: ${options.rounds} of ${options.seconds} s, in turn, after ${WARM_UP_SECONDS} s of warm-up each\n`);
for (const workload of options.workloads) console.log(`${renderWorkload(workload, await runWorkload(workload, options))}\n`);
