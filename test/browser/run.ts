/**
 * Runs the browser tests with the network cut off: in a network namespace that has a loopback and nothing else. Where
 * the system does not allow that (no root, no `unshare`), they run as they are: each page's requests are judged anyway.
 * Without a Chromium nothing is run and the reason is printed, except where `CI` is set: there it is a failure.
 */
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { readJunitCounts } from "../../scripts/test-report.ts";
import { CHROMIUM_PATH, closeWithoutChromium } from "../support/chromium.ts";
import { closeSuite } from "../support/test-report.ts";

const root = dirname(dirname(import.meta.dir));
const CUT_OFF = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"];

process.exit(await main());

async function main(): Promise<number> {
  if (!existsSync(CHROMIUM_PATH)) return closeWithoutChromium();
  const isCutOff = await succeeds([...CUT_OFF, "true"]);
  console.log(isCutOff ? "the network is cut off" : "the network could not be cut off; requests are judged one by one");
  const folder = mkdtempSync(join(tmpdir(), "pico-browser-"));
  const reportPath = join(folder, "report.xml");
  try {
    const words = [process.execPath, "test", "--timeout=120000", "--reporter=junit", `--reporter-outfile=${reportPath}`, "test/browser"];
    const child = Bun.spawn([...(isCutOff ? CUT_OFF : []), ...words, ...process.argv.slice(2)], {
      cwd: root,
      stdio: ["ignore", "inherit", "inherit"],
    });
    const exitCode = await child.exited;
    const counts = readJunitCounts(readFileSync(reportPath, "utf8"));
    if (counts === null) throw new Error("the tests wrote no report");
    const { passed, failed, skipped } = counts;
    return closeSuite(passed, exitCode !== 0 && failed === 0 ? 1 : failed, skipped);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function succeeds(command: readonly string[]): Promise<boolean> {
  try {
    return (await Bun.spawn([...command], { stdio: ["ignore", "ignore", "ignore"] }).exited) === 0;
  } catch {
    // The program is not there.
    return false;
  }
}
