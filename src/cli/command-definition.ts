/** A command as data: what the command line accepts, what the help says, and what runs. `program.ts` lists them all. */
import type { FlagDefinition } from "./flag-definition.ts";
import type { FlagValues } from "./flag-values.ts";
import type { ProgramProcess } from "./program-process.ts";

export interface CommandDefinition {
  readonly name: string;
  /** One line, in the list of commands. */
  readonly summary: string;
  /** Paragraphs; the help breaks their lines itself. */
  readonly description: readonly string[];
  /** Words behind the command, in order; all are needed. */
  readonly operands: readonly OperandDefinition[];
  readonly flags: readonly FlagDefinition[];
  /** It talks to a server: its help shows the flags that stand before a command too. */
  readonly isClient: boolean;
  /** Command lines as a user writes them, at least one. */
  readonly examples: readonly CommandExample[];
  /** Resolves with the exit code. Throws `settings` for wrong flags, anything else for a failure. */
  run(call: CommandCall): Promise<number>;
}

export interface OperandDefinition {
  /** As the help shows it: `STREAM`. */
  readonly name: string;
  readonly help: string;
  /** The words that it can be; absent: any. */
  readonly words?: readonly string[];
}

export interface CommandExample {
  readonly line: string;
  readonly does: string;
}

export interface CommandCall {
  /** One for each operand. */
  readonly operands: readonly string[];
  /** Of the command's flags, and of those that stand before a command too. */
  readonly values: FlagValues;
  readonly self: ProgramProcess;
}

export const STREAM_OPERAND: OperandDefinition = {
  name: "STREAM",
  help: "name of the stream, like /logs/app; a slash is put before one without",
};
