/**
 * The command line of `pico`: which commands there are, and which exit code an end has: 0 for success, 2 for a wrong
 * command line or setting, 1 for any other failure, with one line on stderr.
 */
import { Argument, Command, CommanderError, type Help } from "commander";
import { utf8Encoder } from "../lib/bytes.ts";
import { isPicoError, PicoError } from "../lib/errors.ts";
import { hidePostgresUrl } from "../node/postgres-uri.ts";
import { ADMIN_GROUP } from "./admin.ts";
import { APPEND_COMMAND } from "./append.ts";
import { BACKUP_COMMAND } from "./backup.ts";
import { GLOBAL_FLAGS } from "./client-flags.ts";
import { CLOSE_COMMAND } from "./close.ts";
import type { CommandDefinition } from "./command-definition.ts";
import type { CommandGroup } from "./command-group.ts";
import { completionCommand } from "./completion.ts";
import { CREATE_COMMAND } from "./create.ts";
import { DELETE_COMMAND } from "./delete.ts";
import { DOCTOR_COMMAND } from "./doctor.ts";
import { failureLine } from "./failure.ts";
import { type FlagDefinition, toOption, variablesOf } from "./flag-definition.ts";
import { type Environment, FlagValues } from "./flag-values.ts";
import { HEAD_COMMAND } from "./head.ts";
import { LS_COMMAND } from "./ls.ts";
import { OutputClosed, type ProgramProcess } from "./program-process.ts";
import { READ_COMMAND } from "./read.ts";
import { RESTORE_COMMAND } from "./restore.ts";
import { SERVE_COMMAND } from "./serve-command.ts";
import { TAIL_COMMAND } from "./tail.ts";
import { hasColors, paint } from "./terminal-colors.ts";
import { TRIM_COMMAND } from "./trim.ts";
import { PROGRAM_COMMIT, PROGRAM_VERSION } from "./version.ts";

const EXIT_CODE_FAILURE = 1;
const EXIT_CODE_USAGE = 2;

/** As the help lists them. */
const COMMANDS: readonly (CommandDefinition | CommandGroup)[] = [
  SERVE_COMMAND,
  CREATE_COMMAND,
  HEAD_COMMAND,
  APPEND_COMMAND,
  READ_COMMAND,
  TAIL_COMMAND,
  LS_COMMAND,
  CLOSE_COMMAND,
  DELETE_COMMAND,
  TRIM_COMMAND,
  ADMIN_GROUP,
  BACKUP_COMMAND,
  RESTORE_COMMAND,
  DOCTOR_COMMAND,
];

/** One command line on its way. */
interface ProgramRun {
  readonly self: ProgramProcess;
  /** Help and version, as far as they were asked for: written at the end, where a failure is one of the program. */
  told: string;
  exitCode: number;
}

/** Runs one command line (without the program's own name); resolves with the exit code. */
export async function runProgram(words: readonly string[], self: ProgramProcess): Promise<number> {
  const run: ProgramRun = { self, told: "", exitCode: 0 };
  try {
    await parse(createProgram(run), words, run);
    if (run.told !== "") await self.output.write(utf8Encoder.encode(run.told));
    return run.exitCode;
  } catch (error) {
    if (error instanceof OutputClosed) return 0;
    const line = failureLine(error);
    const isColored = hasColors(self.environment, self.isErrorsTerminal);
    self.errors.write(`${line.replace(/^pico:/, (name) => paint("red", name, isColored))}\n`);
    return exitCodeOf(error);
  }
}

async function parse(program: Command, words: readonly string[], run: ProgramRun): Promise<void> {
  try {
    await program.parseAsync(words, { from: "user" });
  } catch (error) {
    if (!(error instanceof CommanderError)) throw error;
    // Already told by the program itself: help, version, or one line about the usage.
    run.exitCode = error.exitCode === 0 ? 0 : EXIT_CODE_USAGE;
  }
}

function createProgram(run: ProgramRun): Command {
  const program = new Command("pico")
    .description("Durable stream server: append-only streams at URLs, in one executable.")
    .usage("COMMAND [FLAGS]")
    .version(`pico ${PROGRAM_VERSION} (${PROGRAM_COMMIT})`, "-V, --version", "print version and commit")
    .helpOption("-h, --help", "print help")
    .helpCommand("help [COMMAND]", "print the help of a command")
    .exitOverride();
  configure(program, run, "pico");
  for (const definition of GLOBAL_FLAGS) program.addOption(toOption(definition));
  for (const definition of [...COMMANDS, completionCommand(program)]) {
    if ("commands" in definition) addGroup(program, definition, run);
    else addCommand(program, definition, definition.isClient ? GLOBAL_FLAGS : [], run);
  }
  program.addHelpText("after", "\npico COMMAND --help tells more, with examples.");
  return program;
}

function addGroup(program: Command, group: CommandGroup, run: ProgramRun): void {
  const { name, summary, description, flags, commands } = group;
  const command = program
    .command(name)
    .summary(summary)
    .description([summary, ...description].join("\n\n"))
    .usage("[FLAGS] COMMAND [FLAGS]")
    .helpOption("-h, --help", "print this help")
    .helpCommand("help [COMMAND]", "print the help of a command");
  configure(command, run, `pico ${name}`);
  for (const flag of flags) command.addOption(toOption(flag));
  for (const definition of commands) addCommand(command, definition, flags, run);
  command.addHelpText("after", `\npico ${name} COMMAND --help tells more, with examples.`);
}

