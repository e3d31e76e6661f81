/**
 * Crash safety of the real thing: the compiled server under the load of many clients is killed at random
 * moments and started again, and everything that it ever acknowledged is looked for.
 *
 *   bun test/cluster/kill-rounds.ts [--rounds N] [--seed N] [--program PATH] [--minio | --postgres | --postgres-wal] [--keep]
 *
 * With `--minio` storage and WAL are in a bucket of a real MinIO, with `--postgres` the metadata in a real Postgres, with
 * `--postgres-wal` the WAL too; it lives through all rounds.
 *
 * After each restart: every acknowledged record is there once, in order, at its offset, with its bytes;
 * one that was never acknowledged is there at most once; repeats of unanswered producer appends never
 * duplicate; deletions, trims and closes that were answered hold. Some rounds end with SIGTERM, some kill
 * the server again while it recovers, some have clients that do not wait until it is ready.
 *
 * The seed draws the schedule (settings, load, moments); the machine's timing is its own. The time from
 * the start of the process to `/ready` 200 is printed; its median is held to a second.
 */

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { isMinioThere, type MinioServer, startMinio } from "../../scripts/minio.ts";
import { isPostgresThere, type PostgresServer, startPostgres } from "../../scripts/postgres.ts";
import { closeWithoutMinio } from "../support/minio-suite.ts";
import { closeWithoutPostgres } from "../support/postgres-suite.ts";
import { SeededRandom } from "../support/seeded-random.ts";
import { SuiteVerdicts } from "../support/test-report.ts";
import { HttpConnection } from "./http-connection.ts";
import { EXECUTABLE, freePorts, type NodeOptions, NodeProcess, type Ports } from "./node-process.ts";
import type { StreamFacts } from "./stream-facts.ts";
import { describeCounts, type RoundLoad, StreamLoad } from "./stream-load.ts";
import { listNames, verifyStreams } from "./stream-reading.ts";

/** Then a fresh directory: nothing merges data objects, and facts stay few. */
const ROUNDS_PER_DIRECTORY = 20;
const READY_MEDIAN_MS_MAX = 1000;
/** A start on a bucket asks a store that others ask too some thirty times in turn. */
const READY_MEDIAN_ON_MINIO_MS_MAX = 2000;
/** For a machine that does much else. */
const READY_WORST_MS_MAX = 8000;
/** Nothing proves the death of who held a WAL in a database: a start waits out the failover limit, and again behind a start that was killed. */
const READY_ON_POSTGRES_WAL_MS_MAX = { median: 8000, worst: 20_000 };
const STOP_MS_MAX = 30_000;
/** Streams of earlier rounds that are looked at again in each round. */
const OLD_STREAMS_SAMPLED = 40;
/** Looked at in each round: those under load, and what the last one created. */
const RECENT_STREAMS = 600;

interface Round extends RoundLoad {
  readonly flags: readonly string[];
  readonly loadMs: number;
  readonly end: "kill" | "stop";
  /** Kills of the next start, each so many milliseconds after it began. */
  readonly startKillsMs: readonly number[];
  /** Clients of the next round do not wait until the node is ready. */
  readonly isImpatient: boolean;
}

function drawRound(random: SeededRandom): Round {
  const flags = random.pick([
    [],
    ["--wal-upload-threshold", "65536"],
    ["--wal-upload-threshold", "1000000", "--wal-upload-interval-ms", "200"],
    ["--wal-upload-interval-ms", "20"],
    ["--wal-upload-threshold", "200000", "--wal-cache-size", "500000", "--block-cache-size", "1000000"],
  ]);
  return {
    flags,
    lengthMax: random.pick([100, 100, 2000, 40_000]),
    hasChurn: random.fraction() < 0.4,
    loadMs: 50 + Math.floor(random.fraction() ** 2 * 1950),
    end: random.fraction() < 0.8 ? "kill" : "stop",
    startKillsMs: random.fraction() < 0.3 ? Array.from({ length: 1 + random.below(3) }, () => 20 + random.below(300)) : [],
    isImpatient: random.fraction() < 0.25,
  };
}

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "20" },
    seed: { type: "string", default: String(Date.now() % 1_000_000) },
    program: { type: "string" },
    minio: { type: "boolean", default: false },
    postgres: { type: "boolean", default: false },
    "postgres-wal": { type: "boolean", default: false },
    keep: { type: "boolean", default: false },
  },
});

