/** Commands of `pico` as real processes: what they are given, say, and end with. */
import { type ChildProcess, spawn } from "node:child_process";
import { program } from "./test-node.ts";

export interface CommandEnd {
  /** Null where a signal ended it. */
  readonly exitCode: number | null;
  readonly output: string;
  readonly errors: string;
}

export class PicoCommand {
  readonly child: ChildProcess;
  readonly ended: Promise<CommandEnd>;
  output = "";
  errors = "";
  #wakers: (() => void)[] = [];

  /** `variables`: all of the command's environment. */
  constructor(words: readonly string[], variables: Readonly<Record<string, string>> = {}) {
    const [file = "", ...first] = program;
    this.child = spawn(file, [...first, ...words], { cwd: "/", env: { ...variables }, stdio: ["pipe", "pipe", "pipe"] });
    // A command that ends early does not read the rest.
    this.child.stdin?.on("error", () => {});
    this.child.stdout?.on("data", (chunk: Buffer) => {
      this.output += chunk.toString("utf8");
      this.#wake();
    });
    this.child.stderr?.on("data", (chunk: Buffer) => {
      this.errors += chunk.toString("utf8");
      this.#wake();
    });
    this.ended = new Promise((resolve) => {
      this.child.once("close", (exitCode) => {
        resolve({ exitCode, output: this.output, errors: this.errors });
        this.#wake();
      });
    });
  }

  /** Runs one to its end, with `input` as the whole of stdin. */
  static async run(
    words: readonly string[],
    input: string | Uint8Array = "",
    variables: Readonly<Record<string, string>> = {},
  ): Promise<CommandEnd> {
    const command = new PicoCommand(words, variables);
    command.child.stdin?.end(input);
    return command.ended;
  }

  /** Resolves once it has said what `isSaid` looks for; rejects if it ends before. */
  async said(isSaid: (command: PicoCommand) => boolean): Promise<void> {
    while (!isSaid(this)) {
      if (this.child.exitCode !== null || this.child.signalCode !== null)
        throw new Error(`it ended with ${this.child.exitCode}: ${this.errors}`);
      await new Promise<void>((resolve) => this.#wakers.push(resolve));
    }
  }

  write(text: string): void {
    this.child.stdin?.write(text);
  }

  #wake(): void {
    for (const wake of this.#wakers.splice(0)) wake();
  }
}
