/**
 * The API explorer of the executable, in a page of Chromium that reaches nothing but the node: every operation is shown, "Try it out"
 * asks the node, and the page's strict policy is never in its way. Run `./compile.sh` before.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { EXECUTABLE, freePorts, NodeProcess } from "../cluster/node-process.ts";
import { closeWithoutChromium, launchChromium } from "../support/chromium.ts";
import { SuiteVerdicts } from "../support/test-report.ts";

/** For a crowded machine. */
const STEP_MS_MAX = 30_000;

process.exit(await main());

async function main(): Promise<number> {
  const browser = await launchChromium();
  if (browser === null) return closeWithoutChromium();
  const folder = mkdtempSync(join(tmpdir(), "pico-explorer-"));
  const ports = await freePorts();
  const node = NodeProcess.spawn({ program: EXECUTABLE, ports, dataDirectory: join(folder, "data"), logPath: join(folder, "log") });
  try {
    await node.ready();
    const page = await browser.newPage();
    page.setDefaultTimeout(STEP_MS_MAX);
    return await runCases(page, `http://127.0.0.1:${ports.admin}`);
  } finally {
    await browser.close();
    await node.kill();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function runCases(page: Page, origin: string): Promise<number> {
  const complaints: string[] = [];
  const foreign: string[] = [];
  // What the page's policy stops is told on the console.
  page.on("console", (message) => void (message.type() === "error" && complaints.push(message.text())));
  page.on("pageerror", (error) => void complaints.push(error.message));
  page.on(
    "request",
    (request) => void (/^(data:|blob:)/.test(request.url()) || request.url().startsWith(`${origin}/`) || foreign.push(request.url())),
  );

  const cases: readonly (readonly [string, () => Promise<void>])[] = [
    ["every operation is shown", () => showsAll(page, origin)],
    ["a try of the admin API is answered", async () => same(await tryOut(page, "getAdminCluster"), "200")],
    ["a try creates a stream below /pico", () => createsStream(page, origin)],
    ["operations of another listener cannot be tried", () => offersNoOther(page)],
    ["nothing was asked of another origin", async () => same(foreign, [])],
    ["the page's policy was never in the way", async () => same(complaints, [])],
  ];
  const verdicts = new SuiteVerdicts();
  for (const [name, run] of cases) {
    const problems = await run().then(
      () => [],
      (error: unknown) => [Bun.inspect(error)],
    );
    verdicts.judge(name, problems);
  }
  return verdicts.close();
}

async function showsAll(page: Page, origin: string): Promise<void> {
  const document = (await (await fetch(`${origin}/openapi.json`)).json()) as { paths: Record<string, Record<string, unknown>> };
  const described = Object.values(document.paths).flatMap((item) => Object.keys(item).filter((key) => key !== "servers"));
  await page.goto(`${origin}/docs`);
  await page.locator(".opblock").first().waitFor();
  same(await page.locator(".opblock").count(), described.length);
}

/** The status that the page shows. */
async function tryOut(page: Page, operationId: string): Promise<string> {
  const block = page.locator(`[id$="-${operationId}"]`);
  await block.locator(".opblock-summary-control").click();
  await block.getByRole("button", { name: "Try it out" }).click();
  await block.getByRole("button", { name: "Execute" }).click();
  const status = block.locator("tr.response td.response-col_status").first();
  await block.locator(".live-responses-table").first().waitFor();
  return ((await status.textContent()) ?? "").trim();
}

async function createsStream(page: Page, origin: string): Promise<void> {
  same(await tryOut(page, "putPicoName"), "201");
  same((await fetch(`${origin}/admin/streams/orders/live`)).status, 200);
}

async function offersNoOther(page: Page): Promise<void> {
  const block = page.locator('[id$="-headDurableStreamsName"]');
  await block.locator(".opblock-summary-control").click();
  await block.locator(".opblock-body .parameters").first().waitFor();
  same(await block.getByRole("button", { name: "Try it out" }).count(), 0);
}

function same(found: unknown, expected: unknown): void {
  if (!Bun.deepEquals(found, expected)) throw new Error(`found ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
}
