/** A server under measurement: a child process on loopback, waited for, looked at through `/proc`, ended by its id. */
import { mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Answers within this, or the start has failed. */
const START_MS_MAX = 60_000;
/** A graceful stop that takes longer is cut. */
const STOP_MS_MAX = 60_000;
const LOOK_MS = 2;
/** Clock ticks a second in `/proc/PID/stat`. */
const TICKS_PER_SECOND = 100;

export interface ServerCommand {
  readonly command: readonly string[];
  /** Answers 200 (`ready`) or anything at all (`any`) once the server serves. */
  readonly probe: { readonly url: string; readonly expects: "ready" | "any" };
}

export class ServerProcess {
  readonly #child: Bun.Subprocess;
  /** Milliseconds from the start of the process until it served. */
  readonly readyMs: number;

  private constructor(child: Bun.Subprocess, readyMs: number) {
    this.#child = child;
    this.readyMs = readyMs;
  }

  /** Output goes to `logFile`. Rejects, with the end of the log, where the server does not come up. */
  static async start({ command, probe }: ServerCommand, logFile: string): Promise<ServerProcess> {
    const log = openSync(logFile, "a");
    const startedMs = performance.now();
    // Given, since what is not given is the environment of the start.
    const child = Bun.spawn([...command], { env: process.env, stdin: "ignore", stdout: log, stderr: log });
    while (performance.now() - startedMs < START_MS_MAX && child.exitCode === null) {
      if (await answers(probe)) return new ServerProcess(child, performance.now() - startedMs);
      await Bun.sleep(LOOK_MS);
    }
    child.kill("SIGKILL");
    await child.exited;
    throw new Error(`${command.join(" ")} did not come up:\n${readFileSync(logFile, "utf8").slice(-2000)}`);
  }

  /** Resident memory in bytes. */
  residentBytes(): number {
    const match = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${this.#child.pid}/status`, "utf8"));
    return Number(match?.[1] ?? Number.NaN) * 1024;
  }

  /** Processor time used so far by all of its threads, in seconds. */
  cpuSeconds(): number {
    const stat = readFileSync(`/proc/${this.#child.pid}/stat`, "utf8");
    // Fields behind the name, which may hold spaces: user and system time are the 12th and 13th of them.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return (Number(fields[11]) + Number(fields[12])) / TICKS_PER_SECOND;
  }

  /** SIGTERM, and SIGKILL where that takes too long. */
  async stop(): Promise<void> {
    this.#child.kill("SIGTERM");
    const timer = setTimeout(() => this.#child.kill("SIGKILL"), STOP_MS_MAX);
    await this.#child.exited;
    clearTimeout(timer);
  }

  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.#child.exited;
  }
}

/** A fresh folder under the temporary one, or under `PICO_BENCH_DIR`: the disk that is measured. */
export function makeFolder(): string {
  return mkdtempSync(join(process.env.PICO_BENCH_DIR ?? tmpdir(), "pico-bench-"));
}

export function removeFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

async function answers({ url, expects }: ServerCommand["probe"]): Promise<boolean> {
  try {
    const response = await fetch(url);
    await response.arrayBuffer();
    return expects === "any" || response.status === 200;
  } catch {
    // Nobody listens yet.
    return false;
  }
}
