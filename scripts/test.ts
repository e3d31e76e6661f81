/**
 * Runs one tier of tests (`test-steps.ts`) and ends with one closing line, `N passed, N failed`.
 *
 *   bun scripts/test.ts [--tier=first|second|long] [BUN_TEST_ARGUMENT...]
 *
 * Further arguments go to `bun test` instead of the tier's steps: `npm test -- test/cli -t precedence`.
 *
 * The steps of a stage run beside each other, as many as there are cores: most of them wait for most of their time.
 * What one prints comes in one piece when it ends, and the end of it once more, before the closing lines, if it failed.
 * All steps run, also after a failure. A step fails by its exit code, a failed test, too few tests, no
 * report or its time limit. `PICO_TEST_TOTALS` names a file that carries the counts over several runs of one
 * CI job: with `PICO_TEST_CLOSING=later` they are stored there and no closing line is printed; otherwise
 * the closing line includes what is stored.
 */
import { closeSync, existsSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { addCounts, type Counts, formatCounts, NO_COUNTS, readJsonCounts, readJunitCounts } from "./test-report.ts";
import { type Stage, type Step, stages, type Tier } from "./test-steps.ts";

/** More at once would need more memory than a small machine has. */
const BESIDE_MAX = 4;
/** Of the output of a failed step, shown once more at the end. */
const LAST_LINES_SHOWN = 60;

interface StepResult {
  readonly step: Step;
  readonly counts: Counts;
  /** Why the step failed; null if it passed. */
  readonly failure: string | null;
  readonly seconds: number;
  readonly output: string;
}

const root = dirname(import.meta.dir);
const running = new Set<Bun.Subprocess>();
let stoppedBy: NodeJS.Signals | null = null;

for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.on(signal, () => {
    stoppedBy = signal;
    for (const child of running) child.kill(signal);
  });
}

process.exit(await main());

async function main(): Promise<number> {
  const { tier, passedOn } = readArguments(process.argv.slice(2));
  const chosen: readonly Stage[] =
    passedOn.length === 0
      ? stages[tier]
      : [[{ kind: "bun-test", name: "chosen tests", paths: passedOn, ignore: [], passedMin: 1, minutesMax: 60 }]];

  const results: StepResult[] = [];
  for (const stage of chosen) results.push(...(await runStage(stage)));
  return close(results);
}

/** In the order of the stage, whatever ends first. */
async function runStage(stage: Stage): Promise<StepResult[]> {
  const waiting = [...stage];
  const results: StepResult[] = [];
  const runWaiting = async (): Promise<void> => {
    for (let step = waiting.shift(); step !== undefined && stoppedBy === null; step = waiting.shift()) {
      const result = await runStep(step);
      console.log(`\n== ${step.name}\n${result.output}`);
      results.push(result);
    }
  };
  await Promise.all(Array.from({ length: Math.min(BESIDE_MAX, availableParallelism(), stage.length) }, runWaiting));
  return results.sort((left, right) => stage.indexOf(left.step) - stage.indexOf(right.step));
}

function readArguments(words: readonly string[]): { tier: Tier; passedOn: readonly string[] } {
  let tier: Tier = "first";
  const passedOn: string[] = [];
  for (const word of words) {
    const name = /^--tier=(.*)$/.exec(word)?.[1];
    if (name === undefined) passedOn.push(word);
    else if (name === "first" || name === "second" || name === "long") tier = name;
    else throw new Error(`unknown tier ${name}: first, second or long`);
  }
  return { tier, passedOn };
}

