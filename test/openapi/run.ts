/**
 * Lets schemathesis ask a live node for everything that its API description names, and for much that it does not: no
 * undocumented status, no body or header that breaks its schema, no 500, no hang. The admin listener with the streams below
 * `/pico` first, then the Durable Streams listener.
 *
 *   bun test/openapi/run.ts [--seed N] [--seconds N]
 *
 * schemathesis is kept under `.cache/`, installed at first use. Without Python, or where it cannot be installed, nothing is run and
 * the reason is printed, except where `CI` is set: there it is a failure.
 */
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseArgs } from "node:util";
import { addCounts, type Counts, NO_COUNTS, readJunitCounts } from "../../scripts/test-report.ts";
import { freePorts, NodeProcess, SOURCES } from "../cluster/node-process.ts";
import { closeSuite } from "../support/test-report.ts";

const root = dirname(dirname(import.meta.dir));
const REQUIREMENTS = join(import.meta.dir, "requirements.txt");
const CONFIG = join(import.meta.dir, "schemathesis.toml");
/** Live reads end soon, so that each costs a moment of the time that there is. */
const NODE_FLAGS = ["--long-poll-timeout-sec", "1", "--sse-max-duration-sec", "1", "--log-level", "warn"];
/** No answer by then is a hang. */
const REQUEST_SECONDS = "10";
const INSTALL_MS_MAX = 90_000;
/** Beyond the time that a run was given: it ends its last request, and shrinks what it found. */
const GRACE_MS = 30_000;

interface Target {
  readonly name: string;
  readonly url: string;
  /** Which of the described paths this listener serves. */
  readonly filter: readonly string[];
  readonly operations: number;
  readonly seconds: number;
}

