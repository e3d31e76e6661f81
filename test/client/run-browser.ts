/**
 * Runs the client's cases in a page of Chromium. Servers and proxies run here, and the page asks for them. Without a
 * Chromium nothing is run and the reason is printed, except where `CI` is set: there it is a failure.
 */
import { dirname, join } from "node:path";
import type { Page } from "playwright-core";
import { closeWithoutChromium, launchChromium } from "../support/chromium.ts";
import { SuiteVerdicts } from "../support/test-report.ts";
import type { CasePage } from "./browser-main.ts";
import type { PageFunctions, PageOffers, RequestNote } from "./browser-stage.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { ServeProcess, type ServeProgram } from "./serve-process.ts";

/** For a crowded machine: the slowest cases start servers. */
const CASE_MS_MAX = 120_000;

process.exit(await main());

async function main(): Promise<number> {
  const browser = await launchChromium();
  if (browser === null) return closeWithoutChromium();
  const script = await bundle();
  const pages = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: (request) => answer(request, script) });
  const stage = new HostStage({ bunPath: process.execPath, root: dirname(dirname(import.meta.dir)) });
  try {
    console.log(`Chromium ${browser.version()}`);
    const page = await browser.newPage();
    page.on("pageerror", (error) => console.log("the page threw", error));
    await stage.offerTo(page);
    await page.goto(`http://127.0.0.1:${pages.port}/`);
    return await runCases(page);
  } finally {
    await browser.close();
    await stage.close();
    await pages.stop(true);
  }
}

async function bundle(): Promise<string> {
  const built = await Bun.build({ entrypoints: [join(import.meta.dir, "browser-main.ts")], target: "browser", sourcemap: "inline" });
  const [script] = built.outputs;
  if (!built.success || script === undefined) throw new AggregateError(built.logs, "the suite could not be bundled");
  return script.text();
}

function answer(request: Request, script: string): Response {
  if (new URL(request.url).pathname === "/suite.js") return new Response(script, { headers: { "content-type": "text/javascript" } });
  const html = '<!doctype html><meta charset="utf-8"><title>Client</title><script type="module" src="/suite.js"></script>';
  return new Response(html, { headers: { "content-type": "text/html" } });
}

async function runCases(page: Page): Promise<number> {
  await page.waitForFunction(() => "runCase" in globalThis);
  const cases = await page.evaluate(() => (globalThis as unknown as CasePage).caseNames());
  const verdicts = new SuiteVerdicts();
  for (const [index, { name, notInBrowser }] of cases.entries()) {
    if (notInBrowser !== null) {
      console.log(`left out: ${name}: ${notInBrowser}`);
      continue;
    }
    const late = Bun.sleep(CASE_MS_MAX).then(() => `not over after ${CASE_MS_MAX} ms`);
    const run = page.evaluate((at) => (globalThis as unknown as CasePage).runCase(at), index);
    const error = await Promise.race([run, late]);
    verdicts.judge(name, error === null ? [] : [error]);
  }
  return verdicts.close();
}

/** Servers and proxies of the page's cases. */
class HostStage implements PageFunctions {
  readonly #program: ServeProgram;
  readonly #servers = new Map<number, ServeProcess>();
  readonly #proxies = new Map<number, FaultProxy>();
  #page: Page | null = null;
  #nextId = 1;

  constructor(program: ServeProgram) {
    this.#program = program;
  }

  async offerTo(page: Page): Promise<void> {
    this.#page = page;
    await page.exposeFunction("stageStartServer", this.stageStartServer.bind(this));
    await page.exposeFunction("stageActOnServer", this.stageActOnServer.bind(this));
    await page.exposeFunction("stageStartProxy", this.stageStartProxy.bind(this));
    await page.exposeFunction("stageCloseProxy", this.stageCloseProxy.bind(this));
  }

  async close(): Promise<void> {
    for (const proxy of this.#proxies.values()) await proxy.close();
    for (const server of this.#servers.values()) await server.remove();
  }

  async stageStartServer(flags: readonly string[]): ReturnType<PageFunctions["stageStartServer"]> {
    const server = await ServeProcess.start(this.#program, flags);
    const id = this.#nextId++;
    this.#servers.set(id, server);
    return { id, picoUrl: server.picoUrl, durableStreamsUrl: server.durableStreamsUrl };
  }

  async stageActOnServer(...[id, act]: Parameters<PageFunctions["stageActOnServer"]>): Promise<void> {
    await this.#servers.get(id)?.[act]();
    if (act === "remove") this.#servers.delete(id);
  }

  async stageStartProxy(target: string): ReturnType<PageFunctions["stageStartProxy"]> {
    const id = this.#nextId++;
    const proxy = await FaultProxy.start(target, async ({ body, ...head }, index) => {
      const note: RequestNote = { ...head, body: Buffer.from(body).toString("latin1") };
      if (this.#page === null) throw new Error("a request before there is a page");
      return this.#page.evaluate(([proxyId, request, at]) => (globalThis as unknown as PageOffers).stageJudge(proxyId, request, at), [
        id,
        note,
        index,
      ] as const);
    });
    this.#proxies.set(id, proxy);
    return { id, url: proxy.url };
  }

  async stageCloseProxy(id: number): Promise<void> {
    await this.#proxies.get(id)?.close();
    this.#proxies.delete(id);
  }
}
