/** What a person is told: help of each command, the nearest match, colours, completions that know every command. */
import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runProgram } from "../../src/cli/program.ts";
import { FakeProcess, type FakeProcessOptions } from "./fake-process.ts";

const COMMANDS = "serve create head append read tail ls close delete trim admin backup restore doctor completion".split(" ");
const ADMIN_COMMANDS = "cluster nodes stream scrub gc".split(" ");

async function run(words: string, options: FakeProcessOptions = {}) {
  const self = new FakeProcess(options);
  const exitCode = await runProgram(words === "" ? [] : words.split(" "), self);
  return { exitCode, output: self.outputText, errors: self.errorText };
}

test("the help lists every command", async () => {
  const { exitCode, output } = await run("--help");
  const listed = [...output.matchAll(/^ {2}([a-z]+) .*$/gm)].map(([, name]) => name);
  expect([exitCode, listed]).toEqual([0, [...COMMANDS, "help"]]);
  expect(await run("help")).toMatchObject({ exitCode: 0, output });
});

/** As they are typed; a group has examples with its commands. */
const LEAVES = [...COMMANDS.filter((name) => name !== "admin"), ...ADMIN_COMMANDS.map((name) => `admin ${name}`)];

test("the help of a group lists its commands and flags", async () => {
  const { exitCode, output } = await run("admin --help");
  const listed = [...output.matchAll(/^ {2}([a-z][a-z-]*) .*$/gm)].map(([, name]) => name);
  expect([exitCode, listed]).toEqual([0, [...ADMIN_COMMANDS, "help"]]);
  expect(output.replace(/\s+/g, " ")).toContain("env: PICO_ADMIN_TOKEN, then PICO_TOKEN");
  expect(await run("help admin")).toMatchObject({ exitCode: 0, output });
  expect((await run("admin help nodes")).output).toBe((await run("admin nodes --help")).output);
});

test.each(LEAVES)("%s --help shows its flags and an example that begins with it, as pico help does", async (name) => {
  const { exitCode, output, errors } = await run(`${name} --help`);
  expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: "" });
  const examples = output.split("Examples:\n")[1] ?? "";
  expect(examples).toMatch(new RegExp(`^  # .+\n  .*pico ${name}\\b`));
  expect(output).not.toContain("\u001b");
  if (name.includes(" ")) expect(output).toContain("--admin-endpoint <URL>");
  else expect((await run(`help ${name}`)).output).toBe(output);
});

test("a word too many is named, with what the command takes", async () => {
  for (const [words, line] of [
    ["serve # x", 'pico: "#" is too many: pico serve takes no word without a flag; see pico serve --help\n'],
    ["append /a b c", 'pico: "b" is too many: pico append takes STREAM; see pico append --help\n'],
  ] as const) {
    expect(await run(words)).toMatchObject({ exitCode: 2, errors: line });
  }
});

test("a word that is nearly a command or a flag is answered with the nearest one", async () => {
  for (const [words, nearest, help] of [
    ["tial x", "tail", "pico --help"],
    ["apend x", "append", "pico --help"],
    ["read x --form 3", "--from", "pico read --help"],
    ["tail x --folow", "--follow", "pico tail --help"],
    ["ls --endpont http://h", "--endpoint", "pico ls --help"],
  ] as const) {
    expect(await run(words)).toMatchObject({
      exitCode: 2,
      output: "",
      errors: expect.stringMatching(new RegExp(`^pico: .+Did you mean ${nearest}\\?\\); see ${help}\n$`)),
    });
  }
  for (const words of ["--http2 ls", "--profile p ls", "bench", "read a b"]) {
    expect(await run(words)).toMatchObject({ exitCode: 2, errors: expect.stringMatching(/^pico: .+\n$/) });
  }
});

test("colours are for terminals, and for those who did not refuse them", async () => {
  const terminal = { isOutputTerminal: true, isErrorsTerminal: true };
  const words = "--endpoint http://127.0.0.1:1 head /x";
  expect((await run(words, terminal)).errors).toStartWith("\u001b[31mpico:\u001b[39m transport: ");
  expect((await run("read --help", terminal)).output).toContain("\u001b[1mExamples:\u001b[22m");
  for (const options of [{ ...terminal, environment: { NO_COLOR: "1" } }, { ...terminal, environment: { TERM: "dumb" } }, {}]) {
    expect((await run(words, options)).errors).toStartWith("pico: transport: ");
    expect((await run("read --help", options)).output).not.toContain("\u001b");
  }
  expect((await run(words, { ...terminal, environment: { NO_COLOR: "" } })).errors).toContain("\u001b[31m");
});

