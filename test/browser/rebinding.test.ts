/** A page whose own name was made to resolve to this machine (DNS rebinding): what its browser lets it send, and that it reads nothing. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Browser } from "playwright-core";
import { launchChromium } from "../support/chromium.ts";
import { Dashboard } from "./dashboard.ts";
import { describeInBrowser } from "./describe-in-browser.ts";
import { append, createStream } from "./streams.ts";

const TEST_MS_MAX = 90_000;
const HOST = "rebound.example";
/** Chromium's own guard is off: the node must not count on it, since other browsers have none. */
const FLAGS = [`--host-resolver-rules=MAP ${HOST} 127.0.0.1`, "--disable-features=LocalNetworkAccessChecks"];

describeInBrowser("a page that rebinds its name", () => {
  let dashboard: Dashboard;
  let browser: Browser;

  beforeAll(async () => {
    dashboard = await Dashboard.start();
    const launched = await launchChromium(FLAGS);
    if (launched === null) throw new Error("no Chromium is there");
    browser = launched;
    await createStream(dashboard.picoUrl, "/private");
    await append(dashboard.picoUrl, "/private", "a secret");
  }, TEST_MS_MAX);

  afterAll(async () => {
    await browser.close();
    await dashboard[Symbol.asyncDispose]();
  }, TEST_MS_MAX);

  /** What requests of a page at `origin` to its own origin are answered. */
  async function statuses(origin: string, calls: readonly (readonly [string, string])[]): Promise<number[]> {
    const page = await browser.newPage();
    // The page comes from where the name led before.
    await page.route(`${origin}/page`, (route) => route.fulfill({ contentType: "text/html", body: "<title>page</title>" }));
    await page.goto(`${origin}/page`);
    const ask = async (words: readonly (readonly [string, string])[]) => {
      const answers: number[] = [];
      for (const [method, path] of words) answers.push((await fetch(path, { method, referrerPolicy: "no-referrer" })).status);
      return answers;
    };
    const answers = await page.evaluate(ask, calls);
    await page.close();
    return answers;
  }

  test(
    "it reads nothing and changes nothing, on any listener; under a loopback name the same requests are answered",
    async () => {
      const { admin, pico, durableStreams } = dashboard.ports;
      const reads = ["/admin/cluster", "/admin/activity", "/metrics", "/openapi.json", "/pico", "/pico/private?format=raw"];
      const ofAdmin = reads.map((path) => ["GET", path] as const);
      expect(await statuses(`http://localhost:${admin}`, ofAdmin)).toEqual(ofAdmin.map(() => 200));
      expect(await statuses(`http://${HOST}:${admin}`, [...ofAdmin, ["DELETE", "/pico/private"]])).toEqual(
        [...ofAdmin, null].map(() => 403),
      );
      for (const port of [pico, durableStreams]) {
        expect(await statuses(`http://localhost:${port}`, [["GET", "/private"]])).toEqual([200]);
        expect(
          await statuses(`http://${HOST}:${port}`, [
            ["GET", "/private"],
            ["HEAD", "/private"],
          ]),
        ).toEqual([403, 403]);
      }
    },
    TEST_MS_MAX,
  );
});
