/**
 * A served node and pages of a real browser on its dashboard. Every page is watched: what it asks for, what the
 * browser complains of, and whether anything that people stored was run. `close` tells what was seen.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Browser, BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { eventually } from "../cluster/eventually.ts";
import { EXECUTABLE, freePorts, type NodeOptions, NodeProcess, type Ports } from "../cluster/node-process.ts";
import { launchChromium } from "../support/chromium.ts";

/** For a crowded machine: what a test waits for, unless it says otherwise. */
const WAIT_MS_MAX = 20_000;

/** What the pages did that no page of ours may do. */
export interface Sightings {
  /** Requests to another origin than the node's admin listener. */
  readonly foreignRequests: string[];
  /** Violations of the content security policy, uncaught errors, dialogs. */
  readonly complaints: string[];
}

/** The name under which an injected script would leave its mark. */
export const CANARY = "picoCanary";
/** What each hostile text tries: markup that closes an attribute, and script that runs at once. */
export const HOSTILE = `"><img src=x onerror="window.${CANARY}=1"><script>window.${CANARY}=1</script>`;

export class Dashboard implements AsyncDisposable {
  readonly sightings: Sightings = { foreignRequests: [], complaints: [] };
  readonly #options: NodeOptions;
  readonly #folder: string;
  readonly #contexts: BrowserContext[] = [];
  #node: NodeProcess;

  private constructor(
    readonly ports: Ports,
    readonly browser: Browser,
    folder: string,
    options: NodeOptions,
    node: NodeProcess,
  ) {
    this.#folder = folder;
    this.#options = options;
    this.#node = node;
  }

  static async start(given: Pick<NodeOptions, "flags" | "environment"> = {}): Promise<Dashboard> {
    const folder = mkdtempSync(join(tmpdir(), "pico-dashboard-"));
    const ports = await freePorts();
    const browser = await launchChromium();
    if (browser === null) throw new Error("no Chromium is there");
    const options = { program: EXECUTABLE, dataDirectory: join(folder, "data"), ports, logPath: join(folder, "log"), ...given };
    return new Dashboard(ports, browser, folder, options, await NodeProcess.start(options));
  }

  get adminUrl(): string {
    return `http://127.0.0.1:${this.ports.admin}`;
  }

  get picoUrl(): string {
    return `http://127.0.0.1:${this.ports.pico}`;
  }

  get durableStreamsUrl(): string {
    return `http://127.0.0.1:${this.ports.durableStreams}`;
  }

  get node(): NodeProcess {
    return this.#node;
  }

  /** A browser session of its own, with nothing stored yet. */
  async newContext(options: BrowserContextOptions = {}): Promise<BrowserContext> {
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
    context.setDefaultTimeout(WAIT_MS_MAX);
    await context.addInitScript({
      content: "addEventListener('securitypolicyviolation', (e) => console.error('policy: ' + e.violatedDirective + ' ' + e.blockedURI))",
    });
    this.#contexts.push(context);
    return context;
  }

  /** A watched page at `#…`. */
  async open(hash: string, context?: BrowserContext): Promise<Page> {
    const page = await (context ?? (await this.newContext())).newPage();
    this.#watch(page);
    await page.goto(`${this.adminUrl}/${hash}`);
    return page;
  }

  /** `kill -9`; the page is told by nobody. */
  async kill(): Promise<void> {
    await this.#node.kill();
  }

  /** Starts the node again on the same ports and data. */
  async restart(): Promise<void> {
    this.#node = await NodeProcess.start(this.#options);
  }

  /** Whether anything of a hostile text came to life on the page. */
  async hasRun(page: Page): Promise<boolean> {
    return page.evaluate(`"${CANARY}" in globalThis || document.querySelector("img, [onerror], body script") !== null`);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const context of this.#contexts) await context.close();
    await this.browser.close();
    if (!this.#node.hasExited) await this.#node.stop();
    rmSync(this.#folder, { recursive: true, force: true });
  }

  #watch(page: Page): void {
    const { foreignRequests, complaints } = this.sightings;
    page.on("request", (request) => {
      if (new URL(request.url()).origin !== this.adminUrl) foreignRequests.push(request.url());
    });
    page.on("websocket", (socket) => foreignRequests.push(socket.url()));
    page.on("pageerror", (error) => complaints.push(String(error.stack ?? error)));
    page.on("dialog", (dialog) => {
      complaints.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on("console", (message) => {
      // A node that is away, or refuses, is reported by the browser as well; that is not the page's doing.
      if (message.type() === "error" && !message.text().startsWith("Failed to load resource")) complaints.push(message.text());
    });
  }
}

/** Waits until an expression holds in the page. The page's policy forbids what Playwright would wait with. */
export async function until(page: Page, expression: string): Promise<void> {
  await eventually(expression, () => page.evaluate<boolean>(expression), WAIT_MS_MAX);
}