process.exit(await main());

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { seed: { type: "string", default: "1" }, seconds: { type: "string", default: "90" } } });
  const installed = await install();
  if (installed.problem !== null) return skipAll(installed.problem);
  const folder = mkdtempSync(join(tmpdir(), "pico-openapi-"));
  const ports = await freePorts();
  const logPath = join(folder, "log");
  const node = NodeProcess.spawn({ program: SOURCES, ports, dataDirectory: join(folder, "data"), logPath, flags: NODE_FLAGS });
  try {
    await node.ready();
    let counts = NO_COUNTS;
    for (const target of await targetsOf(ports, Number(values.seconds))) {
      counts = addCounts(counts, await runTarget(target, { program: installed.program, folder, seed: values.seed }));
    }
    counts = addCounts(counts, judgeNode(readFileSync(logPath, "utf8"), await isAlive(ports.admin)));
    return closeSuite(counts.passed, counts.failed, counts.skipped);
  } finally {
    await node.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

function skipAll(problem: string): number {
  const isRequired = process.env.CI !== undefined;
  console.log(`schemathesis is not there: ${problem}; ${isRequired ? "required here" : "skipped"}`);
  return closeSuite(0, isRequired ? 1 : 0, isRequired ? 0 : 1);
}

type Installed = { readonly program: string; readonly problem: null } | { readonly problem: string };

/** A virtual environment under `.cache/`, made anew when the requirements change. */
async function install(): Promise<Installed> {
  const home = join(root, ".cache/schemathesis");
  const program = join(home, "bin/schemathesis");
  const wanted = readFileSync(REQUIREMENTS, "utf8");
  const markPath = join(home, "installed.txt");
  if (existsSync(program) && existsSync(markPath) && readFileSync(markPath, "utf8") === wanted) return { program, problem: null };
  rmSync(home, { recursive: true, force: true });
  mkdirSync(dirname(home), { recursive: true });
  const pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", REQUIREMENTS];
  for (const words of [
    ["python3", "-m", "venv", home],
    [join(home, "bin/python"), ...pip],
  ]) {
    const problem = await tryRun(words);
    if (problem !== null) return { problem };
  }
  writeFileSync(markPath, wanted);
  return { program, problem: null };
}

/** Null where it went well. */
async function tryRun(words: readonly string[]): Promise<string | null> {
  try {
    const child = Bun.spawn([...words], { stdio: ["ignore", "inherit", "pipe"], timeout: INSTALL_MS_MAX });
    const [errors, exitCode] = await Promise.all([child.stderr.text(), child.exited]);
    return exitCode === 0 ? null : `${words.slice(0, 3).join(" ")} ended with ${exitCode}: ${errors.trim().split("\n").at(-1)}`;
  } catch (error) {
    return `${words[0]} cannot be run: ${error instanceof Error ? error.message : String(error)}`;
  }
}

async function targetsOf(ports: { readonly admin: number; readonly durableStreams: number }, seconds: number): Promise<readonly Target[]> {
  const url = `http://127.0.0.1:${ports.admin}`;
  const document = (await (await fetch(`${url}/openapi.json`)).json()) as { paths: Record<string, Record<string, unknown>> };
  const methods = ["get", "head", "put", "post", "delete"];
  const count = (isWanted: (path: string) => boolean) =>
    Object.entries(document.paths).flatMap(([path, item]) =>
      isWanted(path) ? Object.keys(item).filter((key) => methods.includes(key)) : [],
    ).length;
  const durableStreams = "/{name}";
  return [
    {
      name: "admin listener",
      url,
      filter: ["--exclude-path", durableStreams],
      operations: count((path) => path !== durableStreams),
      seconds: Math.ceil((seconds * 2) / 3),
    },
    {
      name: "Durable Streams listener",
      url: `http://127.0.0.1:${ports.durableStreams}`,
      filter: ["--include-path", durableStreams],
      operations: count((path) => path === durableStreams),
      seconds: Math.ceil(seconds / 3),
    },
  ].map((target) => ({ ...target, filter: [`http://127.0.0.1:${ports.admin}/openapi.json`, ...target.filter] }));
}

interface Tool {
  readonly program: string;
  readonly folder: string;
  readonly seed: string;
}

/** Its counts are of operations, and one of what was asked in the order of their links. */
async function runTarget(target: Target, { program, folder, seed }: Tool): Promise<Counts> {
  console.log(`\n== ${target.name}, seed ${seed}, ${target.seconds} s`);
  const reportPath = join(folder, `${target.name.replaceAll(" ", "-")}.xml`);
  const words = [program, "--config-file", CONFIG, "run", ...target.filter, "--url", target.url];
  const bounds = ["--max-time", String(target.seconds), "--request-timeout", REQUEST_SECONDS, "--seed", seed];
  const output = ["--no-color", "--continue-on-failure", "--generation-database", "none", "--report-junit-path", reportPath];
  const child = Bun.spawn([...words, ...bounds, ...output], {
    cwd: folder,
    stdio: ["ignore", "inherit", "inherit"],
    timeout: target.seconds * 1000 + GRACE_MS,
  });
  const exitCode = await child.exited;
  const counts = existsSync(reportPath) ? readJunitCounts(readFileSync(reportPath, "utf8")) : null;
  if (counts === null) return fail(`no report, exit code ${exitCode}`);
  const total = counts.passed + counts.failed;
  if (total < target.operations) return addCounts(counts, fail(`${total} operations were asked of ${target.operations}`));
  return exitCode !== 0 && counts.failed === 0 ? addCounts(counts, fail(`exit code ${exitCode}`)) : counts;
}

function fail(reason: string): Counts {
  console.log(`failed: ${reason}`);
  return { passed: 0, failed: 1, skipped: 0 };
}

/** What the node itself says of it: an error in its log is a fault also where the client was told something good. */
function judgeNode(log: string, isReady: boolean): Counts {
  const errors = log.split("\n").filter((line) => line.includes('"level":"error"') || line.includes('"level":"fatal"'));
  for (const line of errors.slice(0, 10)) console.log(line);
  if (!isReady) return fail("the node is not ready any more");
  return errors.length > 0 ? fail(`${errors.length} errors in the node's log`) : { passed: 1, failed: 0, skipped: 0 };
}

async function isAlive(port: number): Promise<boolean> {
  try {
    return (await fetch(`http://127.0.0.1:${port}/ready`)).status === 200;
  } catch {
    return false;
  }
}
