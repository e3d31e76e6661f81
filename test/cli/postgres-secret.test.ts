/** A URL of Postgres that is refused, wherever it is given, shows nothing of its password. */
import { expect, test } from "bun:test";
import { runProgram } from "../../src/cli/program.ts";
import { FakeProcess } from "./fake-process.ts";

const SECRET = "hunter2";
/** The digits that a password may be as a whole, so that it passes for a port. */
const SECRET_PORT = "98765";

/** What people write: a host forgotten, a character not encoded, a scheme or flag misspelled. */
const WRONG_URLS = [
  `postgres://u:${SECRET}/db`,
  `postgres://u:${SECRET_PORT}/db`,
  `postgres://u@v:${SECRET}/db`,
  `postgres://u@v:${SECRET_PORT}/db`,
  `postgres://u:${SECRET}`,
  `postgres://u:p@${SECRET}`,
  `postgres://u:p@ss@${SECRET}/db`,
  `postgres://u:p/${SECRET}@h/db`,
  `postgres://u@h/db?${SECRET}`,
  `postgres://u@h/db?${SECRET}=1`,
  `postgres://u@h/db?sslmode=${SECRET}`,
  `postgres://u:p#${SECRET}@h/db`,
  `postgres://u:%zz${SECRET}@h/db`,
  `postgres://u:p@h,${SECRET}!/db`,
  `postgres:u:${SECRET}/db`,
  `postgres:/u:${SECRET}/db`,
  `postgresql://u:${SECRET}/db`,
  `Postgres://u:${SECRET}/db`,
  `postgress://u:${SECRET}/db`,
  `pg://u:${SECRET}/db`,
  ` postgres://u:${SECRET}/db`,
  `"postgres://u:${SECRET}/db"`,
  `u:${SECRET}/db`,
];
const WAL_URLS = [...WRONG_URLS.map((url) => `7@${url}`), `x@postgres://u:${SECRET}/db`, `99999@postgres://u:${SECRET}/db`];

interface Case {
  readonly words: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
}

const COMMANDS: readonly (readonly string[])[] = [["serve"], ["doctor"], ["backup", "--to", "/nowhere/copy"], ["restore"]];

function casesOf(command: readonly string[]): Case[] {
  const ways = (flag: string, variable: string, url: string): Case[] => [
    { words: [...command, flag, url] },
    { words: [...command, `${flag}=${url}`] },
    { words: command, environment: { [variable]: url } },
  ];
  const places = (url: string) => [...ways("--wal", "PICO_WAL", url), ...ways("--storage", "PICO_STORAGE", url)];
  return [
    ...WRONG_URLS.flatMap((url) => [...ways("--meta-url", "PICO_META_URL", url), ...places(url)]),
    ...WAL_URLS.flatMap(places),
    ...["file", "1@mem", "s3"].flatMap((scheme) => places(`${scheme}:postgres://u:${SECRET}/db`)),
    { words: [...command, `postgres://u:${SECRET}@h/db`] },
    { words: [...command, `--meta-ur=postgres://u:${SECRET}@h/db`] },
    { words: [...command, "--meta-ur", `postgres://u:${SECRET}@h/db`] },
  ];
}

for (const command of COMMANDS) {
  test(`pico ${command[0]} refuses it, and names no secret`, async () => {
    for (const { words, environment = {} } of casesOf(command)) {
      const self = new FakeProcess({ environment });
      const exitCode = await runProgram(words, self);
      const told = self.outputText + self.errorText;
      const given = [...words, ...Object.values(environment)].join(" ");
      expect([given, exitCode === 0, told === "", told.includes(SECRET), told.includes(SECRET_PORT)]).toEqual([
        given,
        false,
        false,
        false,
        false,
      ]);
    }
  });
}

test("a word in the place of a command is told without it too", async () => {
  const self = new FakeProcess();
  expect(await runProgram([`postgres://u:it's-${SECRET}@h/db`], self)).toBe(2);
  expect(self.errorText).toMatch(/postgres:\*\*\*'.*see pico --help/);
  expect(self.errorText).not.toContain(SECRET);
});