const services = (["minio", "postgres", "postgres-wal"] as const).filter((service) => values[service]);
const needsPostgres = values.postgres || values["postgres-wal"];
const verdicts = new SuiteVerdicts();
const readyMs: number[] = [];
let minio: MinioServer | null = null;
let database: PostgresServer | null = null;

process.exit(await main(Number(values.rounds), Number(values.seed)));

async function main(rounds: number, seed: number): Promise<number> {
  const words = `--rounds ${rounds} --seed ${seed}${services.map((service) => ` --${service}`).join("")}`;
  console.log(`kill rounds: ${words}`);
  if (values.minio && !isMinioThere()) return closeWithoutMinio();
  if (needsPostgres && !isPostgresThere()) return closeWithoutPostgres();
  minio = values.minio ? await startMinio() : null;
  database = needsPostgres ? await startPostgres() : null;
  const random = new SeededRandom(seed);
  try {
    for (let done = 0; done < rounds; done += ROUNDS_PER_DIRECTORY) {
      await runDirectory(done, Math.min(rounds, done + ROUNDS_PER_DIRECTORY), new SeededRandom(random.below(2 ** 31)));
    }
  } finally {
    await minio?.stop();
    await database?.stop();
  }
  judgeReadiness();
  if (verdicts.failed > 0) console.log(`again with: bun test/cluster/kill-rounds.ts ${words}`);
  return verdicts.close();
}

/** Where a node with this directory keeps what is not in it. */
async function placesOf(directory: number): Promise<Pick<NodeOptions, "flags" | "environment">> {
  if (database !== null) {
    const url = database.url(await database.makeDatabase());
    return { flags: ["--meta-url", url, ...(values["postgres-wal"] ? ["--wal", url] : [])] };
  }
  return minio === null ? {} : { flags: ["--storage", minio.uri(`/directory-${directory}`)], environment: minio.environment };
}

/** The life of one data directory. At its end everything is read again, from the first record. */
async function runDirectory(from: number, to: number, random: SeededRandom): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "pico-kill-"));
  const program = values.program === undefined ? EXECUTABLE : [values.program];
  const options = {
    program,
    ports: await freePorts(),
    dataDirectory: join(folder, "data"),
    logPath: join(folder, "log"),
    ...(await placesOf(from)),
  };
  const load = new StreamLoad(options.ports, random);
  const failedBefore = verdicts.failed;
  for (let number = from + 1; number <= to && verdicts.failed === failedBefore; number++) await runRound(options, number, load, random);
  if (verdicts.failed === failedBefore) await closeDirectory(options, load);
  if (verdicts.failed > failedBefore || values.keep) console.log(`data directory and log are kept in ${folder}`);
  else rmSync(folder, { recursive: true, force: true });
}

/** Start, look for everything that was ever acknowledged, load, end. */
async function runRound(options: NodeOptions, number: number, load: StreamLoad, random: SeededRandom): Promise<void> {
  const round = drawRound(random);
  let node: NodeProcess | null = null;
  const problems: string[] = [];
  try {
    node = await startAfterKills({ ...options, flags: [...(options.flags ?? []), ...round.flags] }, round.startKillsMs);
    const end = Promise.withResolvers<void>();
    const early = round.isImpatient ? load.run(round, end.promise) : null;
    const ready = await node.ready();
    readyMs.push(ready);
    if (early === null) await verifyStreams(options.ports, sampleStreams(load.streams, random), false);
    const loading = early ?? load.run(round, end.promise);
    await Bun.sleep(round.loadMs);
    if (round.end === "stop") problems.push(...(await stopGracefully(node)));
    else await node.kill();
    end.resolve();
    await loading;
    const moments = [
      ...round.startKillsMs.map((ms) => `kill at ${ms} ms`),
      `ready ${ready.toFixed(0)} ms`,
      `${round.end} after ${round.loadMs} ms`,
    ];
    console.log(
      `round ${number}: ${moments.join(", ")}${round.isImpatient ? ", impatient" : ""} ${round.flags.join(" ")}, ≤ ${round.lengthMax} bytes${round.hasChurn ? ", churn" : ""}; ${describeCounts(load.takeCounts())}`,
    );
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
    await node?.kill();
  }
  closeRound(`round ${number}`, load, problems);
}

