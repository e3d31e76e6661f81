/**
 * The compiled executable, as a user has it: `./compile.sh` makes it before this suite runs. It is started
 * without Bun or Node on the PATH, in folders that hold nothing it knows.
 */
import { expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Value } from "@sinclair/typebox/value";
import { version } from "../../package.json";
import { ActivityAnswer } from "../../src/admin/activity-schemas.ts";
import { METRICS } from "../../src/admin/metric-definitions.ts";
import { parsePrometheusText } from "../support/prometheus-text.ts";

const executable = join(import.meta.dir, "../../dist/pico");

/** A folder that goes away with the test. */
function temporaryFolder(): { readonly path: string; [Symbol.dispose](): void } {
  const path = mkdtempSync(join(tmpdir(), "pico-executable-"));
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true, force: true }) };
}

function start(words: readonly string[], workingDirectory: string, environment: Record<string, string> = {}) {
  return Bun.spawn([executable, ...words], { cwd: workingDirectory, env: environment, stdio: ["ignore", "pipe", "pipe"] });
}

async function run(words: readonly string[], workingDirectory: string, environment: Record<string, string> = {}) {
  const child = start(words, workingDirectory, environment);
  const [output, errors, exitCode] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { output, errors, exitCode };
}

/** A served node: its addresses by the word that its line begins with, once all are printed. */
async function serve(words: readonly string[]) {
  const ports = ["--listen", "--ds-listen", "--admin-listen"].flatMap((flag) => [flag, "127.0.0.1:0"]);
  const child = start(["serve", ...ports, ...words], "/");
  const errors = child.stderr.text();
  const reader = child.stdout.getReader();
  const decoder = new TextDecoder();
  let output = "";
  const readMore = async () => {
    const { value, done } = await reader.read();
    if (value !== undefined) output += decoder.decode(value);
    return !done;
  };
  const address = (word: string) => new RegExp(`^${word}.* on (http://\\S+)`, "m").exec(output)?.[1];
  while (address("admin") === undefined) {
    if (!(await readMore())) throw new Error(`the node ended with ${await child.exited}: ${await errors}`);
  }
  return {
    pico: address("serving"),
    durableStreams: address("durable streams"),
    admin: address("admin"),
    async stop(signal: "SIGTERM" | "SIGINT" | "SIGKILL") {
      child.kill(signal);
      while (await readMore());
      return { exitCode: await child.exited, output, errors: await errors };
    },
  };
}

test("the executable is there", () => {
  expect({ path: executable, exists: existsSync(executable), remedy: "./compile.sh" }).toMatchObject({ exists: true });
});

test("started from / it says version and commit", async () => {
  const { output, errors, exitCode } = await run(["--version"], "/");
  expect({ errors, exitCode }).toEqual({ errors: "", exitCode: 0 });
  expect(output).toMatch(new RegExp(`^pico ${version.replaceAll(".", "\\.")} \\((unknown|[0-9a-f]{12}(-dirty)?)\\)\\n$`));
});

test("files of the folder that it is started from change nothing", async () => {
  using folder = temporaryFolder();
  writeFileSync(join(folder.path, ".env"), "PICO_NODE_ID=nonsense\n");
  writeFileSync(join(folder.path, "bunfig.toml"), 'preload = ["./missing.ts"]\n');
  writeFileSync(join(folder.path, "package.json"), "no JSON");
  writeFileSync(join(folder.path, "tsconfig.json"), "no JSON");
  const { errors, exitCode } = await run(["serve", "--backlog", "0"], folder.path);
  expect({ errors, exitCode }).toEqual({ errors: 'pico: --backlog "0" is no whole number from 1 to 65535\n', exitCode: 2 });
  expect(readdirSync(folder.path)).toHaveLength(4);
});

