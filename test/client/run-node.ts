/**
 * Runs the client's cases under Node: bundled, because not every Node reads TypeScript. The servers that they talk to
 * run with the Bun that runs this program.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

process.exit(await main());

async function main(): Promise<number> {
  const folder = mkdtempSync(join(tmpdir(), "pico-client-node-"));
  try {
    const entry = join(import.meta.dir, "node-main.ts");
    const built = await Bun.build({ entrypoints: [entry], target: "node", outdir: folder, naming: "[name].mjs" });
    if (!built.success) throw new AggregateError(built.logs, "the suite could not be bundled");
    const child = Bun.spawn(["node", "--enable-source-maps", join(folder, "node-main.mjs")], {
      env: { ...process.env, CLIENT_SUITE_BUN: process.execPath, CLIENT_SUITE_ROOT: dirname(dirname(import.meta.dir)) },
      stdio: ["ignore", "inherit", "inherit"],
    });
    return await child.exited;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
