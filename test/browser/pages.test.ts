/** Every page of the dashboard with real data, in a real browser against the executable. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { eventually } from "../cluster/eventually.ts";
import { Dashboard, until } from "./dashboard.ts";
import { describeInBrowser } from "./describe-in-browser.ts";
import { append, appendMany, createStream } from "./streams.ts";

const TEST_MS_MAX = 90_000;

describeInBrowser("pages", () => {
  let dashboard: Dashboard;

  beforeAll(async () => {
    dashboard = await Dashboard.start();
    const { picoUrl } = dashboard;
    await createStream(picoUrl, "/orders/eu");
    await appendMany(picoUrl, "/orders/eu", 240, (index) => `{"order":${index},"total":12345678901234567890}`);
    await createStream(picoUrl, "/orders/us", { "pico-ttl": "86400" });
    await createStream(picoUrl, "/logs/app", { "content-type": "text/plain" });
    await append(picoUrl, "/logs/app", "a line of text", {
      "pico-producer-id": "worker-1",
      "pico-producer-epoch": "3",
      "pico-producer-seq": "0",
    });
    await createStream(picoUrl, "/raw", { "content-type": "application/octet-stream" });
    await fetch(`${picoUrl}/raw`, { method: "POST", body: new Uint8Array([0, 255, 16, 32, 65]) });
    const fork = await fetch(`${dashboard.durableStreamsUrl}/orders/replay`, {
      method: "PUT",
      headers: { "content-type": "application/json", "stream-forked-from": "/orders/eu", "stream-fork-offset": "00000000000000000100" },
    });
    expect(fork.status).toBe(201);
  }, TEST_MS_MAX);

  afterAll(async () => {
    await dashboard[Symbol.asyncDispose]();
    expect(dashboard.sightings).toEqual({ foreignRequests: [], complaints: [] });
  }, TEST_MS_MAX);

  const textOf = (page: Page, selector: string) => page.locator(selector).first().textContent();
  const tile = (page: Page, label: string) => page.locator(".tile", { has: page.getByRole("heading", { name: label, exact: true }) });

  test(
    "the overview says that the node is well, what flows and what it is made of",
    async () => {
      const page = await dashboard.open("");
      await page.getByText("This node is ready").waitFor();
      expect(await textOf(page, "#status-pill")).toBe("Ready");
      expect(await page.title()).toBe("Overview · PicoMQ");
      expect(await tile(page, "Streams").textContent()).toContain("5");
      expect(await tile(page, "Cluster").textContent()).toContain("picomq");
      await tile(page, "Write-ahead log").getByText("%").waitFor();
      expect(await page.getByRole("meter").count()).toBeGreaterThan(0);
      await page.getByRole("row").filter({ hasText: "this node" }).waitFor();
      await page.getByRole("rowheader", { name: "upload" }).waitFor();
      const scrub = page.locator(".facts div", { hasText: "Last scrub" });
      await scrub.getByText("none by this node since its start").waitFor();
      expect((await fetch(`${dashboard.adminUrl}/admin/scrub`, { method: "POST" })).status).toBe(202);
      await scrub.getByText(/: sound$/).waitFor();
      // A sample comes every two seconds; in one with appends and reads all figures beside the charts are numbers.
      await eventually("figures beside the charts", async () => {
        await appendMany(dashboard.picoUrl, "/orders/eu", 50, (index) => `{"more":${index}}`);
        await (await fetch(`${dashboard.picoUrl}/orders/eu`)).text();
        return !(await page.locator(".chart-figure").allTextContents()).includes("–");
      });
      expect(await page.locator(".chart-canvas canvas").count()).toBe(4);
      expect(await textOf(page, "#status-update")).toMatch(/^Updated \d\d:\d\d:\d\d, every 2 s$/);
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "streams are listed by prefix, and one leads to its records; the back button leads back",
    async () => {
      const page = await dashboard.open("#/streams");
      await page.getByRole("link", { name: "/orders/eu" }).waitFor();
      expect(await page.locator(".stream-name").allTextContents()).toEqual([
        "/logs/app",
        "/orders/eu",
        "/orders/replay",
        "/orders/us",
        "/raw",
      ]);
      await page.keyboard.press("/");
      await page.keyboard.type("orders/");
      await until(page, 'location.hash === "#/streams?prefix=%2Forders%2F"');
      await until(page, 'document.querySelectorAll(".stream-name").length === 3');
      await page.getByRole("link", { name: "/orders/eu" }).click();
      await page.getByRole("heading", { name: "/orders/eu" }).waitFor();
      await page.locator(".record").first().waitFor();
      expect(await page.locator(".record").count()).toBe(50);
      await page.goBack();
      await until(page, 'document.querySelectorAll(".stream-name").length === 3');
      expect(await page.locator("#search").inputValue()).toBe("/orders/");
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "records are paged from any offset, and the address of a page can be shared",
    async () => {
      const page = await dashboard.open("#/streams/orders/eu?from=100");
      await page.locator('[data-offset="100"]').waitFor();
      expect(await page.locator(".record-offset").last().textContent()).toBe("149");
      await page.getByRole("button", { name: "Next" }).click();
      await page.locator('[data-offset="150"]').waitFor();
      expect(new URL(page.url()).hash).toBe("#/streams/orders/eu?from=150");
      await page.getByRole("button", { name: "First" }).click();
      await page.locator('[data-offset="0"]').waitFor();
      await page.getByLabel("From offset").fill("77");
      await page.getByRole("button", { name: "Go" }).click();
      await page.locator('[data-offset="77"]').waitFor();
      await page.reload();
      await page.locator('[data-offset="77"]').waitFor();
      await page.getByLabel("From offset").fill("9999999");
      await page.getByRole("button", { name: "Go" }).click();
      await page.getByText("No records at this offset").waitFor();
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "a view that is opened later begins with the newest records, not with those of the page's first moment",
    async () => {
      await createStream(dashboard.picoUrl, "/growing", { "content-type": "text/plain" });
      await appendMany(dashboard.picoUrl, "/growing", 1, () => "early");
      const page = await dashboard.open("#/streams/growing?view=details");
      const nextOffset = tile(page, "Next offset").locator(".tile-value");
      await nextOffset.getByText("1", { exact: true }).waitFor();
      await appendMany(dashboard.picoUrl, "/growing", 200, (index) => `late ${index}`);
      await nextOffset.getByText("201", { exact: true }).waitFor();
      for (const [view, first] of [
        ["Records", "151"],
        ["Live tail", "181"],
      ] as const) {
        await page.getByRole("link", { name: view }).click();
        await page.locator('[data-offset="200"]').waitFor();
        expect(await page.locator(".record-offset").first().textContent()).toBe(first);
      }
      await page.close();
      await fetch(`${dashboard.picoUrl}/growing`, { method: "DELETE" });
    },
    TEST_MS_MAX,
  );

  test(
    "a body is shown as JSON without a change to its numbers, as text, and as hex",
    async () => {
      const page = await dashboard.open("#/streams/orders/eu?from=3");
      await page.locator('[data-offset="3"] summary').click();
      const body = page.locator('[data-offset="3"] .record-text');
      expect(await body.textContent()).toBe('{\n  "order": 3,\n  "total": 12345678901234567890\n}');
      await page.getByText("Text", { exact: true }).click();
      expect(await body.textContent()).toBe('{"order":3,"total":12345678901234567890}');
      await page.getByText("Hex", { exact: true }).click();
      expect(await body.textContent()).toStartWith("00000000  7b 22 6f 72 64 65 72");
      await page.goto(`${dashboard.adminUrl}/#/streams/raw`);
      await page.getByRole("button", { name: "Expand all" }).click();
      expect(await page.locator(".record-text").textContent()).toMatch(/^00000000 {2}00 ff 10 20 41 +·{2}· A$/);
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "the details name producers, forks and the source of a fork",
    async () => {
      const page = await dashboard.open("#/streams/logs/app?view=details");
      await page.getByRole("cell", { name: "worker-1" }).waitFor();
      await page.goto(`${dashboard.adminUrl}/#/streams/orders/eu?view=details`);
      await page.getByRole("link", { name: "/orders/replay" }).click();
      await page.getByRole("heading", { name: "/orders/replay" }).waitFor();
      await page.getByRole("link", { name: "Details" }).click();
      await page.getByText("below offset 100").waitFor();
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "a stream with a lifetime says so, and one that does not exist offers to be created",
    async () => {
      const page = await dashboard.open("#/streams/orders/us");
      await page.getByText("expires 1 d after its last use").waitFor();
      await page.goto(`${dashboard.adminUrl}/#/streams/nobody/knows`);
      await page.getByText("There is no such stream").waitFor();
      await page.goto(`${dashboard.adminUrl}/#/streams/bad%zz`);
      await page.getByText("There is nothing here").waitFor();
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "a chosen theme is kept, also over a reload",
    async () => {
      const context = await dashboard.newContext({ colorScheme: "light" });
      const page = await dashboard.open("", context);
      const ground = () => page.evaluate("getComputedStyle(document.documentElement).backgroundColor");
      const light = await ground();
      await page.getByRole("button", { name: /^Theme: system/ }).click();
      await page.getByRole("button", { name: /^Theme: light/ }).click();
      const dark = await ground();
      expect(dark).not.toBe(light);
      await page.reload();
      expect(await ground()).toBe(dark);
      await page.getByRole("button", { name: /^Theme: dark/ }).click();
      expect(await ground()).toBe(light);
      await context.close();
    },
    TEST_MS_MAX,
  );
});
