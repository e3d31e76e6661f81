/**
 * Follows `docs/quickstart.md` word for word, as a person at three terminals would. `run.ts` starts it where the ports
 * of the page are free and no other process can be seen: the page ends a server by its name.
 *
 * A fence names its terminal. Of commands that stay (`pico serve`, `pico tail -f`) the expected lines come among notes and log
 * lines; of all others they are everything that is printed, but for what `pico doctor` says of this machine.
 */
import { dirname, join } from "node:path";
import { Terminal } from "./terminal.ts";

interface Block {
  readonly kind: "sh" | "text";
  readonly terminal: string;
  readonly text: string;
  /** Line of the page. */
  readonly line: number;
}

const OUTPUT_MARK = /^#> ?/;
const root = dirname(dirname(import.meta.dir));
const [home = ""] = process.argv.slice(2);
const page = await Bun.file(join(root, "docs/quickstart.md")).text();
const terminals = new Map<string, Terminal>();

// With this process, the first of its namespace, all end that it started.
process.exit(await followPage());

async function followPage(): Promise<number> {
  try {
    const blocks = blocksOf(page);
    for (const block of blocks) await follow(block);
    console.log(`${terminals.size} terminals, ${blocks.length} blocks: as the page says`);
    return 0;
  } catch (error) {
    console.log(error);
    return 1;
  }
}

function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  for (const match of text.matchAll(/^```(sh|text) (terminal-\d)\n([\s\S]*?)^```$/gm)) {
    const [, kind, terminal = "", body = ""] = match;
    blocks.push({ kind: kind === "sh" ? "sh" : "text", terminal, text: body, line: text.slice(0, match.index).split("\n").length });
  }
  if (blocks.length !== text.match(/^```\w/gm)?.length) throw new Error("a block of the page names no terminal");
  return blocks;
}

async function follow(block: Block): Promise<void> {
  const terminal = terminalOf(block.terminal);
  const lines = block.text.trimEnd().split("\n");
  if (block.kind === "text") return terminal.among(lines);
  const expected = lines.filter((line) => OUTPUT_MARK.test(line)).map((line) => line.replace(OUTPUT_MARK, ""));
  const commands = lines.filter((line) => !OUTPUT_MARK.test(line)).join("\n");
  if (/^pico serve/m.test(commands)) {
    terminal.type(commands);
    await terminal.among(expected);
  } else if (/^pico tail -f/m.test(commands)) {
    terminal.type(commands);
    await untilFollowed();
  } else if (/^(pico doctor|\.\/compile\.sh)/m.test(commands)) {
    // What they print is of this machine: each must succeed.
    for (const command of commands.split("\n")) {
      const printed = await terminal.run(`${command}\necho "$?"`);
      if (printed.at(-1) !== "0") throw new Error(`line ${block.line} of the page: ${command}\n${printed.join("\n")}`);
    }
  } else {
    same(block, await terminal.run(commands), expected);
  }
}

/** A person sees that the reader has begun by the time the next command is typed; here the node's figures tell. */
async function untilFollowed(): Promise<void> {
  for (let tries = 0; tries < 3000; tries++) {
    const answer = await fetch("http://127.0.0.1:9090/admin/activity");
    const { readers } = (await answer.json()) as { readers: { longPoll: number; sse: number } };
    if (readers.longPoll + readers.sse > 0) return;
    await Bun.sleep(20);
  }
  throw new Error("nobody follows the stream");
}

function terminalOf(name: string): Terminal {
  let terminal = terminals.get(name);
  if (terminal === undefined) {
    const path = `${join(root, "dist")}:${process.env.PATH ?? ""}`;
    terminal = new Terminal({ HOME: home, PATH: path, LANG: "C.UTF-8" }, root);
    terminals.set(name, terminal);
  }
  return terminal;
}

function same(block: Block, actual: readonly string[], expected: readonly string[]): void {
  const comparable = (lines: readonly string[]) => lines.map((line) => line.replaceAll(/"timestamp":\d{13}/g, '"timestamp":0')).join("\n");
  if (comparable(actual) === comparable(expected)) return;
  throw new Error(`line ${block.line} of the page says\n${expected.join("\n")}\nbut ${block.terminal} printed\n${actual.join("\n")}`);
}
