/**
 * Brings the peers that the benchmark compares with, into `.cache/peers`:
 *
 *   bun bench/peers/fetch.ts [--install]
 *
 * - the Rust server, crate `durable-streams`, built by cargo from crates.io
 * - the Node server, npm `@durable-streams/server`
 * - wrk, the load generator, comes with the system; it is only looked for, and installed by apt-get with
 *   `--install`
 *
 * What is there already is left alone. What cannot be had is named, and the benchmark runs without it.
 */
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { NODE_PACKAGE, NODE_VERSION, PEERS_FOLDER, RUST_BINARY, RUST_VERSION } from "../lib/subjects.ts";

/** A build from source on a small machine. */
const STEP_MS_MAX = 20 * 60_000;

interface Part {
  readonly name: string;
  isThere(): boolean;
  /** Commands that bring it; empty where only a person may. */
  readonly steps: readonly (readonly string[])[];
  readonly remedy: string;
}

const nodeFolder = join(PEERS_FOLDER, "node");

function parts(isInstalling: boolean): readonly Part[] {
  return [
    {
      name: `crate durable-streams ${RUST_VERSION}`,
      isThere: () => existsSync(RUST_BINARY),
      steps: [["cargo", "install", "durable-streams", "--version", RUST_VERSION, "--locked", "--root", join(PEERS_FOLDER, "rust")]],
      remedy: "it needs cargo 1.75 or newer and a C linker (https://rustup.rs)",
    },
    {
      name: `npm @durable-streams/server ${NODE_VERSION}`,
      isThere: () => existsSync(NODE_PACKAGE),
      steps: [["npm", "install", "--prefix", nodeFolder, "--no-audit", "--no-fund", `@durable-streams/server@${NODE_VERSION}`]],
      remedy: "it needs Node and npm",
    },
    {
      name: "wrk",
      isThere: () => Bun.which("wrk") !== null,
      steps: isInstalling ? [["apt-get", "install", "--yes", "wrk"]] : [],
      remedy:
        "install the package wrk (Debian, Ubuntu: apt-get install wrk; or run this with --install), the benchmark cannot run without it",
    },
  ];
}

function bring(part: Part): boolean {
  if (part.isThere()) {
    console.log(`${part.name}: there`);
    return true;
  }
  for (const step of part.steps) {
    console.log(`${part.name}: ${step.join(" ")}`);
    const [program] = step;
    if (program === undefined || Bun.which(program) === null) break;
    const { exitCode } = Bun.spawnSync([...step], { stdio: ["ignore", "inherit", "inherit"], timeout: STEP_MS_MAX });
    if (exitCode !== 0) break;
  }
  if (part.isThere()) return true;
  console.error(`${part.name}: missing; ${part.remedy}`);
  return false;
}

mkdirSync(nodeFolder, { recursive: true });
// Keeps npm from looking for a project above.
const manifest = join(nodeFolder, "package.json");
if (!existsSync(manifest)) writeFileSync(manifest, '{"private":true}\n');
const outcomes = parts(process.argv.includes("--install")).map(bring);
if (outcomes.includes(false)) process.exitCode = 1;
