/** The completion as a script of zsh, to be sourced, or found as `_pico` in a folder of `fpath`. */
import { type CompletionCommand, type CompletionFlag, withPaths } from "./completion-tree.ts";

export function zshCompletion(program: CompletionCommand): string {
  const all = withPaths(program);
  const paths = all.slice(1).map(([path]) => `"${path}"`);
  return `#compdef ${program.name}
# Completion of ${program.name} for zsh.
_pico() {
  local at=${program.name} i
  local -a found
  for ((i = 2; i < CURRENT; i++)); do
    case "$at \${words[i]}" in
      (${paths.join("|")}) at="$at \${words[i]}" ;;
    esac
  done
  case "$at \${words[CURRENT-1]}" in
${all.flatMap(([path, { flags }]) => flags.flatMap((flag) => valueCase(path, flag))).join("\n")}
  esac
  case "$at" in
${all.map(([path, command]) => wordCase(path, command)).join("\n")}
  esac
}
if [[ "\${funcstack[1]}" == _pico ]]; then _pico "$@"; else compdef _pico ${program.name}; fi
`;
}

function valueCase(path: string, { names, takes, words }: CompletionFlag): string[] {
  if (takes === "nothing") return [];
  const pattern = names.map((name) => `"${path} ${name}"`).join("|");
  const found = { words: `compadd -- ${words.join(" ")}`, folder: "_files -/", anything: "_message value" }[takes];
  return [`    (${pattern}) ${found}; return ;;`];
}

function wordCase(path: string, { flags, words, commands }: CompletionCommand): string {
  const flagItems = flags.flatMap(({ names, help }) => names.map((name) => item(name, help)));
  const wordItems = words.map((word) => item(word, commands.find(({ name }) => name === word)?.summary ?? ""));
  return `    ("${path}")
      if [[ $PREFIX == -* ]]; then found=(${flagItems.join(" ")}); _describe -o flag found
      else found=(${wordItems.join(" ")}); _describe word found; fi ;;`;
}

function item(name: string, help: string): string {
  return quote(help === "" ? name : `${name}:${help}`);
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