async function startAfterKills(options: NodeOptions, killsMs: readonly number[]): Promise<NodeProcess> {
  for (const ms of killsMs) {
    const node = NodeProcess.spawn(options);
    await Promise.race([Bun.sleep(ms), node.exited]);
    if (node.hasExited) throw new Error(`the node ended by itself while it started: ${node.lastWords()}`);
    await node.kill();
  }
  return NodeProcess.spawn(options);
}

async function stopGracefully(node: NodeProcess): Promise<readonly string[]> {
  const startedAtMs = performance.now();
  const exitCode = await node.stop();
  const problems = exitCode === 0 ? [] : [`a graceful stop under load had the exit code ${exitCode}: ${node.lastWords()}`];
  if (performance.now() - startedAtMs > STOP_MS_MAX) problems.push("the graceful stop took longer than its time-out");
  return problems;
}

/** Streams in use, and some of those that nobody has asked for since. */
function sampleStreams(streams: readonly StreamFacts[], random: SeededRandom): readonly StreamFacts[] {
  const recent = streams.slice(-RECENT_STREAMS);
  const old = streams.slice(0, -RECENT_STREAMS);
  const sampled = old.length <= OLD_STREAMS_SAMPLED ? old : Array.from({ length: OLD_STREAMS_SAMPLED }, () => random.pick(old));
  return [...new Set([...recent, ...sampled])];
}

/** After the last kill: every stream from its first record over both protocols, and the list of names. */
async function closeDirectory(options: NodeOptions, load: StreamLoad): Promise<void> {
  const problems: string[] = [];
  let node: NodeProcess | null = null;
  try {
    node = await NodeProcess.start(options);
    await verifyStreams(options.ports, load.streams, true);
    const listed = await listNames(options.ports);
    const expected = load.streams.filter(({ mayExist }) => mayExist).map(({ name }) => name);
    const missing = expected.filter((name) => !listed.has(name));
    if (missing.length > 0) problems.push(`the list leaves out ${missing.slice(0, 5).join(" ")}`);
    if (listed.size > expected.length) problems.push(`the list has ${listed.size} names, ${expected.length} exist`);
    const commands = await describeLog(options.ports);
    problems.push(...(await stopGracefully(node)));
    const records = load.streams.reduce((sum, { tailMin }) => sum + tailMin, 0);
    console.log(`all of ${load.streams.length} streams with ${records} records read again; ${commands}`);
  } catch (error) {
    problems.push(error instanceof Error ? error.message : String(error));
    await node?.kill();
  }
  closeRound("the last look at the directory", load, problems);
}

async function describeLog({ admin }: Ports): Promise<string> {
  const connection = new HttpConnection(admin);
  const answer = await connection.request({ method: "GET", path: "/admin/cluster" });
  connection.close();
  const { appliedIndex, snapshot } = JSON.parse(answer?.body.toString() ?? "") as {
    appliedIndex: number;
    snapshot: { lastAppliedIndex: number };
  };
  return `command log at ${appliedIndex}, last snapshot at ${snapshot.lastAppliedIndex}`;
}

function closeRound(name: string, load: StreamLoad, problems: readonly string[]): void {
  verdicts.judge(name, [...problems, ...load.streams.flatMap((facts) => facts.violations.splice(0))]);
}

function judgeReadiness(): void {
  const sorted = readyMs.toSorted((left, right) => left - right);
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.POSITIVE_INFINITY;
  const worst = sorted.at(-1) ?? Number.POSITIVE_INFINITY;
  console.log(
    `ready after the start of the process: median ${median.toFixed(0)} ms, worst ${worst.toFixed(0)} ms of ${sorted.length} starts`,
  );
  const local = { median: values.minio ? READY_MEDIAN_ON_MINIO_MS_MAX : READY_MEDIAN_MS_MAX, worst: READY_WORST_MS_MAX };
  const max = values["postgres-wal"] ? READY_ON_POSTGRES_WAL_MS_MAX : local;
  const isQuick = median <= max.median && worst <= max.worst;
  verdicts.judge("starts", isQuick ? [] : [`the median is held to ${max.median} ms, the worst to ${max.worst} ms`]);
}
