/** What a person changes through the dashboard: create, append, close, trim, delete; and how a refusal is told. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Response } from "playwright-core";
import { Dashboard } from "./dashboard.ts";
import { describeInBrowser } from "./describe-in-browser.ts";
import { append, createStream } from "./streams.ts";

const TEST_MS_MAX = 90_000;

describeInBrowser("acts", () => {
  let dashboard: Dashboard;

  beforeAll(async () => {
    dashboard = await Dashboard.start();
  }, TEST_MS_MAX);

  afterAll(async () => {
    await dashboard[Symbol.asyncDispose]();
    expect(dashboard.sightings).toEqual({ foreignRequests: [], complaints: [] });
  }, TEST_MS_MAX);

  const head = (name: string) => fetch(dashboard.picoUrl + name, { method: "HEAD" });
  const deleteStream = (name: string) => fetch(dashboard.picoUrl + name, { method: "DELETE" });

  test(
    "an empty node says what to do next, with its own address; a stream is created by the form",
    async () => {
      const page = await dashboard.open("#/streams");
      await page.getByText("No streams yet").waitFor();
      await page.locator(".command", { hasText: `${dashboard.picoUrl}/hello` }).waitFor();
      await page.getByRole("button", { name: "Create one here" }).click();
      await page.getByLabel("Name", { exact: true }).fill("made/here");
      await page.getByLabel("Content type").fill("application/json");
      await page.getByLabel("Lifetime", { exact: true }).fill("2");
      await page.getByLabel("Unit of the lifetime").selectOption("hours");
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByRole("heading", { name: "/made/here" }).waitFor();
      const { headers } = await head("/made/here");
      expect([headers.get("content-type"), headers.get("pico-ttl")]).toEqual(["application/json", "7200"]);
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "a record is appended with its key, and a JSON stream takes JSON only",
    async () => {
      const page = await dashboard.open("#/streams/made/here?view=append");
      await page.getByLabel("Body").fill("{not json");
      await page.getByRole("button", { name: "Append", exact: true }).click();
      await page.getByText("The body is not JSON, and this is a JSON stream.").waitFor();
      expect((await head("/made/here")).headers.get("pico-next-seq")).toBe("0");
      await page.getByLabel("Body").fill('{"big":12345678901234567890}');
      await page.getByLabel("Key (optional)").fill("schlüssel");
      await page.getByRole("button", { name: "Append", exact: true }).click();
      await page.getByRole("link", { name: "offset 0" }).waitFor();
      await page.getByText("One a line", { exact: true }).click();
      await page.getByLabel("Body").fill("1\n\n2\n3");
      await page.getByRole("button", { name: "Append", exact: true }).click();
      await page.getByRole("link", { name: "offset 1" }).waitFor();
      const records = (await (await fetch(`${dashboard.picoUrl}/made/here`)).json()) as { key?: string; body: string }[];
      expect(records.map(({ key, body }) => [key, body])).toEqual([
        ["schlüssel", '{"big":12345678901234567890}'],
        ["schlüssel", "1"],
        ["schlüssel", "2"],
        ["schlüssel", "3"],
      ]);
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "an append that takes long cannot be sent a second time meanwhile",
    async () => {
      await createStream(dashboard.picoUrl, "/slow", { "content-type": "text/plain" });
      const page = await dashboard.open("#/streams/slow?view=append");
      const gate = Promise.withResolvers<void>();
      await page.route("**/pico/slow", async (route) => {
        if (route.request().method() === "POST") await gate.promise;
        await route.continue();
      });
      await page.getByLabel("Body").fill("once");
      const button = page.getByRole("button", { name: "Append", exact: true });
      await button.click();
      // The figures of the stream are read anew meanwhile, which judges the button.
      for (let beat = 0; beat < 2; beat++) {
        const isHead = (response: Response) => response.request().method() === "HEAD" && response.url().endsWith("/pico/slow");
        await page.waitForResponse(isHead);
      }
      await page.getByLabel("Body").press("Tab");
      expect(await button.isDisabled()).toBe(true);
      gate.resolve();
      await page.getByRole("link", { name: "offset 0" }).waitFor();
      await page.getByRole("button", { name: "Append", exact: true, disabled: false }).waitFor();
      expect((await head("/slow")).headers.get("pico-next-seq")).toBe("1");
      await page.unrouteAll({ behavior: "wait" });
      await page.close();
      await deleteStream("/slow");
    },
    TEST_MS_MAX,
  );

  test(
    "trim, close and delete want the name, letter for letter; then they do it",
    async () => {
      const page = await dashboard.open("#/streams/made/here");
      await page.getByRole("button", { name: "Trim" }).click();
      const trim = page.getByRole("dialog").getByRole("button", { name: "Trim" });
      expect(await trim.isDisabled()).toBe(true);
      await page.getByLabel("First offset to keep").fill("2");
      for (const wrong of ["made/here", "/made/her", "/Made/here", "/made/here "]) {
        await page.getByLabel("Type the name").fill(wrong);
        expect(await trim.isDisabled()).toBe(true);
      }
      await page.getByLabel("Type the name").fill("/made/here");
      await trim.click();
      await page.getByText("The first offset of /made/here is 2").waitFor();
      expect((await head("/made/here")).headers.get("pico-start-seq")).toBe("2");

      await page.getByRole("button", { name: "Close" }).click();
      await page.getByLabel("Type the name").fill("/made/here");
      await page.getByRole("button", { name: "Close for ever" }).click();
      await page.getByText("Closed /made/here").waitFor();
      expect((await head("/made/here")).headers.get("pico-closed")).toBe("true");
      await page.getByText("closed", { exact: true }).waitFor();
      expect(await page.getByRole("button", { name: "Close" }).isDisabled()).toBe(true);

      await page.getByRole("button", { name: "Delete" }).click();
      await page.getByLabel("Type the name").fill("/made/here");
      await page.keyboard.press("Enter");
      await page.getByText("Deleted /made/here").waitFor();
      expect((await head("/made/here")).status).toBe(404);
      await page.getByText("No streams yet").waitFor();
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "a refusal stays in the form in the server's own words, and nothing is lost",
    async () => {
      await createStream(dashboard.picoUrl, "/taken", { "content-type": "text/plain" });
      const page = await dashboard.open("#/streams");
      await page.getByRole("button", { name: "Create stream" }).click();
      await page.getByLabel("Name", { exact: true }).fill("/taken");
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByRole("alert").getByText("409 conflict").waitFor();
      expect(await page.getByLabel("Name", { exact: true }).inputValue()).toBe("/taken");
      await page.getByLabel("Name", { exact: true }).fill("/_sys/mine");
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await page.getByRole("alert").getByText("400 bad_request").waitFor();

      // Closed by somebody else while the form was open.
      await page.goto(`${dashboard.adminUrl}/#/streams/taken?view=append`);
      await page.getByLabel("Body").fill("too late");
      const button = page.getByRole("button", { name: "Append", exact: true });
      await button.waitFor();
      await page.route("**/pico/taken", async (route) => {
        if (route.request().method() === "POST") await append(dashboard.picoUrl, "/taken", "the last", { "pico-closed": "true" });
        await route.continue();
      });
      await button.click();
      await page.getByRole("alert").getByText("409 closed").waitFor();
      expect(await page.getByLabel("Body").inputValue()).toBe("too late");
      await page.close();
    },
    TEST_MS_MAX,
  );
});
