/** A process of the command line in a test's hands, with the real time. */
import type { Environment } from "../../src/cli/flag-values.ts";
import type { DataInput, ProgramProcess } from "../../src/cli/program-process.ts";
import { utf8Decoder, utf8Encoder } from "../../src/lib/bytes.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { StartNode } from "../../src/node/node.ts";
import { SeededRandom } from "../support/seeded-random.ts";

export interface FakeProcessOptions {
  readonly environment?: Environment;
  /** Whole of stdin. */
  readonly input?: string;
  readonly isInputTerminal?: boolean;
  readonly isOutputTerminal?: boolean;
  readonly isErrorsTerminal?: boolean;
}

export class FakeProcess implements ProgramProcess {
  outputText = "";
  errorText = "";
  readonly environment: Environment;
  readonly workingDirectory = "/nowhere";
  readonly clock = systemClock;
  readonly random = new SeededRandom(1);
  readonly isOutputTerminal: boolean;
  readonly isErrorsTerminal: boolean;
  readonly input: DataInput;
  readonly output = { write: async (bytes: Uint8Array) => void this.print(utf8Decoder.decode(bytes), "") };
  readonly errors = { write: (text: string) => this.#hear(text) };

  constructor(options: FakeProcessOptions = {}) {
    this.environment = options.environment ?? {};
    this.isOutputTerminal = options.isOutputTerminal ?? false;
    this.isErrorsTerminal = options.isErrorsTerminal ?? false;
    const bytes = utf8Encoder.encode(options.input ?? "");
    let at = 0;
    this.input = {
      isTerminal: options.isInputTerminal ?? false,
      sizeBytes: bytes.length,
      async read(buffer) {
        const { written } = { written: Math.min(buffer.length, bytes.length - at) };
        buffer.set(bytes.subarray(at, at + written));
        at += written;
        return written;
      },
    };
  }

  readonly startNode: StartNode = async () => {
    throw new Error("no test of a client starts a node");
  };

  print(line: string, end = "\n"): void {
    this.outputText += line + end;
  }
  onStopSignal(): void {}
  exitAtOnce(): void {}

  #hear(text: string): void {
    this.errorText += text;
  }
}
