/** The process that the program runs in, as its commands see it. */

import type { LogDestination } from "../lib/log.ts";
import type { Random } from "../lib/random.ts";
import type { StartNode } from "../node/node.ts";
import type { Environment } from "./flag-values.ts";
import type { ServeProcess } from "./serve.ts";

/** Standard output, for data: what a command gives, byte for byte. */
export interface DataOutput {
  /** Resolves when whoever reads the output has taken the bytes, or the system holds them. Rejects with `OutputClosed`. */
  write(bytes: Uint8Array): Promise<void>;
}

/** Standard input. */
export interface DataInput {
  readonly isTerminal: boolean;
  /** Of a regular file; null where the end is not known. */
  readonly sizeBytes: number | null;
  /** Fills the beginning of `buffer`; resolves with the count, 0 at the end. */
  read(buffer: Uint8Array): Promise<number>;
}

export interface ProgramProcess extends ServeProcess {
  readonly environment: Environment;
  readonly workingDirectory: string;
  readonly input: DataInput;
  readonly output: DataOutput;
  readonly isOutputTerminal: boolean;
  /** Acknowledgements, notes, log and failures; normally stderr. */
  readonly errors: LogDestination;
  readonly isErrorsTerminal: boolean;
  readonly random: Random;
  readonly startNode: StartNode;
}

/** Nobody reads the output any more, as behind `pico read /s | head -1`: the command has nothing left to do. */
export class OutputClosed extends Error {
  override readonly name = "OutputClosed";
}
