/**
 * `pico serve` as a real process, on ports of this machine that stay the same over its restarts, as an
 * operator runs it. Whoever starts one ends it.
 */
import { closeSync, existsSync, openSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { freePort } from "../../scripts/free-port.ts";
import { HttpConnection } from "./http-connection.ts";

const root = dirname(dirname(import.meta.dir));

/** Long enough for a crowded machine; a node that needs it is broken. */
const START_MS_MAX = 30_000;
const READY_POLL_MS = 3;

/** What runs the program: the executable of `./compile.sh`, or the sources. */
export type Program = readonly string[];
export const EXECUTABLE: Program = [join(root, "dist/pico")];
export const SOURCES: Program = [process.execPath, join(root, "src/cli/main.ts")];

export interface Ports {
  readonly pico: number;
  readonly durableStreams: number;
  readonly admin: number;
}

/** Three ports that nobody listens on. */
export async function freePorts(): Promise<Ports> {
  const [pico, durableStreams, admin] = [await freePort(), await freePort(), await freePort()];
  return { pico, durableStreams, admin };
}

export interface NodeOptions {
  readonly program: Program;
  readonly dataDirectory: string;
  readonly ports: Ports;
  /** Output and log are appended to it. */
  readonly logPath: string;
  readonly flags?: readonly string[];
  /** Variables beside those of this process. */
  readonly environment?: Readonly<Record<string, string>>;
}

export interface NodeExit {
  /** Null where a signal ended it. */
  readonly exitCode: number | null;
  readonly signal: string | null;
}

export class NodeProcess {
  readonly ports: Ports;
  readonly logPath: string;
  readonly startedMs: number;
  readonly exited: Promise<NodeExit>;
  readonly #child: Bun.Subprocess;

  private constructor(options: NodeOptions, child: Bun.Subprocess, startedMs: number) {
    this.ports = options.ports;
    this.logPath = options.logPath;
    this.startedMs = startedMs;
    this.#child = child;
    this.exited = child.exited.then(() => ({
      exitCode: child.exitCode,
      signal: child.signalCode === null ? null : String(child.signalCode),
    }));
  }

  /** Starts the process and returns at once. */
  static spawn(options: NodeOptions): NodeProcess {
    const { program, ports, dataDirectory, logPath, flags = [], environment = {} } = options;
    const words = ["serve", "--data-dir", dataDirectory];
    words.push("--listen", `127.0.0.1:${ports.pico}`, "--ds-listen", `127.0.0.1:${ports.durableStreams}`);
    words.push("--admin-listen", `127.0.0.1:${ports.admin}`, "--log-format", "json", ...flags);
    const log = openSync(logPath, "a");
    const startedMs = performance.now();
    const child = Bun.spawn([...program, ...words], {
      cwd: "/",
      env: { ...cleanEnvironment(), ...environment },
      stdio: ["ignore", log, log],
    });
    closeSync(log);
    return new NodeProcess(options, child, startedMs);
  }

  /** Starts the process and resolves once it is ready. */
  static async start(options: NodeOptions): Promise<NodeProcess> {
    const node = NodeProcess.spawn(options);
    await node.ready();
    return node;
  }

  get pid(): number {
    return this.#child.pid;
  }

  get hasExited(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  /** Resident memory in bytes. */
  get residentBytes(): number {
    const pages = Number(readFileSync(`/proc/${this.pid}/statm`, "utf8").split(" ")[1]);
    return pages * 4096;
  }

  /** Resolves with the milliseconds from the start of the process to `/ready` 200. */
  async ready(limitMs = START_MS_MAX): Promise<number> {
    const connection = new HttpConnection(this.ports.admin);
    try {
      while (performance.now() - this.startedMs < limitMs) {
        const answer = await connection.request({ method: "GET", path: "/ready", timeoutMs: limitMs });
        if (answer?.status === 200) return performance.now() - this.startedMs;
        if (this.hasExited) throw new Error(`the node ended before it was ready: ${this.lastWords()}`);
        await Bun.sleep(READY_POLL_MS);
      }
      throw new Error(`the node was not ready after ${limitMs} ms: ${this.lastWords()}`);
    } finally {
      connection.close();
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** `kill -9`; resolves when the process is gone. */
  async kill(): Promise<void> {
    this.#child.kill("SIGKILL");
    await this.exited;
  }

  /** SIGTERM; resolves with the exit code. */
  async stop(): Promise<number | null> {
    this.#child.kill("SIGTERM");
    return (await this.exited).exitCode;
  }

  lastWords(): string {
    return existsSync(this.logPath) ? readFileSync(this.logPath, "utf8").slice(-3000) : "";
  }
}

export interface FailedStart {
  readonly exitCode: number;
  readonly errors: string;
}

/** Runs `pico serve` where it is expected to refuse; its log is off, so that stderr is the refusal. */
export async function refusedStart(options: Omit<NodeOptions, "logPath">): Promise<FailedStart> {
  const { program, ports, dataDirectory, flags = [] } = options;
  const words = ["serve", "--data-dir", dataDirectory, "--log-level", "silent"];
  words.push("--listen", `127.0.0.1:${ports.pico}`, "--ds-listen", `127.0.0.1:${ports.durableStreams}`);
  words.push("--admin-listen", `127.0.0.1:${ports.admin}`, ...flags);
  const child = Bun.spawn([...program, ...words], { cwd: "/", env: cleanEnvironment(), stdio: ["ignore", "ignore", "pipe"] });
  const timer = setTimeout(() => child.kill("SIGKILL"), START_MS_MAX);
  const [errors, exitCode] = await Promise.all([child.stderr.text(), child.exited]);
  clearTimeout(timer);
  return { exitCode, errors };
}

/** Variables of the person who runs the tests must not reach the node. */
function cleanEnvironment(): Record<string, string> {
  const entries = Object.entries(process.env).filter(([name, value]) => value !== undefined && !name.startsWith("PICO_"));
  return Object.fromEntries(entries) as Record<string, string>;
}
