/** Commands, flags and words of the program, as a completion needs them. */
import type { Command, Option } from "commander";

export interface CompletionCommand {
  readonly name: string;
  readonly summary: string;
  readonly flags: readonly CompletionFlag[];
  /** Words that can follow: of its operand, or its commands. */
  readonly words: readonly string[];
  readonly commands: readonly CompletionCommand[];
}

export interface CompletionFlag {
  /** As typed: `--follow`, and `-f` where there is one. */
  readonly names: readonly string[];
  /** First sentence of its help. */
  readonly help: string;
  readonly takes: "nothing" | "words" | "folder" | "anything";
  /** Where it takes words. */
  readonly words: readonly string[];
}

export function readCompletionTree(program: Command): CompletionCommand {
  return readCommand(program, []);
}

/** `inherited`: flags that may stand behind every command below. */
function readCommand(command: Command, inherited: readonly CompletionFlag[]): CompletionCommand {
  const help = command.createHelp();
  const own = help.visibleOptions(command).map(readFlag);
  const flags = [...own, ...inherited.filter(({ names: [name] }) => own.every((flag) => !flag.names.includes(name ?? "")))];
  const visible = help.visibleCommands(command);
  const shared = flags.filter(({ names }) => !names.includes("--version") && !names.includes("--help"));
  const words =
    visible.length > 0 ? visible.map((one) => one.name()) : command.registeredArguments.flatMap(({ argChoices }) => argChoices ?? []);
  const commands = visible.map((one) => (one.name() === "help" ? { ...readCommand(one, []), words } : readCommand(one, shared)));
  return { name: command.name(), summary: command.summary() || command.description(), flags, words, commands };
}

/** Every command with the words that lead to it, `pico admin nodes`, the program first. */
export function withPaths(command: CompletionCommand, path = command.name): readonly (readonly [string, CompletionCommand])[] {
  return [[path, command], ...command.commands.flatMap((one) => withPaths(one, `${path} ${one.name}`))];
}

function readFlag(option: Option): CompletionFlag {
  const value = /<([^>]*)>/.exec(option.flags)?.[1];
  const words = value?.includes("|") ? value.split("|") : [];
  const takes = value === undefined ? "nothing" : words.length > 0 ? "words" : value === "DIR" ? "folder" : "anything";
  const names = [option.long, option.short].flatMap((name) => name ?? []);
  return { names, help: option.description.replace(/ \((default|env): .*$/, ""), takes, words };
}
