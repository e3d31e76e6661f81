/**
 * Runs seeds: `bun test/simulation/run.ts --seeds 200 --from 1`, or one of them, `--seed 17`, with
 * `--verbose` for every step. Seeds are spread over processes, one a core. The last line says how many
 * passed and how many failed.
 */
import { availableParallelism } from "node:os";
import { parseArgs } from "node:util";
import { closeSuite } from "../support/test-report.ts";
import { composeNodeFactory } from "./compose-node.ts";
import { REQUIRED_KINDS, SEEDS_FOR_ALL_KINDS } from "./kinds.ts";
import { describeOptions, drawOptions, type SimulationOptions } from "./options.ts";
import { type RunResult, runSimulation } from "./simulation.ts";
import { findVariant } from "./variants/variants.ts";

/** Real time that a seed may take: one that takes longer is in a loop that has no events. */
const SEED_REAL_MS_MAX = 180_000;

/** A run of hours says how far it is. */
const SEEDS_PER_NOTE = 500;

/** Steps shown of a failed run. */
const RECENT_SHOWN = 60;

interface Arguments {
  readonly seeds: number;
  readonly from: number;
  readonly seed: string | null;
  readonly operations: number | null;
  readonly variant: string | null;
  readonly jobs: number;
  readonly isVerbose: boolean;
  /** Runs every `jobs`th seed and prints one line of JSON a seed, for the process that started it. */
  readonly worker: number | null;
}

/** What one seed came to, as a worker reports it. */
interface SeedReport {
  readonly seed: string;
  readonly failure: string | null;
  readonly hash: string;
  readonly steps: number;
  readonly endMs: number;
  readonly counts: Readonly<Record<string, number>>;
  readonly recent: readonly string[];
}

if (import.meta.main) process.exitCode = await main(readArguments(process.argv.slice(2)));

function readArguments(argv: readonly string[]): Arguments {
  const { values } = parseArgs({
    args: [...argv],
    options: {
      seeds: { type: "string", default: "20" },
      from: { type: "string", default: "1" },
      seed: { type: "string" },
      operations: { type: "string" },
      variant: { type: "string" },
      jobs: { type: "string", default: String(availableParallelism()) },
      verbose: { type: "boolean", default: false },
      worker: { type: "string" },
    },
  });
  return {
    seeds: wholeNumber(values.seeds, "--seeds"),
    from: wholeNumber(values.from, "--from"),
    seed: values.seed ?? null,
    operations: values.operations === undefined ? null : wholeNumber(values.operations, "--operations"),
    variant: values.variant ?? null,
    jobs: Math.max(1, wholeNumber(values.jobs, "--jobs")),
    isVerbose: values.verbose,
    worker: values.worker === undefined ? null : wholeNumber(values.worker, "--worker"),
  };
}

function wholeNumber(text: string, flag: string): number {
  if (!/^\d+$/.test(text)) throw new Error(`${flag} takes a whole number, not ${JSON.stringify(text)}`);
  return Number(text);
}

async function main(given: Arguments): Promise<number> {
  if (given.worker !== null) return work(given, given.worker);
  if (given.seed !== null) return runOne(given, given.seed);
  return runMany(given);
}

function optionsOf(seed: string, given: Arguments): SimulationOptions {
  return drawOptions(seed, given.operations === null ? {} : { operations: given.operations });
}

async function runSeed(seed: string, given: Arguments): Promise<SeedReport> {
  const variant = given.variant === null ? null : findVariant(given.variant);
  const onLine = given.isVerbose ? (line: string) => process.stdout.write(`${line}\n`) : null;
  const mend = variant?.install();
  const result = await runSimulation(optionsOf(seed, given), variant?.factory ?? composeNodeFactory(), onLine);
  mend?.();
  return report(seed, result);
}

function report(seed: string, { failure, hash, steps, endMs, counts, recent }: RunResult): SeedReport {
  const text = failure === null ? null : (failure.stack ?? failure.message);
  return {
    seed,
    failure: text,
    hash,
    steps,
    endMs,
    counts: Object.fromEntries(counts),
    recent: failure === null ? [] : recent.slice(-RECENT_SHOWN),
  };
}

async function runOne(given: Arguments, seed: string): Promise<number> {
  console.log(`seed ${seed}\noptions ${describeOptions(optionsOf(seed, given))}`);
  const result = await runSeed(seed, given);
  printCounts(result.counts);
  if (result.failure !== null) printFailure(result, given);
  console.log(`seed ${seed}: ${result.steps} steps, ${(result.endMs / 1000).toFixed(1)} s simulated, trace ${result.hash}`);
  return closing([result]);
}

