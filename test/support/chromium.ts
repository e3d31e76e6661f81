/** Debian's Chromium, for suites that need a real browser. Nothing but the pages under test may use the network. */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";
import { closeSuite } from "./test-report.ts";

export const CHROMIUM_PATH = process.env.PICO_TEST_CHROMIUM ?? "/usr/bin/chromium";

const FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** With further flags, if any. Null where there is none. */
export async function launchChromium(flags: readonly string[] = []): Promise<Browser | null> {
  return existsSync(CHROMIUM_PATH) ? chromium.launch({ executablePath: CHROMIUM_PATH, args: [...FLAGS, ...flags] }) : null;
}

/** Ends a suite that found no Chromium: a failure where `CI` is set, else a skip with its reason. Returns the exit code. */
export function closeWithoutChromium(): number {
  const isRequired = process.env.CI !== undefined;
  console.log(
    `no Chromium at ${CHROMIUM_PATH}: ${isRequired ? "required here" : "skipped"}; apt-get install chromium, or PICO_TEST_CHROMIUM=PATH`,
  );
  return closeSuite(0, isRequired ? 1 : 0, isRequired ? 0 : 1);
}
