/** The completion as a script of fish. */
import { type CompletionCommand, type CompletionFlag, withPaths } from "./completion-tree.ts";

export function fishCompletion(program: CompletionCommand): string {
  const all = withPaths(program);
  const paths = all.slice(1).map(([path]) => `'${path}'`);
  return `# Completion of ${program.name} for fish.
function __pico_at
  set -l path ${program.name}
  for word in (commandline -opc)[2..]
    switch "$path $word"
      case ${paths.join(" ")}
        set path "$path $word"
    end
  end
  test "$path" = "$argv[1]"
end
complete -c ${program.name} -e
complete -c ${program.name} -f
${all.flatMap(([path, command]) => linesOf(program.name, path, command)).join("\n")}
`;
}

function linesOf(program: string, path: string, { flags, words, commands }: CompletionCommand): string[] {
  const start = `complete -c ${program} -n ${quote(`__pico_at "${path}"`)}`;
  return [
    ...words.map((word) => `${start} -a ${word} -d ${quote(commands.find(({ name }) => name === word)?.summary ?? "")}`),
    ...flags.map((flag) => `${start} ${namesOf(flag)}${valuePart(flag)} -d ${quote(flag.help)}`),
  ];
}

function namesOf({ names }: CompletionFlag): string {
  return names.map((name) => (name.startsWith("--") ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`)).join(" ");
}

function valuePart({ takes, words }: CompletionFlag): string {
  return { nothing: "", words: ` -x -a ${quote(words.join(" "))}`, folder: " -x -a '(__fish_complete_directories)'", anything: " -x" }[
    takes
  ];
}

function quote(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", "\\'")}'`;
}
