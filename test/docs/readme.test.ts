/** The README's walk, run word for word against a node in a clean folder. */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";
import { type ServingNode, serveNode } from "../support/command.ts";

const root = dirname(dirname(import.meta.dir));
const readme = readFileSync(join(root, "README.md"), "utf8");
const OUTPUT_MARK = /^#> ?/;

/** The first shell block below a heading. */
function shellBlock(heading: string): string {
  const section = readme.split(`\n## ${heading}\n`)[1] ?? "";
  const block = /^```sh\n([\s\S]*?)^```$/m.exec(section)?.[1];
  if (block === undefined) throw new Error(`the README has no shell block below "${heading}"`);
  return block;
}

/** Sends the README's addresses to the ports that the node has, without a change to the commands. */
function curlConfiguration(node: ServingNode): string {
  const lines = [
    ["127.0.0.1:4437", node.picoUrl],
    ["127.0.0.1:4438", node.durableStreamsUrl],
  ].map(([from, to]) => `connect-to = "${from}:${to?.replace("http://", "")}"\n`);
  // A progress meter shows only where stderr is a terminal or a pipe of ours.
  return `${lines.join("")}silent\nshow-error\n`;
}

const withoutTimes = (text: string) => text.replaceAll(/"timestamp":\d{13}/g, '"timestamp":0');

test("the curl walk of the README prints what the README says, within a minute", async () => {
  await using folder = await makeTemporaryFolder();
  const node = await serveNode(join(folder.path, "data"));
  const block = shellBlock("A minute with curl");
  writeFileSync(join(folder.path, ".curlrc"), curlConfiguration(node));
  const shell = Bun.spawn(["bash", "-c", block], {
    cwd: folder.path,
    env: { PATH: process.env.PATH ?? "", HOME: folder.path, CURL_HOME: folder.path },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const [output, errors] = await Promise.all([shell.stdout.text(), shell.stderr.text(), shell.exited]);
  expect(await node.stop()).toBe(0);
  const lines = block.split("\n").filter((line) => OUTPUT_MARK.test(line));
  const expected = lines.map((line) => `${line.replace(OUTPUT_MARK, "")}\n`).join("");
  // curl tells that its time for the live read was up.
  expect(errors).not.toMatch(/^(?!.*timed out).+$/m);
  expect(withoutTimes(output)).toBe(withoutTimes(expected));
}, 60_000);

test("the README names the two commands that start a node", () => {
  // Alone on its line: zsh would hand a comment to the program.
  expect(shellBlock("Start")).toBe("npm start\n");
  expect(readme).toContain("`bun start`");
  const scripts = JSON.parse(readFileSync(join(root, "package.json"), "utf8")).scripts as Record<string, string>;
  expect(scripts.start).toEndWith("src/cli/main.ts serve");
});
