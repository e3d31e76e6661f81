/** Rules about the sources as a whole that no type expresses. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import { Glob } from "bun";

const sources = await readSources();

/** Imports go down only; folders of one level do not know each other. The operators' listener shares the protocols' HTTP parts. */
const levels: Readonly<Record<string, number>> = {
  lib: 0,
  sql: 1,
  storage: 1,
  metadata: 2,
  engine: 3,
  mirror: 3,
  streams: 4,
  ownership: 5,
  protocol: 6,
  admin: 7,
  client: 7,
  node: 8,
  cli: 9,
};

/** The client runs in programs that have no seams of ours; its defaults are the globals, all in one file. */
const CLIENT_SEAMS = "client/client-seams.ts";

/** Calls that the linter cannot tell by a global's name (timers, `fetch` and `process` are its part), and where they may be. */
const edges: readonly { readonly call: RegExp; readonly allowed: readonly string[] }[] = [
  { call: /\bDate\.now\(|\bnew Date\(\)/, allowed: ["lib/clock.ts", "storage/", "sql/", CLIENT_SEAMS] },
  { call: /\bMath\.random\(|\bcrypto\.(getRandomValues|randomUUID|randomBytes)\(/, allowed: ["lib/random.ts", CLIENT_SEAMS] },
  { call: /\bcrypto\.subtle\b|\bBun\.(file|write|spawn)\b/, allowed: ["storage/", "sql/"] },
  { call: /\bBun\.env\b|\bBun\.sleep\b/, allowed: [] },
];

async function readSources(): Promise<ReadonlyMap<string, string>> {
  const root = join(import.meta.dir, "../src");
  const texts = new Map<string, string>();
  for await (const path of new Glob("**/*.ts").scan(root)) {
    const text = await Bun.file(join(root, path)).text();
    // Comments may name what the code must not call.
    texts.set(path.replaceAll("\\", "/"), text.replace(/\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/.*$/gm, ""));
  }
  return texts;
}

test("imports between the folders of src follow the design, never back", () => {
  const wrong: string[] = [];
  for (const [path, text] of sources) {
    const from = path.split("/")[0] ?? "";
    for (const [, to = ""] of text.matchAll(/(?:from|import)\s*\(?\s*"\.\.\/([a-z]+)\//g)) {
      const [above, below] = [levels[from], levels[to]];
      if (from !== to && (above === undefined || below === undefined || above <= below)) wrong.push(`${path} imports ${to}/`);
    }
  }
  expect(wrong).toEqual([]);
  expect(sources.size).toBeGreaterThan(10);
});

test("time, randomness, the network and the environment enter at the edges only", () => {
  const wrong: string[] = [];
  for (const [path, text] of sources) {
    for (const { call, allowed } of edges) {
      const found = call.exec(text)?.[0];
      if (found !== undefined && !allowed.some((place) => path.startsWith(place))) wrong.push(`${path} calls ${found}`);
    }
  }
  expect(wrong).toEqual([]);
});