async function work(given: Arguments, worker: number): Promise<number> {
  for (let at = worker; at < given.seeds; at += given.jobs) {
    process.stdout.write(`${JSON.stringify(await runSeed(String(given.from + at), given))}\n`);
  }
  return 0;
}

async function runMany(given: Arguments): Promise<number> {
  const last = given.from + given.seeds - 1;
  console.log(`seeds ${given.from} to ${last}${given.variant === null ? "" : `, variant ${given.variant}`}, in ${given.jobs} processes`);
  const reports: SeedReport[] = [];
  const take = (result: SeedReport): void => {
    reports.push(result);
    if (result.failure !== null) printFailure(result, given);
    if (reports.length % SEEDS_PER_NOTE === 0)
      console.log(`${reports.length} seeds, ${reports.filter(({ failure }) => failure !== null).length} failed`);
  };
  await Promise.all(Array.from({ length: given.jobs }, (_, worker) => runWorker(given, worker, take)));
  const totals: Record<string, number> = {};
  for (const { counts } of reports) for (const [kind, count] of Object.entries(counts)) totals[kind] = (totals[kind] ?? 0) + count;
  printCounts(totals);
  const missing = given.seeds >= SEEDS_FOR_ALL_KINDS ? REQUIRED_KINDS.filter((kind) => totals[kind] === undefined) : [];
  for (const kind of missing) console.log(`never happened: ${kind}`);
  const code = closing(reports);
  return missing.length > 0 ? 1 : code;
}

/** Runs a worker's seeds in a process of their own; a seed that kills or stops it has failed, and the next process goes on behind it. */
async function runWorker(given: Arguments, worker: number, take: (result: SeedReport) => void): Promise<void> {
  for (let at = worker; at < given.seeds; ) {
    const rest = { ...given, from: given.from + at, seeds: given.seeds - at };
    const reported = await runProcess(rest, take);
    at += reported * given.jobs;
    if (at >= given.seeds) return;
    take({
      seed: String(given.from + at),
      failure: "the process that ran it died or stopped",
      hash: "",
      steps: 0,
      endMs: 0,
      counts: {},
      recent: [],
    });
    at += given.jobs;
  }
}

/** Runs every `jobs`th seed from the first; returns how many reported. */
async function runProcess(given: Arguments, take: (result: SeedReport) => void): Promise<number> {
  const { seeds, from, operations, variant, jobs } = given;
  const flags = ["--seeds", String(seeds), "--from", String(from), "--jobs", String(jobs), "--worker", "0"];
  if (operations !== null) flags.push("--operations", String(operations));
  if (variant !== null) flags.push("--variant", variant);
  const child = Bun.spawn([process.execPath, import.meta.path, ...flags], { stdout: "pipe", stderr: "inherit" });
  const decoder = new TextDecoder();
  let reported = 0;
  let rest = "";
  let watchdog = setTimeout(() => child.kill("SIGKILL"), SEED_REAL_MS_MAX);
  for await (const chunk of child.stdout) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      clearTimeout(watchdog);
      watchdog = setTimeout(() => child.kill("SIGKILL"), SEED_REAL_MS_MAX);
      reported += 1;
      take(JSON.parse(line) as SeedReport);
    }
  }
  clearTimeout(watchdog);
  await child.exited;
  return reported;
}

function printFailure(result: SeedReport, given: Arguments): void {
  const flags = `${given.operations === null ? "" : ` --operations ${given.operations}`}${given.variant === null ? "" : ` --variant ${given.variant}`}`;
  console.log(`\nFAILED seed ${result.seed}\noptions ${describeOptions(optionsOf(result.seed, given))}`);
  for (const line of result.recent) console.log(`  ${line}`);
  console.log(`${result.failure}\nreplay: bun test/simulation/run.ts --seed ${result.seed}${flags} --verbose\n`);
}

function printCounts(counts: Readonly<Record<string, number>>): void {
  for (const kind of Object.keys(counts).sort()) console.log(`  ${kind}: ${counts[kind]}`);
}

function closing(reports: readonly SeedReport[]): number {
  const failed = reports.filter((result) => result.failure !== null).length;
  return closeSuite(reports.length - failed, failed);
}
