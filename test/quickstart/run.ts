/**
 * Runs the quickstart in namespaces of its own: its ports are free there, and the servers that it ends are its own. Where
 * the system gives none, nothing is run and the reason is printed, except where `CI` is set: there it is a failure.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { closeSuite } from "../support/test-report.ts";

/** Network, processes and mounts; as any user where the kernel allows that. */
const NAMESPACES = process.getuid?.() === 0 ? ["-n", "-p", "-m"] : ["-U", "-r", "-n", "-p", "-m"];

process.exit(await main());

async function main(): Promise<number> {
  const isPossible = Bun.spawnSync(["unshare", ...NAMESPACES, "-f", "--mount-proc", "true"], { stderr: "ignore" }).success;
  if (!isPossible) {
    const isRequired = process.env.CI !== undefined;
    console.log(`no namespaces to be had from unshare: ${isRequired ? "required here" : "skipped"}`);
    return closeSuite(0, isRequired ? 1 : 0, isRequired ? 0 : 1);
  }
  const home = mkdtempSync(join(tmpdir(), "pico-quickstart-"));
  try {
    const script = 'ip link set lo up && exec "$@"';
    const program = [process.execPath, join(import.meta.dir, "quickstart.ts"), home];
    const words = ["unshare", ...NAMESPACES, "-f", "--kill-child", "--mount-proc", "bash", "-c", script, "bash", ...program];
    const child = Bun.spawn(words, { stdio: ["ignore", "inherit", "inherit"] });
    const isPassed = (await child.exited) === 0;
    return closeSuite(isPassed ? 1 : 0, isPassed ? 0 : 1);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}
