/** Many tabs of one browser share six connections to the node: all load, all stay live, and hidden ones ask nothing. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../cluster/eventually.ts";
import { Dashboard, until } from "./dashboard.ts";
import { describeInBrowser } from "./describe-in-browser.ts";
import { append, createStream } from "./streams.ts";

const TEST_MS_MAX = 120_000;
const TABS = 8;

describeInBrowser("tabs", () => {
  let dashboard: Dashboard;

  beforeAll(async () => {
    dashboard = await Dashboard.start();
    await createStream(dashboard.picoUrl, "/shared", { "content-type": "text/plain" });
  }, TEST_MS_MAX);

  afterAll(async () => {
    await dashboard[Symbol.asyncDispose]();
    expect(dashboard.sightings).toEqual({ foreignRequests: [], complaints: [] });
  }, TEST_MS_MAX);

  /** Lasting connections that the node sees. */
  async function eventStreams(): Promise<number> {
    const answer = await fetch(`${dashboard.adminUrl}/admin/activity`);
    return ((await answer.json()) as { readers: { sse: number } }).readers.sse;
  }

  /** What a browser does to a page whose tab is left or chosen; headless ones show every page. */
  async function setHidden(page: Page, isHidden: boolean): Promise<void> {
    await page.evaluate(`
      Object.defineProperty(document, "hidden", { configurable: true, get: () => ${isHidden} });
      document.dispatchEvent(new Event("visibilitychange"));
    `);
  }

  test(
    "eight tabs that follow a stream at once all load, stay live and get every record; at most three hold a connection",
    async () => {
      const context = await dashboard.newContext();
      const pages = await Promise.all(Array.from({ length: TABS }, () => dashboard.open("#/streams/shared?view=live", context)));
      for (const page of pages) await page.getByText(/^Live/).first().waitFor();
      for (let index = 0; index < 30; index++) await append(dashboard.picoUrl, "/shared", `record ${index}`);
      for (const page of pages) {
        await until(page, 'document.querySelectorAll(".record").length >= 30');
        expect(await page.locator(".record-preview").allTextContents()).toEqual(
          Array.from({ length: 30 }, (_, index) => `record ${index}`),
        );
        expect(await page.locator("#status-pill").textContent()).toBe("Ready");
      }
      await eventually("3 event streams", async () => (await eventStreams()) === 3);
      // Another page loads as well, and a request that waits for nobody is answered.
      const ninth = await dashboard.open("", context);
      await ninth.getByText("This node is ready").waitFor();
      await context.close();
      await eventually("0 event streams", async () => (await eventStreams()) === 0);
    },
    TEST_MS_MAX,
  );

  test(
    "a hidden tab holds no connection and asks nothing; shown again it goes on where it was",
    async () => {
      const page = await dashboard.open("#/streams/shared?view=live");
      await until(page, 'document.querySelectorAll(".record").length >= 20');
      const before = await page.locator(".record").count();
      await eventually("1 event streams", async () => (await eventStreams()) === 1);
      await setHidden(page, true);
      await page.getByText("Resting while hidden").waitFor();
      await eventually("0 event streams", async () => (await eventStreams()) === 0);
      const asked: string[] = [];
      page.on("request", (request) => asked.push(request.url()));
      for (let index = 30; index < 60; index++) await append(dashboard.picoUrl, "/shared", `record ${index}`);
      // Two beats of another page's feed: time in which a page that is seen would have asked.
      const other = await dashboard.open("");
      const beats: string[] = [];
      other.on("request", (request) => beats.push(request.url()));
      await eventually("two beats", async () => beats.filter((url) => url.endsWith("/ready")).length > 1);
      expect(asked).toEqual([]);
      await setHidden(page, false);
      await until(page, `document.querySelectorAll(".record").length >= ${before + 30}`);
      const offsets = await page.locator(".record-offset").allTextContents();
      expect(offsets).toEqual(Array.from({ length: before + 30 }, (_, index) => String(60 - before - 30 + index)));
      await page.close();
      await other.close();
    },
    TEST_MS_MAX,
  );

  test(
    "a tail that gets thousands of records keeps some hundreds of rows, the last of them",
    async () => {
      await createStream(dashboard.picoUrl, "/busy", { "content-type": "text/plain" });
      const page = await dashboard.open("#/streams/busy?view=live");
      await page.getByText("Live", { exact: true }).waitFor();
      const records = Array.from({ length: 2500 }, (_, index) => ({ body: `busy ${index}` }));
      for (let round = 0; round < 2; round++) {
        await append(dashboard.picoUrl, "/busy", JSON.stringify({ records }), { "content-type": "application/vnd.picomq.batch+json" });
      }
      await page.locator('[data-offset="4999"]').waitFor();
      expect(await page.locator(".record").count()).toBe(400);
      expect(await page.locator(".record-offset").first().textContent()).toBe("4600");
      await page.getByText("5,000 records since this view was opened").waitFor();
      await page.close();
    },
    TEST_MS_MAX,
  );
});
