import { expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const bootstrap = join(import.meta.dir, "../../scripts/bootstrap.mjs");
const runtime = Bun.which("node") ?? process.execPath;

/** Starts a program through the bootstrap; the installed packages and Bun are found, so nothing is fetched. */
async function withProgram(
  source: string,
  words: readonly string[],
  use: (child: Bun.Subprocess<"ignore", "pipe", "inherit">) => Promise<void>,
): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "pico-bootstrap-"));
  const file = join(folder, "program.ts");
  writeFileSync(file, source);
  const child = Bun.spawn([runtime, bootstrap, file, ...words], { stdio: ["ignore", "pipe", "inherit"] });
  try {
    await use(child);
  } finally {
    child.kill("SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  }
}

test("arguments, stdout and the exit code pass through", async () => {
  const source = "console.log(JSON.stringify(process.argv.slice(2)), process.versions.bun !== undefined); process.exit(7);";
  await withProgram(source, ["serve", "--storage", "-2@mem://a b"], async (child) => {
    expect(await child.stdout.text()).toBe('["serve","--storage","-2@mem://a b"] true\n');
    expect(await child.exited).toBe(7);
  });
});

test.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)("%s reaches the program, which decides how to end", async (signal) => {
  const source = `
    process.on("${signal}", () => { console.log("stopping"); process.exit(3); });
    setInterval(() => {}, 1000);
    console.log("up");
  `;
  await withProgram(source, [], async (child) => {
    const reader = child.stdout.getReader();
    const first = await reader.read();
    expect(new TextDecoder().decode(first.value)).toBe("up\n");
    child.kill(signal);
    expect(await child.exited).toBe(3);
    const rest = await reader.read();
    expect(new TextDecoder().decode(rest.value)).toBe("stopping\n");
  });
});

test("a program that dies of a signal is reported as a shell would", async () => {
  await withProgram('process.kill(process.pid, "SIGKILL"); setInterval(() => {}, 1000);', [], async (child) => {
    expect(await child.exited).toBe(137);
  });
});