async function runStep(step: Step): Promise<StepResult> {
  const folder = mkdtempSync(join(tmpdir(), "pico-test-"));
  const [reportPath, outputPath] = [join(folder, "report"), join(folder, "output")];
  const output = openSync(outputPath, "a");
  const startedMs = performance.now();
  try {
    const child = Bun.spawn(commandOf(step, reportPath), {
      cwd: root,
      env: { ...process.env, PICO_TEST_REPORT: reportPath },
      stdio: ["ignore", output, output],
    });
    running.add(child);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      child.kill("SIGKILL");
    }, step.minutesMax * 60_000);
    const exitCode = await child.exited;
    clearTimeout(timer);
    running.delete(child);
    const report = existsSync(reportPath) ? readFileSync(reportPath, "utf8") : "";
    const { counts, failure } = judge(step, exitCode, report);
    const late = isLate ? `stopped after its limit of ${step.minutesMax} min` : null;
    const seconds = (performance.now() - startedMs) / 1000;
    return { step, counts, failure: late ?? failure, seconds, output: readFileSync(outputPath, "utf8") };
  } finally {
    closeSync(output);
    rmSync(folder, { recursive: true, force: true });
  }
}

/** The children of a step end with it (`--no-orphans`), whatever ends it. */
function commandOf(step: Step, reportPath: string): string[] {
  switch (step.kind) {
    case "check":
      return [...step.command];
    case "program":
      return [process.execPath, "--no-orphans", "run", step.file, ...step.arguments];
    case "bun-test": {
      const ignored = step.ignore.map((path) => `--path-ignore-patterns=${path}/**`);
      const reporter = ["--reporter=junit", `--reporter-outfile=${reportPath}`];
      return [process.execPath, "test", "--no-orphans", "--only-failures", "--timeout=20000", ...reporter, ...ignored, ...step.paths];
    }
  }
}

function judge(step: Step, exitCode: number, report: string): { counts: Counts; failure: string | null } {
  const exitFailure = exitCode === 0 ? null : `exit code ${exitCode}`;
  if (step.kind === "check") return { counts: NO_COUNTS, failure: exitFailure };

  const counts = step.kind === "bun-test" ? readJunitCounts(report) : readJsonCounts(report);
  if (counts === null) return { counts: { ...NO_COUNTS, failed: 1 }, failure: exitFailure ?? "no report of its counts" };
  if (counts.failed > 0) return { counts, failure: `${counts.failed} failed` };
  // A file that does not load, or a crash after the report, is in no count.
  if (exitFailure !== null) return { counts: { ...counts, failed: 1 }, failure: exitFailure };
  if (counts.passed < step.passedMin) {
    return { counts: { ...counts, failed: 1 }, failure: `${counts.passed} passed, at least ${step.passedMin} expected` };
  }
  return { counts, failure: null };
}

/** Prints the ends of what failed, a line a step and the closing line; returns the exit code. */
function close(results: readonly StepResult[]): number {
  for (const { step, failure, output } of results) {
    if (failure === null) continue;
    console.log(`\n== ${step.name} failed: ${failure}\n${output.trimEnd().split("\n").slice(-LAST_LINES_SHOWN).join("\n")}`);
  }
  console.log("");
  let total = NO_COUNTS;
  let isGreen = results.length > 0 && stoppedBy === null;
  for (const { step, counts, failure, seconds } of results) {
    const figures = step.kind === "check" ? "" : `  ${formatCounts(counts)}`;
    console.log(
      `${failure === null ? "ok  " : "FAIL"} ${step.name}${figures}  (${seconds.toFixed(1)} s)${failure === null ? "" : `: ${failure}`}`,
    );
    total = addCounts(total, counts);
    if (failure !== null) isGreen = false;
  }
  if (results.length === 0) console.log("FAIL no step was run");

  const totalsPath = process.env.PICO_TEST_TOTALS;
  if (totalsPath !== undefined && existsSync(totalsPath)) {
    total = addCounts(total, readJsonCounts(readFileSync(totalsPath, "utf8")) ?? NO_COUNTS);
  }
  if (totalsPath !== undefined && process.env.PICO_TEST_CLOSING === "later") writeFileSync(totalsPath, JSON.stringify(total));
  else console.log(`\n${formatCounts(total)}`);
  return isGreen ? 0 : 1;
}
