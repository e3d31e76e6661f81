/** `pico completion`: the words of the command line, for a shell. Made from the program itself, so that it knows every command. */
import type { Command } from "commander";
import { utf8Encoder } from "../lib/bytes.ts";
import type { CommandDefinition } from "./command-definition.ts";
import { bashCompletion } from "./completion-bash.ts";
import { fishCompletion } from "./completion-fish.ts";
import { readCompletionTree } from "./completion-tree.ts";
import { zshCompletion } from "./completion-zsh.ts";

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };
const SHELLS = Object.keys(SCRIPTS);

/** `program` is looked at when the command runs, with all its commands. */
export function completionCommand(program: Command): CommandDefinition {
  return {
    name: "completion",
    summary: "print the completion of a shell",
    description: [
      "Prints a script that completes commands, flags and their words when you press Tab. Load it in the start file of your shell.",
    ],
    operands: [{ name: "SHELL", help: "the shell", words: SHELLS }],
    flags: [],
    isClient: false,
    examples: [
      { line: "source <(pico completion bash)", does: "in ~/.bashrc" },
      { line: "source <(pico completion zsh)", does: "in ~/.zshrc, behind compinit" },
      { line: "pico completion fish > ~/.config/fish/completions/pico.fish", does: "once, for fish" },
    ],
    async run({ operands: [shell], self }) {
      const script = SCRIPTS[shell as keyof typeof SCRIPTS](readCompletionTree(program));
      await self.output.write(utf8Encoder.encode(script));
      return 0;
    },
  };
}
