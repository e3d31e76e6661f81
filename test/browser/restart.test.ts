/** A node that goes away under an open page, and comes back: the page says so, and its live tail misses and doubles nothing. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { Dashboard, until } from "./dashboard.ts";
import { describeInBrowser } from "./describe-in-browser.ts";
import { append, createStream } from "./streams.ts";

const TEST_MS_MAX = 120_000;

describeInBrowser("a node that dies and comes back", () => {
  let dashboard: Dashboard;

  beforeAll(async () => {
    dashboard = await Dashboard.start();
    await createStream(dashboard.picoUrl, "/tail", { "content-type": "text/plain" });
  }, TEST_MS_MAX);

  // A test that fails while the node is away is the only one that fails.
  beforeEach(async () => {
    if (dashboard.node.hasExited) await dashboard.restart();
  }, TEST_MS_MAX);

  afterAll(async () => {
    await dashboard[Symbol.asyncDispose]();
    expect(dashboard.sightings).toEqual({ foreignRequests: [], complaints: [] });
  }, TEST_MS_MAX);

  async function appendRange(from: number, to: number): Promise<void> {
    for (let index = from; index < to; index++) await append(dashboard.picoUrl, "/tail", `line ${index}`);
  }

  test(
    "kill -9: data is marked as old with its time, pages are dimmed; after the restart both go on, and the live tail with each record once",
    async () => {
      const overview = await dashboard.open("");
      const live = await dashboard.open("#/streams/tail?view=live");
      const lines = () => live.locator(".record-preview").allTextContents();
      const expectLines = async (count: number) => {
        await until(live, `document.querySelectorAll(".record").length >= ${count}`);
        expect(await lines()).toEqual(Array.from({ length: count }, (_, index) => `line ${index}`));
      };
      await live.getByText("Live", { exact: true }).waitFor();
      await appendRange(0, 20);
      await expectLines(20);
      await overview.getByText("This node is ready").waitFor();

      await dashboard.kill();
      for (const page of [overview, live]) {
        await page.getByText("Unreachable").waitFor();
        expect(await page.locator("#status-update").textContent()).toMatch(/^Data of \d\d:\d\d:\d\d, .+ ago$/);
        expect(await page.locator("#status-error").textContent()).toMatch(/the node does not answer; asked again in \d+ s/);
        await until(page, "Number(getComputedStyle(document.querySelector('.page')).opacity) < 1");
      }
      await overview.getByText(/The node has not answered since/).waitFor();
      // What was known stays to be read.
      expect(await lines()).toHaveLength(20);
      await live.getByText("Interrupted, trying again").waitFor();

      await dashboard.restart();
      await appendRange(20, 60);
      for (const page of [overview, live]) {
        await page.getByText("Ready", { exact: true }).waitFor();
        await until(page, 'document.documentElement.dataset.link === "live"');
      }
      await expectLines(60);
      await dashboard.kill();
      await live.getByText("Unreachable").waitFor();
      await dashboard.restart();
      await appendRange(60, 70);
      await live
        .getByRole("button", { name: "Try now" })
        .click({ force: true, timeout: 500 })
        .catch(() => {
          // It came back by itself meanwhile, and the button went away.
        });
      await expectLines(70);
      await live.close();
      await overview.close();
    },
    TEST_MS_MAX,
  );

  test(
    "a node whose proxy answers for it is away too: what is shown is marked as old",
    async () => {
      const page = await dashboard.open("");
      await page.getByText("This node is ready").waitFor();
      await page.route("**/ready", (route) => route.fulfill({ status: 502, body: "Bad Gateway" }));
      await page.locator("#status-pill").getByText("Unreachable").waitFor();
      await page.getByText("Bad Gateway (502").waitFor();
      await page.unrouteAll({ behavior: "wait" });
      await page.locator("#status-pill").getByText("Ready", { exact: true }).waitFor();
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "a live tail says so when its stream is closed, and when it is deleted",
    async () => {
      await createStream(dashboard.picoUrl, "/ends", { "content-type": "text/plain" });
      const page = await dashboard.open("#/streams/ends?view=live");
      await page.getByText("Live", { exact: true }).waitFor();
      await append(dashboard.picoUrl, "/ends", "last", { "pico-closed": "true" });
      await page.getByText("The stream is closed; this is its end").waitFor();
      expect(await page.locator(".record-preview").allTextContents()).toEqual(["last"]);
      await page.goto(`${dashboard.adminUrl}/#/streams/tail?view=live`);
      await page.getByText("Live", { exact: true }).waitFor();
      expect((await fetch(`${dashboard.picoUrl}/tail`, { method: "DELETE" })).status).toBe(204);
      await page.getByText("There is no such stream").waitFor();
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "records that are trimmed while a live tail is paused are a gap that it tells",
    async () => {
      const { picoUrl } = dashboard;
      await createStream(picoUrl, "/trimmed", { "content-type": "text/plain" });
      await append(picoUrl, "/trimmed", "kept by the page");
      const page = await dashboard.open("#/streams/trimmed?view=live");
      await page.locator(".record").waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      await append(picoUrl, "/trimmed", "never seen");
      await append(picoUrl, "/trimmed", "seen");
      expect((await fetch(`${picoUrl}/trimmed`, { method: "POST", headers: { "pico-trim-seq": "2" } })).status).toBe(200);
      await page.getByRole("button", { name: "Go on" }).click();
      await page.getByText("Offsets 1 to 1 were trimmed away").waitFor();
      await page.locator('[data-offset="2"]').waitFor();
      expect(await page.locator(".record-preview").allTextContents()).toEqual(["kept by the page", "seen"]);
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "a stream that is deleted and made anew while a live tail is paused begins anew, and the page says so",
    async () => {
      const { picoUrl } = dashboard;
      await createStream(picoUrl, "/again", { "content-type": "text/plain" });
      for (const body of ["a", "b", "c"]) await append(picoUrl, "/again", body);
      const page = await dashboard.open("#/streams/again?view=live");
      await page.locator('[data-offset="2"]').waitFor();
      await page.getByRole("button", { name: "Pause" }).click();
      expect((await fetch(`${picoUrl}/again`, { method: "DELETE" })).status).toBe(204);
      await createStream(picoUrl, "/again", { "content-type": "text/plain" });
      await append(picoUrl, "/again", "new");
      await page.getByRole("button", { name: "Go on" }).click();
      await page.getByText("The stream was deleted and created anew").waitFor();
      await until(page, 'document.querySelectorAll(".record").length === 4');
      expect(await page.locator(".record-preview").allTextContents()).toEqual(["a", "b", "c", "new"]);
      await page.close();
    },
    TEST_MS_MAX,
  );
});
