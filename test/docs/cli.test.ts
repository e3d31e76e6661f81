/** The walk of the command line's page, run word for word, and the page's tables against the program. */
import { expect, test } from "bun:test";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { runCommand, serveNode } from "../support/command.ts";

const root = dirname(dirname(import.meta.dir));
const page = readFileSync(join(root, "docs/cli.md"), "utf8");
const OUTPUT_MARK = /^#> ?/;

test("the walk prints what the page says", async () => {
  await using folder = await makeTemporaryFolder();
  const node = await serveNode(join(folder.path, "data"));
  const walk = /^```sh\n([\s\S]*?)^```$/m.exec(page)?.[1] ?? "";
  // Its commands go to the ports that the node has.
  const pico = join(folder.path, "pico");
  const program = `"${process.execPath}" "${join(root, "src/cli/main.ts")}" "$@"`;
  writeFileSync(
    pico,
    `#!/bin/sh\ncase "$*" in *"--protocol ds"*) export PICO_ENDPOINT=${node.durableStreamsUrl} ;; *) export PICO_ENDPOINT=${node.picoUrl} ;; esac\nexec ${program}\n`,
  );
  chmodSync(pico, 0o755);
  const shell = Bun.spawn(["bash", "-c", `exec 2>&1\n${walk}`], {
    cwd: folder.path,
    env: { PATH: `${folder.path}:${process.env.PATH ?? ""}`, HOME: folder.path },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const output = await shell.stdout.text();
  expect(await node.stop()).toBe(0);
  const expected = walk.split("\n").filter((line) => OUTPUT_MARK.test(line));
  expect(expected.length).toBeGreaterThan(10);
  expect(output).toBe(expected.map((line) => `${line.replace(OUTPUT_MARK, "")}\n`).join(""));
}, 60_000);

test("the page names every command, and every flag of the stream commands", async () => {
  const listed = async (words: readonly string[]) => {
    const { output } = await runCommand([...words, "--help"]);
    const names = [...output.matchAll(/^ {2}([a-z][a-z-]*) .*$/gm)].map(([, name = ""]) => name).filter((name) => name !== "help");
    return names.map((name) => [...words, name].join(" "));
  };
  const commands = [...(await listed([])), ...(await listed(["admin"]))];
  expect(commands.length).toBeGreaterThan(15);
  const rows = page.split("\n").filter((line) => line.startsWith("| `"));
  for (const command of commands) {
    const row = rows.find((line) => new RegExp(`^\\| [^|]*\`${command}[ \`]`).test(line));
    expect([command, row]).toEqual([command, expect.any(String)]);
    if (["serve", "backup", "restore", "doctor"].includes(command)) continue;
    const help = (await runCommand([...command.split(" "), "--help"])).output.split("Global Options:")[0] ?? "";
    for (const [, flag = ""] of help.matchAll(/^ {2}(?:-\w, )?(--[a-z-]+)/gm)) {
      // The flags of a group have rows of their own.
      const isThere = row?.includes(`\`${flag}`) || (command === "admin" && rows.some((one) => one.startsWith(`| \`${flag}`)));
      if (flag !== "--help") expect([command, flag, isThere]).toEqual([command, flag, true]);
    }
  }
}, 60_000);
