/** The completion as a script of bash. */
import { type CompletionCommand, type CompletionFlag, withPaths } from "./completion-tree.ts";

export function bashCompletion(program: CompletionCommand): string {
  const all = withPaths(program);
  const paths = all.slice(1).map(([path]) => `"${path}"`);
  return `# Completion of ${program.name} for bash.
_pico() {
  local word=\${COMP_WORDS[COMP_CWORD]} previous=\${COMP_WORDS[COMP_CWORD - 1]} path=${program.name} i
  COMPREPLY=()
  # bash takes --flag=value for three words.
  if [[ $word == "=" ]]; then word=""; elif [[ $previous == "=" ]]; then previous=\${COMP_WORDS[COMP_CWORD - 2]}; fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$path \${COMP_WORDS[i]}" in
      ${paths.join(" | ")}) path="$path \${COMP_WORDS[i]}" ;;
    esac
  done
  case "$path $previous" in
${all.flatMap(([path, { flags }]) => flags.flatMap((flag) => valueCase(path, flag))).join("\n")}
  esac
  case "$path" in
${all.map(([path, command]) => wordCase(path, command)).join("\n")}
  esac
}
complete -F _pico ${program.name}
`;
}

function valueCase(path: string, { names, takes, words }: CompletionFlag): string[] {
  if (takes === "nothing") return [];
  const pattern = names.map((name) => `"${path} ${name}"`).join(" | ");
  const found = { words: `-W "${words.join(" ")}"`, folder: "-d", anything: "-W ''" }[takes];
  return [`    ${pattern}) COMPREPLY=($(compgen ${found} -- "$word")); return ;;`];
}

function wordCase(path: string, { flags, words }: CompletionCommand): string {
  const names = flags.flatMap((flag) => flag.names).join(" ");
  return `    "${path}") if [[ $word == -* ]]; then COMPREPLY=($(compgen -W "${names}" -- "$word")); else COMPREPLY=($(compgen -W "${words.join(" ")}" -- "$word")); fi ;;`;
}