test("started from / it serves, stops on a signal with exit code 0, and finds its records again, also after kill -9", async () => {
  using folder = temporaryFolder();
  const words = ["--data-dir", join(folder.path, "data")];
  const headers = { "content-type": "text/plain" };

  const first = await serve(words);
  expect((await fetch(`${first.pico}/smoke`, { method: "PUT", headers })).status).toBe(201);
  expect((await fetch(`${first.pico}/smoke`, { method: "POST", headers, body: "one" })).ok).toBe(true);
  expect((await fetch(`${first.admin}/ready`)).status).toBe(200);
  const ended = await first.stop("SIGTERM");
  expect(ended.exitCode).toBe(0);
  expect(ended.output.trimEnd().split("\n").at(-1)).toBe("shutting down");

  const second = await serve(words);
  expect((await fetch(`${second.pico}/smoke`, { method: "POST", headers, body: "two" })).ok).toBe(true);
  await second.stop("SIGKILL");

  const third = await serve(words);
  expect((await fetch(`${third.pico}/smoke`, { method: "HEAD" })).headers.get("pico-next-seq")).toBe("2");
  expect(await (await fetch(`${third.durableStreams}/smoke?offset=-1`)).text()).toBe("onetwo");
  expect((await third.stop("SIGINT")).exitCode).toBe(0);
  expect(readdirSync(join(folder.path, "data")).sort()).toEqual(expect.arrayContaining(["meta.db", "wal"]));
});

test("it tells its metrics and what it did lately, as the sources do", async () => {
  using folder = temporaryFolder();
  const node = await serve(["--data-dir", join(folder.path, "data")]);
  const stream = `${node.pico}/watched`;
  expect((await fetch(stream, { method: "PUT", headers: { "content-type": "text/plain" } })).status).toBe(201);
  expect((await fetch(stream, { method: "POST", headers: { "content-type": "text/plain" }, body: "one" })).ok).toBe(true);
  const metrics = parsePrometheusText(await (await fetch(`${node.admin}/metrics`)).text());
  expect([...metrics.keys()]).toEqual(METRICS.map(({ name }) => name));
  expect(metrics.get("pico_appended_records_total")?.series[0]?.value).toBe(1);
  const activity: unknown = await (await fetch(`${node.admin}/admin/activity`)).json();
  expect([...Value.Errors(ActivityAnswer, activity)].slice(0, 3)).toEqual([]);
  expect((await node.stop("SIGTERM")).exitCode).toBe(0);
});

test("a second process on one data directory is refused in one line with exit code 1", async () => {
  using folder = temporaryFolder();
  const words = ["--data-dir", join(folder.path, "data")];
  const node = await serve(words);
  const ports = ["--listen", "--ds-listen", "--admin-listen"].flatMap((flag) => [flag, "127.0.0.1:0"]);
  const { errors, exitCode } = await run(["serve", "--log-level", "silent", ...ports, ...words], "/");
  expect(exitCode).toBe(1);
  expect(errors).toMatch(/^pico: .+\n$/);
  expect(errors).toContain(folder.path);
  expect((await node.stop("SIGTERM")).exitCode).toBe(0);
});

test("it holds every file below public/, and serves them on the admin listener", async () => {
  using folder = temporaryFolder();
  const shipped = join(import.meta.dir, "../../public");
  const node = await serve(["--data-dir", join(folder.path, "data")]);
  for (const entry of readdirSync(shipped, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const path = join(entry.parentPath, entry.name);
    const answer = await fetch(`${node.admin}${path.slice(shipped.length)}`);
    expect({ path, status: answer.status }).toEqual({ path, status: 200 });
    expect(Buffer.from(await answer.arrayBuffer()).equals(readFileSync(path))).toBe(true);
  }
  for (const name of ["swagger-ui-bundle.js", "swagger-ui.css", "swagger-ui-bundle.js.LICENSE.txt", "LICENSE", "NOTICE"]) {
    const answer = await fetch(`${node.admin}/docs/${name}`);
    const original = readFileSync(join(import.meta.dir, "../../node_modules/swagger-ui-dist", name));
    expect({ name, same: Buffer.from(await answer.arrayBuffer()).equals(original) }).toEqual({ name, same: true });
  }
  const page = await fetch(`${node.admin}/`);
  expect(page.headers.get("content-type")).toBe("text/html; charset=utf-8");
  expect(await page.text()).toBe(readFileSync(join(shipped, "index.html"), "utf8"));
  expect((await node.stop("SIGTERM")).exitCode).toBe(0);
});
