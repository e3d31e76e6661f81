/** Texts that people store try to become script: names, records, keys, headers, content types, errors. Nothing of it may run. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { Page } from "playwright-core";
import { encodeStreamPath } from "../../src/protocol/stream-name.ts";
import { Dashboard, HOSTILE } from "./dashboard.ts";
import { describeInBrowser } from "./describe-in-browser.ts";
import { append, createStream } from "./streams.ts";

const TEST_MS_MAX = 90_000;
const NAME = `/hostile/${HOSTILE}`;
/** What a header may hold of it. */
const CONTENT_TYPE = `text/html; x="><img src=x onerror=window.picoCanary=1>`;
/** Names that are altered by whoever decodes them twice, folds them, or forgets to encode them. */
const ODD_NAMES = [
  "/a%2fb",
  "/a%2Fb%2F..%2Fc",
  "/%2e%2e/up",
  "/with space/and+plus",
  "/käse/🧀/日本",
  "/a//b",
  "/a/",
  "/q?x=1&y=2",
  "/h#1",
  "/__proto__",
];

describeInBrowser("hostile texts", () => {
  let dashboard: Dashboard;

  beforeAll(async () => {
    dashboard = await Dashboard.start();
    await createStream(dashboard.picoUrl, NAME, { "content-type": CONTENT_TYPE });
    const record = { key: HOSTILE, headers: [{ name: HOSTILE, value: HOSTILE }], body: HOSTILE };
    await append(dashboard.picoUrl, NAME, JSON.stringify({ records: [record, { body: `{"a":${JSON.stringify(HOSTILE)}}` }] }), {
      "content-type": "application/vnd.picomq.batch+json",
    });
    await append(dashboard.picoUrl, NAME, "by a producer", {
      "pico-producer-id": 'p"><img src=x onerror=window.picoCanary=1>',
      "pico-producer-epoch": "0",
      "pico-producer-seq": "0",
    });
    for (const name of ODD_NAMES) {
      await createStream(dashboard.picoUrl, name);
      await append(dashboard.picoUrl, name, JSON.stringify({ name }));
    }
  }, TEST_MS_MAX);

  afterAll(async () => {
    await dashboard[Symbol.asyncDispose]();
    expect(dashboard.sightings).toEqual({ foreignRequests: [], complaints: [] });
  }, TEST_MS_MAX);

  /** The text stands on the page as text, and nothing came of it. */
  async function expectAsText(page: Page, text: string): Promise<void> {
    await page.getByText(text, { exact: false }).first().waitFor();
    expect(await dashboard.hasRun(page)).toBe(false);
  }

  test("a hostile text that is made markup is noticed", async () => {
    const page = await dashboard.open("");
    expect(await dashboard.hasRun(page)).toBe(false);
    await page.evaluate('document.body.append(document.createElement("img"))');
    expect(await dashboard.hasRun(page)).toBe(true);
    await page.close();
  });

  test(
    "in the list, the title, the records, the live tail and the details it is text",
    async () => {
      const page = await dashboard.open("#/streams");
      await expectAsText(page, NAME);
      await expectAsText(page, CONTENT_TYPE);
      await page.getByRole("link", { name: NAME }).click();
      await page.getByRole("heading", { name: NAME }).waitFor();
      expect(await page.title()).toBe(`${NAME} · PicoMQ`);
      await page.getByRole("button", { name: "Expand all" }).click();
      await page.locator(".record-text", { hasText: HOSTILE }).first().waitFor();
      await page.locator(".record-facts", { hasText: HOSTILE }).first().waitFor();
      await page.getByText("JSON", { exact: true }).click();
      await page.getByText("Hex", { exact: true }).click();
      expect(await dashboard.hasRun(page)).toBe(false);
      for (const view of ["live", "append", "details"]) {
        await page.goto(`${dashboard.adminUrl}/#/streams${encodeStreamPath(NAME)}?view=${view}`);
        await expectAsText(page, NAME);
      }
      await expectAsText(page, 'p"><img src=x onerror=window.picoCanary=1>');
      await page.goto(`${dashboard.adminUrl}/#/streams?prefix=${encodeURIComponent(`/nothing/${HOSTILE}/x`)}`);
      await expectAsText(page, `No stream begins with /nothing/${HOSTILE}/x`);
      await page.goto(`${dashboard.adminUrl}/#/${HOSTILE}`);
      await page.getByText("There is nothing here").waitFor();
      expect(await dashboard.hasRun(page)).toBe(false);
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "in dialogs, messages and what the server says of an error it is text",
    async () => {
      const page = await dashboard.open(`#/streams${encodeStreamPath(NAME)}`);
      await page.getByRole("button", { name: "Delete" }).click();
      await expectAsText(page, NAME);
      await page.keyboard.press("Escape");
      await page.goto(`${dashboard.adminUrl}/#/streams`);
      await page.getByRole("button", { name: "Create stream" }).click();
      await page.getByLabel("Name", { exact: true }).fill(NAME);
      await page.getByLabel("Content type").fill("image/png");
      await page.getByRole("button", { name: "Create", exact: true }).click();
      // The server's own words name the stored type.
      await page.getByRole("alert").getByText("409 conflict").waitFor();
      expect(await page.getByRole("alert").textContent()).toContain("text/html");
      expect(await dashboard.hasRun(page)).toBe(false);
      await page.getByLabel("Name", { exact: true }).fill(`${NAME}/2`);
      await page.getByRole("button", { name: "Create", exact: true }).click();
      await expectAsText(page, `Created ${NAME}/2`);
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "whatever a node says of itself is text: ids, addresses, phases, loops, errors",
    async () => {
      const page = await dashboard.open("#/x");
      const edits: Record<string, (answer: Record<string, unknown>) => void> = {
        "/ready": (answer) => Object.assign(answer, { ready: false, phase: `recovering ${HOSTILE}`, recovery: null }),
        "/admin/cluster": (answer) => {
          const lastRefusal = { code: HOSTILE, key: HOSTILE, message: HOSTILE };
          const gc = { backlog: 1, oldestSeq: 1, nextSeq: 1, refused: 1, refusedSinceMs: 1, lastRefusal };
          Object.assign(answer, { clusterId: HOSTILE, advertisedAddress: HOSTILE, gc });
        },
        "/admin/nodes": ({ nodes }) => Object.assign((nodes as object[])[0] ?? {}, { advertisedAddress: HOSTILE, state: HOSTILE }),
        "/admin/activity": (answer) => {
          const loop = { name: HOSTILE, intervalMs: 1, lastSuccessAtMs: null, lastFailureAtMs: 1, lastError: HOSTILE, failures: 1 };
          Object.assign(answer, { loops: [loop], errors: [{ atMs: 1, level: HOSTILE, message: `message ${HOSTILE}`, count: 2 }] });
        },
      };
      // The answers are the node's own, but for these members: no node can be brought to say this.
      for (const [path, edit] of Object.entries(edits)) {
        await page.route(
          (url) => url.pathname === path,
          async (route) => {
            const answer = await route.fetch();
            const value = await answer.json();
            edit(value);
            await route.fulfill({ response: answer, json: value });
          },
        );
      }
      await page.goto(`${dashboard.adminUrl}/#/`);
      for (const text of [`This node is recovering ${HOSTILE}`, `Cluster ${HOSTILE}`, `message ${HOSTILE}`]) await expectAsText(page, text);
      expect(await page.getByText(HOSTILE).count()).toBeGreaterThan(6);
      await page.unrouteAll({ behavior: "wait" });
      await page.close();
    },
    TEST_MS_MAX,
  );

  test(
    "each odd name leads from the list to its own records, and its address can be loaded anew",
    async () => {
      const page = await dashboard.open("#/streams");
      for (const name of ODD_NAMES) {
        await page.getByRole("link", { name, exact: true }).click();
        await page.locator(".record").waitFor();
        expect(await page.locator("h1").textContent()).toBe(name);
        expect(await page.locator(".record-preview").textContent()).toBe(JSON.stringify({ name }));
        await page.reload();
        await page.locator(".record").waitFor();
        expect(await page.locator(".record-preview").textContent()).toBe(JSON.stringify({ name }));
        await page.getByRole("link", { name: "Details" }).click();
        await page.getByText("It is no fork, and has none.").waitFor();
        await page.goto(`${dashboard.adminUrl}/#/streams`);
      }
      await page.close();
    },
    TEST_MS_MAX,
  );
});
