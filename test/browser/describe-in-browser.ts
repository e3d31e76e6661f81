import { describe, test } from "bun:test";
import { existsSync } from "node:fs";
import { CHROMIUM_PATH } from "../support/chromium.ts";

/** As `describe`, for tests that need the browser: they are skipped without one, but never where `CI` is set. */
export function describeInBrowser(name: string, define: () => void): void {
  const isMissing = !existsSync(CHROMIUM_PATH);
  const reason = `no Chromium at ${CHROMIUM_PATH}: apt-get install chromium, or PICO_TEST_CHROMIUM=PATH`;
  if (isMissing && process.env.CI !== undefined) {
    test(`${name}: a Chromium is there`, () => {
      throw new Error(reason);
    });
    return;
  }
  if (isMissing) console.log(`skipped: ${reason}`);
  describe.skipIf(isMissing)(name, define);
}