/** `shared`: flags that may stand before the command too, and that its help shows. */
function addCommand(parent: Command, definition: CommandDefinition, shared: readonly FlagDefinition[], run: ProgramRun): void {
  const { self } = run;
  const { name, summary, description, operands, flags, examples } = definition;
  const command = parent
    .command(name)
    .summary(summary)
    .description([summary, ...description].join("\n\n"))
    .helpOption("-h, --help", "print this help");
  configure(command, run, pathOf(command));
  const style = { ...helpStyle(self), showGlobalOptions: shared.length > 0 };
  command.configureHelp({ ...style, visibleGlobalOptions: () => shared.map(toOption) });
  for (const operand of operands) {
    const argument = new Argument(`<${operand.name}>`, operand.help);
    command.addArgument(operand.words === undefined ? argument : argument.choices(operand.words));
  }
  for (const flag of flags) command.addOption(toOption(flag));
  command.addHelpText("after", () => `\n${exampleText(examples, hasColors(self.environment, self.isOutputTerminal))}`);
  command.action(async () => {
    const known = [...GLOBAL_FLAGS, ...shared, ...flags];
    const given = new Map([...ancestorsOf(command), command].flatMap((one) => [...givenFlags(one, known)]));
    const values = new FlagValues(given, pickVariables(known, self.environment));
    run.exitCode = await definition.run({ operands: command.processedArgs.map(String), values, self });
  });
}

/** The program first. */
function ancestorsOf({ parent }: Command): readonly Command[] {
  return parent === null ? [] : [...ancestorsOf(parent), parent];
}

/** The words that lead to a command: `pico admin nodes`. */
function pathOf(command: Command): string {
  return [...ancestorsOf(command), command].map((one) => one.name()).join(" ");
}

/** Where texts go and how they look. `path`: the words that lead to the command. */
function configure(command: Command, run: ProgramRun, path: string): void {
  const { self } = run;
  command
    .configureOutput({
      writeOut: (text) => {
        run.told += text;
      },
      writeErr: (text) => self.errors.write(text),
      outputError: (text, write) =>
        write(`${usageLine(text.startsWith("error: too many") ? surplus(command, path) : text, `${path} --help`)}\n`),
      getOutHasColors: () => hasColors(self.environment, self.isOutputTerminal),
      getErrHasColors: () => hasColors(self.environment, self.isErrorsTerminal),
    })
    .configureHelp(helpStyle(self));
}

function helpStyle(self: ProgramProcess): Partial<Help> {
  const isColored = hasColors(self.environment, self.isOutputTerminal || self.isErrorsTerminal);
  return { styleTitle: (title) => paint("bold", title, isColored) };
}

function exampleText(examples: CommandDefinition["examples"], isColored: boolean): string {
  const lines = examples.map(({ line, does }) => `  # ${does}\n  ${line}`);
  return [paint("bold", "Examples:", isColored), ...lines].join("\n");
}

function givenFlags(command: Command, definitions: readonly FlagDefinition[]): Map<string, readonly string[]> {
  const given = new Map<string, readonly string[]>();
  for (const definition of definitions) {
    const attribute = toOption(definition).attributeName();
    if (command.getOptionValueSource(attribute) !== "cli") continue;
    const value: unknown = command.getOptionValue(attribute);
    given.set(definition.flag, Array.isArray(value) ? value.map(String) : [String(value)]);
  }
  return given;
}

/** The part of the environment that stands for flags of a command. */
function pickVariables(definitions: readonly FlagDefinition[], environment: Environment): Environment {
  const names = definitions.flatMap(variablesOf);
  return Object.fromEntries(names.map((name) => [name, environment[name]]));
}

/** The first word behind the operands of a command: commander would tell how many there are, not which. */
function surplus({ registeredArguments: wanted, args }: Command, path: string): string {
  const operands = wanted.map((argument) => argument.name()).join(" ") || "no word without a flag";
  return `${JSON.stringify(hidePostgresUrl(args[wanted.length] ?? ""))} is too many: ${path} takes ${operands}`;
}

/** commander's own words about a wrong command line, as one line with the way to the help. */
function usageLine(text: string, help: string): string {
  const what = text
    .trim()
    .replace(/^error: /, "")
    .replace(/\.$/, "")
    .replace(/\s*\n\s*/g, " ")
    // The word that it quotes may be the URL of a database, whose flag is misspelled.
    .replace(/'[^']*postgres(?:ql)?:.*'/is, (quoted) => `${hidePostgresUrl(quoted)}'`);
  return `pico: ${what}; see ${help}`;
}

/** Places that cannot be used are failures of the start, other wrong values are wrong usage. */
function exitCodeOf(error: unknown): number {
  if (!isPicoError(error, "settings")) return EXIT_CODE_FAILURE;
  return error instanceof PicoError && error.facts.isStartup === true ? EXIT_CODE_FAILURE : EXIT_CODE_USAGE;
}
