/** How the dashboard is used: by keyboard alone, on a phone's width, and with very many names. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { Dashboard, until } from "./dashboard.ts";
import { describeInBrowser } from "./describe-in-browser.ts";
import { append, appendMany, createStream, createStreams } from "./streams.ts";

const TEST_MS_MAX = 120_000;
const NAMES = 20_000;
/** Of a phone; nothing may need more. */
const NARROW_PX = 360;

describeInBrowser("use", () => {
  let dashboard: Dashboard;

  beforeAll(async () => {
    dashboard = await Dashboard.start();
    await createStreams(
      dashboard.picoUrl,
      Array.from({ length: NAMES }, (_, index) => `/many/${String(index).padStart(6, "0")}`),
    );
    await createStream(dashboard.picoUrl, "/keys");
    await appendMany(dashboard.picoUrl, "/keys", 30, (index) => JSON.stringify({ index, text: "long text ".repeat(20) }));
    await append(dashboard.picoUrl, "/keys", `"${"x".repeat(3000)}"`);
    const long = `/${"verylongname".repeat(60)}`;
    await createStream(dashboard.picoUrl, long, { "content-type": `application/vnd.${"long".repeat(50)}+json` });
  }, TEST_MS_MAX);

  afterAll(async () => {
    await dashboard[Symbol.asyncDispose]();
    expect(dashboard.sightings).toEqual({ foreignRequests: [], complaints: [] });
  }, TEST_MS_MAX);

  test(
    "a list of 20,000 names loads a page at a time, forth and back, and the page stays small",
    async () => {
      const page = await dashboard.open("#/streams?prefix=/many/");
      const limits = new Set<string | null>();
      page.on("request", (request) => {
        const { pathname, searchParams } = new URL(request.url());
        if (pathname === "/pico/") limits.add(searchParams.get("limit"));
      });
      const names = async () => page.locator(".stream-name").allTextContents();
      const firstName = (name: string) => until(page, `document.querySelector(".stream-name")?.textContent === "${name}"`);
      await firstName("/many/000000");
      const nodesOf = () => page.evaluate<number>("document.querySelectorAll('*').length");
      expect(await names()).toHaveLength(100);
      const nodes = await nodesOf();
      for (let index = 1; index <= 3; index++) {
        await page.getByRole("button", { name: "Next" }).click();
        await firstName(`/many/000${index}00`);
        expect(await names()).toHaveLength(100);
      }
      expect(await nodesOf()).toBeLessThan(nodes + 50);
      await page.getByRole("button", { name: "Previous" }).click();
      await firstName("/many/000200");
      await page.goBack();
      await firstName("/many/000300");
      await page.reload();
      await firstName("/many/000300");
      await page.getByRole("button", { name: "Previous" }).click();
      await firstName("/many/000200");
      await page.locator("#search").fill("/many/0199");
      await firstName("/many/019900");
      expect(await names()).toHaveLength(100);
      expect(await page.getByRole("button", { name: "Next" }).isDisabled()).toBe(true);
      await page.locator("#search").fill("/many/nothing");
      await page.getByText("No stream begins with /many/nothing").waitFor();
      expect([...limits]).toEqual(["100"]);
      await page.close();
    },
    TEST_MS_MAX,
  );

  /** What has the focus, by role or tag and name. */
  const focused = (page: Page) =>
    page.evaluate<string>("(document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent).trim()");

  test(
    "by keyboard alone: skip link, search, a stream, its records, a view, a dialog and out of it",
    async () => {
      const page = await dashboard.open("#/streams");
      await page.getByRole("link", { name: "/keys" }).waitFor();
      await page.keyboard.press("Tab");
      expect(await focused(page)).toBe("Skip to content");
      expect(await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")).not.toBe("none");
      await page.keyboard.press("Enter");
      await page.keyboard.press("Tab");
      expect(await focused(page)).toBe("Create stream");
      await page.keyboard.press("/");
      await page.keyboard.type("/keys");
      await until(page, 'document.querySelectorAll(".stream-name").length === 1');
      await page.keyboard.press("Tab");
      while ((await focused(page)) !== "/keys") await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.locator(".record").first().waitFor();
      // The focus is at the heading of the new page.
      expect(await focused(page)).toBe("/keys");
      while ((await focused(page)) !== "Delete") await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      expect(await focused(page)).toBe("Delete");
      while (!(await focused(page)).startsWith("0")) await page.keyboard.press("Tab");
      await page.keyboard.press("Enter");
      await page.locator('[data-offset="0"] .record-text').waitFor();
      while ((await focused(page)) !== "Live tail") await page.keyboard.press("Shift+Tab");
      await page.keyboard.press("Enter");
      await page.getByText("Live", { exact: true }).waitFor();
      expect(await page.getByRole("link", { name: "Live tail" }).getAttribute("aria-current")).toBe("page");
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "at the width of a phone no page scrolls sideways",
    async () => {
      const context = await dashboard.newContext({ viewport: { width: NARROW_PX, height: 740 } });
      const page = await dashboard.open("", context);
      const long = `#/streams/${"verylongname".repeat(60)}`;
      const hashes = ["#/", "#/streams", "#/streams?prefix=/nothing", "#/streams/keys", "#/streams/keys?view=live"];
      hashes.push("#/streams/keys?view=append", "#/streams/keys?view=details", long, `${long}?view=details`, "#/streams/nobody", "#/x");
      for (const hash of hashes) {
        await page.goto(`${dashboard.adminUrl}/${hash}`);
        await page.locator("h1").waitFor();
        await until(page, 'document.documentElement.dataset.link === "live"');
        if (hash === "#/streams/keys") {
          await page.locator(".record").first().waitFor();
          await page.getByRole("button", { name: "Expand all" }).click();
          await page.locator(".record-text").last().waitFor();
        }
        const wide = await page.evaluate<number>("document.documentElement.scrollWidth");
        expect({ hash, wide }).toEqual({ hash, wide: NARROW_PX });
      }
      await page.goto(`${dashboard.adminUrl}/${long}`);
      await page.getByRole("button", { name: "Delete" }).click();
      expect(await page.evaluate<number>("document.querySelector('dialog').scrollWidth")).toBeLessThanOrEqual(NARROW_PX);
      await context.close();
    },
    TEST_MS_MAX,
  );
});
