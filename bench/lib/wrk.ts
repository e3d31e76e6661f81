/** Runs wrk with `wrk-load.lua` and reads what it measured. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const SCRIPT = join(import.meta.dir, "../wrk-load.lua");
/** Beyond its own duration wrk takes a moment; much longer and something hangs. */
const GRACE_MS = 20_000;

export interface WrkLoad {
  readonly url: string;
  readonly method: "GET" | "POST";
  /** Requested in turn. */
  readonly paths: readonly string[];
  readonly bodyBytes: number;
  readonly connections: number;
  readonly seconds: number;
  /** For the list of paths. */
  readonly folder: string;
}

export interface WrkResult {
  readonly requests: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Rejects where wrk fails, and where any request did: a rate of refusals is no rate. */
export async function runWrk(load: WrkLoad): Promise<WrkResult> {
  const pathsFile = join(load.folder, "paths.txt");
  writeFileSync(pathsFile, `${load.paths.join("\n")}\n`);
  const options = ["--threads", "1", "--connections", String(load.connections), "--duration", `${load.seconds}s`, "--timeout", "10s"];
  const child = Bun.spawn(["wrk", ...options, "--script", SCRIPT, load.url, "--", load.method, pathsFile, String(load.bodyBytes)], {
    stdout: "pipe",
    stderr: "pipe",
    timeout: load.seconds * 1000 + GRACE_MS,
  });
  const output = await new Response(child.stdout).text();
  await child.exited;
  const line = output.split("\n").find((text) => text.startsWith("{"));
  if (line === undefined) throw new Error(`wrk says no result:\n${output}\n${await new Response(child.stderr).text()}`);
  const { requests, microseconds, refused, broken, late, p50, p99 } = parseResult(line);
  if (refused + broken + late > 0) {
    throw new Error(`of ${requests} requests ${refused} were refused, ${broken} connections broke, ${late} answers were late`);
  }
  return { requests, seconds: microseconds / 1e6, p50Ms: p50 / 1000, p99Ms: p99 / 1000 };
}

interface ScriptResult {
  readonly requests: number;
  readonly microseconds: number;
  /** Answers of status 400 and above. */
  readonly refused: number;
  readonly broken: number;
  readonly late: number;
  readonly p50: number;
  readonly p99: number;
}

/** The line that `wrk-load.lua` prints. */
function parseResult(line: string): ScriptResult {
  return JSON.parse(line) as ScriptResult;
}
