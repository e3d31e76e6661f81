/** The examples of the client, in its sources and on its page, run as they stand against a node. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryFolder, type TemporaryFolder } from "../storage/temporary-folder.ts";
import { ServeProcess } from "./serve-process.ts";

const root = dirname(dirname(import.meta.dir));
const sources = join(root, "src/client");
const CASE_MS_MAX = 60_000;

interface Example {
  readonly where: string;
  readonly code: string;
}

const files = readdirSync(sources).filter((file) => file.endsWith(".ts"));
const page = readFileSync(join(root, "docs/client.md"), "utf8");
const examples = [...files.flatMap((file) => label(file, examplesOf(file))), ...label("docs/client.md", blocksOf(page))];

function examplesOf(file: string): string[] {
  const comments = readFileSync(join(sources, file), "utf8").match(/\/\*\*[\s\S]*?\*\//g) ?? [];
  return comments.filter((comment) => comment.includes("@example")).flatMap((comment) => blocksOf(comment.replace(/^ *\* ?/gm, "")));
}

function blocksOf(text: string): string[] {
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
}

function label(file: string, codes: readonly string[]): Example[] {
  return codes.map((code, index) => ({ where: `${file}, example ${index + 1}`, code }));
}

let server: ServeProcess;
let folder: TemporaryFolder;

beforeAll(async () => {
  folder = await makeTemporaryFolder();
  server = await ServeProcess.start({ bunPath: process.execPath, root });
});

afterAll(async () => {
  await server.remove();
  await folder[Symbol.asyncDispose]();
});

test("there are examples of clients, streams, producers, errors and both walks", () => {
  expect(examples.length).toBeGreaterThanOrEqual(12);
});

for (const [index, { where, code }] of examples.entries()) {
  test(
    `${where} runs`,
    async () => {
      const path = join(folder.path, `example-${index}.ts`);
      const runnable = code
        .replaceAll('"picomq/client"', JSON.stringify(join(sources, "index.ts")))
        .replaceAll("http://127.0.0.1:4437", server.picoUrl)
        .replaceAll("http://127.0.0.1:4438", server.durableStreamsUrl);
      writeFileSync(path, runnable);
      const child = Bun.spawn([process.execPath, path], { stdio: ["ignore", "pipe", "pipe"] });
      const [errors, exitCode] = await Promise.all([child.stderr.text(), child.exited, child.stdout.text()]);
      expect({ exitCode, errors }).toEqual({ exitCode: 0, errors: "" });
    },
    CASE_MS_MAX,
  );
}
