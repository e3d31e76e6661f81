import { describe, test } from "bun:test";
import { chromiumIsMissing } from "./chromium.ts";

/** As `describe`, for tests that need the browser: they are skipped without one, but never where `CI` is set. */
export function describeInBrowser(name: string, define: () => void): void {
  if (chromiumIsMissing !== null && process.env.CI !== undefined) {
    test(`${name}: a Chromium is there`, () => {
      throw new Error(chromiumIsMissing ?? "");
    });
    return;
  }
  if (chromiumIsMissing !== null) console.log(`skipped: ${chromiumIsMissing}`);
  describe.skipIf(chromiumIsMissing !== null)(name, define);
}
