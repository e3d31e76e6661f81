/** The system's Chromium, as the browser tests start it. */
import { existsSync } from "node:fs";

export const CHROMIUM_PATH = process.env.PICO_TEST_CHROMIUM ?? "/usr/bin/chromium";

/** Nothing but the pages under test may use the network. A profile of its own comes with each start. */
export const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

/** Why the browser tests cannot run here; null where they can. */
export const chromiumIsMissing = existsSync(CHROMIUM_PATH)
  ? null
  : `no Chromium at ${CHROMIUM_PATH}: apt-get install chromium, or PICO_TEST_CHROMIUM=PATH`;