/** Lines of the input, and what may follow each. */
const COMPLETIONS: readonly (readonly [string, readonly string[]])[] = [
  ["pico ", [...COMMANDS, "help"]],
  ["pico ta", ["tail"]],
  ["pico --protocol ", ["pico", "ds"]],
  ["pico --endpoint http://h tail --fol", ["--follow"]],
  ["pico tail --protocol d", ["ds"]],
  ["pico completion ", ["bash", "zsh", "fish"]],
  ["pico help tr", ["trim"]],
  ["pico read --from ", []],
  ["pico ls --endp", ["--endpoint"]],
  ["pico admin ", [...ADMIN_COMMANDS, "help"]],
  ["pico admin --json st", ["stream"]],
  ["pico admin nodes --admin", ["--admin-endpoint"]],
];

/** Runs `script` behind the shell's completion, in a folder that goes with it; resolves with its lines. */
async function inShell(shell: string, prepare: (completion: string) => string): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), "pico-completion-"));
  try {
    const completion = join(folder, "completion");
    writeFileSync(completion, (await run(`completion ${shell}`)).output);
    const child = Bun.spawn([shell, "-c", prepare(completion)], {
      env: { PATH: process.env.PATH ?? "", HOME: folder, TERM: "dumb" },
      stdio: ["ignore", "pipe", "pipe"],
    });
    const [output, errors] = await Promise.all([child.stdout.text(), child.stderr.text()]);
    expect(errors).toBe("");
    return output.split("\n").slice(0, -1);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

test("bash completes commands, flags and their words", async () => {
  const calls = COMPLETIONS.map(
    ([line]) =>
      `complete_words ${line
        .split(" ")
        .map((word) => `'${word}'`)
        .join(" ")}`,
  );
  const lines = await inShell(
    "bash",
    (completion) => `source ${completion}
    complete_words() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _pico; echo "\${COMPREPLY[*]}"; }
    ${calls.join("\n")}
    complete_words pico tail --protocol = d`,
  );
  expect(lines.map((line) => line.split(" ").filter(Boolean).sort())).toEqual([
    ...COMPLETIONS.map(([, words]) => [...words].sort()),
    ["ds"],
  ]);
});

const isFishThere = Bun.which("fish") !== null || process.env.CI !== undefined;
if (!isFishThere) console.log("the completion of fish is not tried: install fish");
test.skipIf(!isFishThere)("fish completes the same", async () => {
  const calls = COMPLETIONS.map(([line]) => `echo (complete -C '${line}' | string replace -r '\\t.*' '' | string join ' ')`);
  const lines = await inShell("fish", (completion) => `source ${completion}\n${calls.join("\n")}`);
  expect(lines.map((line) => line.split(" ").filter(Boolean).sort())).toEqual(COMPLETIONS.map(([, words]) => [...words].sort()));
});

const isZshThere = Bun.which("zsh") !== null || process.env.CI !== undefined;
if (!isZshThere) console.log("the completion of zsh is not tried: install zsh");
test.skipIf(!isZshThere)("zsh completes the same", async () => {
  // What the completion offers is heard at the builtins that it ends in, with the words before the cursor set as zsh sets them.
  const calls = COMPLETIONS.map(
    ([line]) =>
      `offer ${line
        .split(" ")
        .map((word) => `'${word}'`)
        .join(" ")}`,
  );
  const lines = await inShell(
    "zsh",
    (completion) => `
    compdef() { :; }
    found=()
    compadd() { shift; local word; for word in "$@"; do [[ $word == "$PREFIX"* ]] && offered+=("$word"); done; }
    _describe() { local name=\${@[-1]} one; for one in "\${(@P)name}"; do [[ \${one%%:*} == "$PREFIX"* ]] && offered+=("\${one%%:*}"); done; }
    _message() { :; }
    source ${completion}
    offer() { local -a words=("$@") offered=(); local CURRENT=$# PREFIX=\${@[-1]}; _pico; print -r -- "$offered"; }
    ${calls.join("\n")}`,
  );
  expect(lines.map((line) => line.split(" ").filter(Boolean).sort())).toEqual(COMPLETIONS.map(([, words]) => [...words].sort()));
});
