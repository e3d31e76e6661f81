/**
 * The command line of `pico`: which commands and flags there are, and which exit code an end has: 0 for
 * success, 2 for a wrong command line or setting, 1 for any other failure, with one line on stderr.
 */
import { Command, CommanderError } from "commander";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { createLogger, type LogDestination } from "../lib/log.ts";
import type { StartNode } from "../node/node.ts";
import { BACKUP_DESCRIPTION, BACKUP_FLAGS, backup } from "./backup.ts";
import { type Environment, FlagValues, type GivenFlags } from "./flag-values.ts";
import { failureLine, type ServeProcess, serve } from "./serve.ts";
import { type FlagDefinition, PROTOCOL_FLAG, SERVE_FLAGS, toOption } from "./serve-flags.ts";
import { readServeSettings } from "./serve-settings.ts";
import { PROGRAM_COMMIT, PROGRAM_VERSION } from "./version.ts";

/** The process that the program runs in. */
export interface ProgramProcess extends ServeProcess {
  readonly environment: Environment;
  readonly workingDirectory: string;
  /** Log and failures; normally stderr. */
  readonly errors: LogDestination;
  readonly isErrorsTerminal: boolean;
  readonly startNode: StartNode;
}

const EXIT_CODE_FAILURE = 1;
const EXIT_CODE_USAGE = 2;

/** Runs one command line (without the program's own name); resolves with the exit code. */
export async function runProgram(words: readonly string[], self: ProgramProcess): Promise<number> {
  let exitCode = 0;
  const program = createProgram(self, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(words, { from: "user" });
    return exitCode;
  } catch (error) {
    // Already told by the program itself: help, version, or one line about the usage.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : EXIT_CODE_USAGE;
    self.errors.write(`${failureLine(error)}\n`);
    return exitCodeOf(error);
  }
}

function createProgram(self: ProgramProcess, finish: (exitCode: number) => void): Command {
  const program = new Command("pico")
    .description("Durable stream server: append-only streams at URLs, in one executable.")
    .version(`pico ${PROGRAM_VERSION} (${PROGRAM_COMMIT})`, "-V, --version", "print version and commit")
    .addOption(toOption(PROTOCOL_FLAG))
    .exitOverride()
    .configureOutput({
      writeOut: (text) => self.print(text.replace(/\n$/, "")),
      writeErr: (text) => self.errors.write(text),
      outputError: (text, write) => write(`${usageLine(text)}\n`),
    });

  const serveCommand = program.command("serve").description("run a node");
  for (const definition of [...SERVE_FLAGS, PROTOCOL_FLAG]) serveCommand.addOption(toOption(definition));
  serveCommand.action(async () => {
    const flags = new Map([...givenFlags(program, [PROTOCOL_FLAG]), ...givenFlags(serveCommand, [...SERVE_FLAGS, PROTOCOL_FLAG])]);
    const settings = readServeSettings(new FlagValues(flags, self.environment), self.workingDirectory);
    const format = settings.logFormat ?? (self.isErrorsTerminal ? "text" : "json");
    const log = createLogger({ level: settings.logLevel, format, destination: self.errors, clock: self.clock });
    finish(await serve(settings, log, self.startNode, self));
  });

  const backupCommand = program.command("backup").summary("copy the state of a node while it runs").description(BACKUP_DESCRIPTION);
  for (const definition of BACKUP_FLAGS) backupCommand.addOption(toOption(definition));
  backupCommand.action(async () => {
    const values = new FlagValues(givenFlags(backupCommand, BACKUP_FLAGS), self.environment);
    const format = self.isErrorsTerminal ? "text" : "json";
    finish(await backup(values, createLogger({ level: "warn", format, destination: self.errors, clock: self.clock }), self));
  });
  return program;
}

function givenFlags(command: Command, definitions: readonly FlagDefinition[]): GivenFlags {
  const given = new Map<string, readonly string[]>();
  for (const definition of definitions) {
    const attribute = toOption(definition).attributeName();
    if (command.getOptionValueSource(attribute) !== "cli") continue;
    const value: unknown = command.getOptionValue(attribute);
    given.set(definition.flag, Array.isArray(value) ? value.map(String) : [String(value)]);
  }
  return given;
}

/** commander's own words about a wrong command line, as one line with the way to the help. */
function usageLine(text: string): string {
  const what = text
    .trim()
    .replace(/^error: /, "")
    .replace(/\.$/, "")
    .replace(/\s*\n\s*/g, " ");
  return `pico: ${what}; see pico --help and pico serve --help`;
}

/** Places that cannot be used are failures of the start, other wrong values are wrong usage. */
function exitCodeOf(error: unknown): number {
  if (!isPicoError(error, "settings")) return EXIT_CODE_FAILURE;
  return error instanceof PicoError && error.facts.isStartup === true ? EXIT_CODE_FAILURE : EXIT_CODE_USAGE;
}
