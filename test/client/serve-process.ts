/**
 * `pico serve` as a real process, for a suite that runs under Bun and under Node: what is used here is in both. The
 * process is killed and started again on the same ports and data. Whoever starts one ends it.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { CaseStage, TestServer } from "./case-stage.ts";
import { FaultProxy } from "./fault-proxy.ts";

export interface ServeProgram {
  /** The Bun that runs the server, whatever runs the suite. */
  readonly bunPath: string;
  /** Root of the project. */
  readonly root: string;
}

/** The stage of a suite that runs in a program. */
export function processStage(program: ServeProgram): CaseStage {
  return {
    startServer: (flags) => ServeProcess.start(program, flags),
    startProxy: (target, rule) => FaultProxy.start(target, rule),
  };
}

export class ServeProcess implements TestServer {
  readonly #program: ServeProgram;
  readonly #flags: readonly string[];
  readonly #folder = mkdtempSync(join(tmpdir(), "pico-client-"));
  #child: ChildProcess | null = null;
  #picoUrl = "http://127.0.0.1:0";
  #durableStreamsUrl = "http://127.0.0.1:0";

  private constructor(program: ServeProgram, flags: readonly string[]) {
    this.#program = program;
    this.#flags = flags;
  }

  /** Starts a server on free ports; resolves once it serves. */
  static async start(program: ServeProgram, flags: readonly string[] = []): Promise<ServeProcess> {
    const server = new ServeProcess(program, flags);
    await server.#spawn();
    return server;
  }

  get picoUrl(): string {
    return this.#picoUrl;
  }

  get durableStreamsUrl(): string {
    return this.#durableStreamsUrl;
  }

  async restart(): Promise<void> {
    await this.#end("SIGKILL");
    await this.#spawn();
  }

  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  async revive(): Promise<void> {
    await this.#spawn();
  }

  async remove(): Promise<void> {
    await this.#end("SIGKILL");
    rmSync(this.#folder, { recursive: true, force: true });
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = null;
    if (child === null || child.exitCode !== null || child.signalCode !== null) return;
    const exited = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    await exited;
  }

  async #spawn(): Promise<void> {
    const { bunPath, root } = this.#program;
    const words = [join(root, "src/cli/main.ts"), "serve", "--data-dir", join(this.#folder, "data"), "--no-admin", "--log-level", "error"];
    words.push("--listen", new URL(this.#picoUrl).host, "--ds-listen", new URL(this.#durableStreamsUrl).host);
    const child = spawn(bunPath, [...words, ...this.#flags], { cwd: root, env: cleanEnvironment(), stdio: ["ignore", "pipe", "inherit"] });
    this.#child = child;
    let said = "";
    await new Promise<void>((resolve, reject) => {
      child.stdout?.on("data", (chunk: Buffer) => {
        said += chunk.toString("utf8");
        const picoUrl = /^serving on (http:\/\/\S+)/m.exec(said)?.[1];
        const durableStreamsUrl = /^durable streams on (http:\/\/\S+)/m.exec(said)?.[1];
        if (picoUrl === undefined || durableStreamsUrl === undefined) return;
        this.#picoUrl = picoUrl;
        this.#durableStreamsUrl = durableStreamsUrl;
        resolve();
      });
      child.once("error", reject);
      child.once("exit", (code) => reject(new Error(`the server ended with ${code} before it served: ${said}`)));
    });
  }
}

/** Variables of the person who runs the tests must not reach the server. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("PICO_")));
}
