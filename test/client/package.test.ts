/** `picomq/client` as another project gets it: built by the compiler alone, run by Node, typed for browsers, shaken by bundlers. */
import { expect, test } from "bun:test";
import { cpSync, mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeTemporaryFolder } from "../storage/temporary-folder.ts";

const root = dirname(dirname(import.meta.dir));
/** The type checker on a crowded machine. */
const BUILD_MS_MAX = 240_000;

const CONSUMER = `
import { DurableStreamsClient, isStreamError, PicoClient, type PicoRecord, StreamError } from "picomq/client";

const stream = new PicoClient({ url: "http://127.0.0.1:4437" }).stream("/a");
export async function use(signal: AbortSignal): Promise<number> {
  const records: PicoRecord[] = [];
  for await (const record of stream.records({ signal, live: "sse" })) records.push(record);
  // @ts-expect-error: Durable Streams knows no trim.
  await new DurableStreamsClient({ url: "http://127.0.0.1:4438" }).stream("/a").trim(1);
  // @ts-expect-error: positions of the Pico protocol are numbers.
  await stream.read({ from: "0007" });
  const { seq } = await stream.producer({ id: "p" }).append({ key: "k", body: null });
  return seq ?? records.length;
}
console.log(typeof use, isStreamError(new StreamError("closed", "x"), "closed"), stream.name);
`;

async function run(words: readonly string[], cwd: string): Promise<{ exitCode: number; output: string }> {
  const child = Bun.spawn([...words], { cwd, stdio: ["ignore", "pipe", "pipe"] });
  const [output, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { exitCode, output: output + errors };
}

test(
  "a project in Node gets working code, types that need no others, and only what it uses",
  async () => {
    await using folder = await makeTemporaryFolder();
    const home = join(folder.path, "node_modules/picomq");
    mkdirSync(home, { recursive: true });
    cpSync(join(root, "package.json"), join(home, "package.json"));
    const tsc = [process.execPath, join(root, "node_modules/typescript/bin/tsc")];
    // The build checks the sources with the types of browsers only: a call that is Bun's or Node's own does not compile.
    expect(await run([...tsc, "-p", join(root, "src/client"), "--outDir", join(home, "dist/client")], root)).toEqual({
      exitCode: 0,
      output: "",
    });

    writeFileSync(join(folder.path, "package.json"), '{"type":"module"}');
    writeFileSync(join(folder.path, "consumer.ts"), CONSUMER);
    const lib = ["es2024", "dom", "dom.asynciterable", "esnext.disposable"];
    const compilerOptions = { strict: true, target: "es2022", lib, types: [], module: "nodenext" };
    writeFileSync(join(folder.path, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["consumer.ts"] }));
    expect(await run([...tsc, "-p", "."], folder.path)).toEqual({ exitCode: 0, output: "" });
    expect(await run(["node", "consumer.js"], folder.path)).toEqual({ exitCode: 0, output: "function true /a\n" });

    writeFileSync(join(folder.path, "small.js"), 'import { isStreamError } from "picomq/client"; console.log(isStreamError(1));');
    const built = await Bun.build({
      entrypoints: [join(folder.path, "small.js")],
      target: "browser",
      minify: true,
      conditions: ["browser"],
    });
    const text = (await built.outputs[0]?.text()) ?? "";
    expect(text).toContain("StreamError");
    expect(text).not.toContain("pico-next-seq");
    expect(text.length).toBeLessThan(3000);
  },
  BUILD_MS_MAX,
);
