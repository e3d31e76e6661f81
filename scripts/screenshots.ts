/**
 * Takes the pictures of the dashboard in docs/images: every page, light and dark, wide and narrow, of a node that works.
 *
 *   ./compile.sh && node scripts/bootstrap.mjs scripts/screenshots.ts [--only NAME] [--warm-up SECONDS]
 *
 * Names, records and rates come from a seed; times and latencies are the machine's.
 */
import { mkdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import type { BrowserContext, Page } from "playwright-core";
import { Dashboard } from "../test/browser/dashboard.ts";
import { append, appendMany, createStream, createStreams } from "../test/browser/streams.ts";
import { SeededRandom } from "../test/support/seeded-random.ts";

const folder = join(dirname(import.meta.dir), "docs/images");
/** Of load before the first picture, so that the charts have something to show. */
const WARM_UP_SECONDS = 150;
const BYTES_MAX = 200_000;
const HEIGHT_MAX = 1400;

const WIDE = { width: 1280, height: 800 };
const NARROW = { width: 390, height: 844 };
const REGIONS = ["eu-central", "eu-west", "us-east", "us-west", "ap-south"];
const CITIES = ["Berlin", "Lyon", "Porto", "Oslo", "Turin", "Graz", "Ghent"];

interface Shot {
  readonly name: string;
  readonly hash: string;
  /** Brings the page into the state of the picture. */
  readonly prepare: (page: Page) => Promise<unknown>;
  /** Done once all forms of the page are prepared. */
  readonly meanwhile?: (dashboard: Dashboard, pages: readonly Page[]) => Promise<void>;
  /** The page is taken as a window shows it, not as long as it is. */
  readonly isWindow?: boolean;
}

const SHOTS: readonly Shot[] = [
  { name: "overview", hash: "", prepare: openOverview },
  { name: "streams", hash: "#/streams", prepare: (page) => page.locator(".stream-name").first().waitFor(), isWindow: true },
  { name: "records", hash: "#/streams/orders/eu-central?from=120", prepare: openRecord, isWindow: true },
  {
    name: "live",
    hash: "#/streams/orders/eu-central?view=live",
    prepare: (page) => page.locator(".record").nth(24).waitFor(),
    isWindow: true,
  },
  { name: "append", hash: "#/streams/orders/eu-central?view=append", prepare: fillAppend },
  { name: "details", hash: "#/streams/orders/eu-central?view=details", prepare: (page) => page.locator(".fork-tree").waitFor() },
  { name: "delete", hash: "#/streams/orders/eu-central", prepare: openDelete, isWindow: true },
  { name: "hex", hash: "#/streams/sensors/raw", prepare: openHex },
  { name: "api", hash: "docs", prepare: (page) => page.locator(".opblock").first().waitFor(), isWindow: true },
];

await main();

async function main(): Promise<void> {
  const only = optionOf("--only");
  mkdirSync(folder, { recursive: true });
  await using empty = await Dashboard.start();
  await takeAll(empty, { name: "empty", hash: "#/streams", prepare: (page) => page.getByText("No streams yet").waitFor() }, only);
  await using dashboard = await Dashboard.start();
  const load = new Load(dashboard);
  await load.prepare();
  const isLoaded = load.run();
  await Bun.sleep(Number(optionOf("--warm-up") ?? WARM_UP_SECONDS) * 1000);
  for (const shot of SHOTS) await takeAll(dashboard, shot, only);
  load.stop();
  await isLoaded;
  await takeAll(dashboard, { name: "unreachable", hash: "", prepare: openOverview, meanwhile: seeDeath }, only);
}

function optionOf(word: string): string | null {
  const at = process.argv.indexOf(word);
  return at < 0 ? null : (process.argv[at + 1] ?? null);
}

/** Opens the page in all four forms, then takes them: what happens in `meanwhile` is seen by each. */
async function takeAll(dashboard: Dashboard, shot: Shot, only: string | null): Promise<void> {
  if (only !== null && only !== shot.name) return;
  const opened: { context: BrowserContext; page: Page; form: string; width: number; height: number }[] = [];
  for (const colorScheme of ["light", "dark"] as const) {
    for (const [size, viewport] of [["wide", WIDE] as const, ["narrow", NARROW] as const]) {
      const context = await dashboard.newContext({ colorScheme, viewport, reducedMotion: "reduce", timezoneId: "UTC" });
      const page = await dashboard.open(shot.hash, context);
      await shot.prepare(page);
      opened.push({ context, page, form: `${colorScheme}-${size}`, ...viewport });
    }
  }
  await shot.meanwhile?.(
    dashboard,
    opened.map(({ page }) => page),
  );
  for (const { context, page, form, width, height } of opened) {
    // The bars are fixed to the window: it grows with the page, up to a height that is still looked at.
    const whole = Math.min(await page.evaluate<number>("document.documentElement.scrollHeight"), HEIGHT_MAX);
    if (shot.isWindow !== true) await page.setViewportSize({ width, height: Math.max(whole, height) });
    const path = join(folder, `${shot.name}-${form}.png`);
    await page.screenshot({ path });
    const bytes = statSync(path).size;
    console.log(`${path}: ${bytes} bytes${bytes > BYTES_MAX ? `, more than ${BYTES_MAX}` : ""}`);
    await context.close();
  }
}

async function openRecord(page: Page): Promise<void> {
  await page.locator('[data-offset="121"] summary').click();
  await page.locator('[data-offset="121"] .record-text').waitFor();
}

async function fillAppend(page: Page): Promise<void> {
  await page.getByLabel("Body").fill('{\n  "order": 90210,\n  "city": "Lyon",\n  "total": 149.9\n}');
  await page.getByLabel("Key (optional)").fill("customer-17");
}

async function openDelete(page: Page): Promise<void> {
  await page.locator(".record").first().waitFor();
  await page.getByRole("button", { name: "Delete" }).click();
  await page.getByLabel("Type the name").fill("/orders/eu-cen");
}

async function openHex(page: Page): Promise<void> {
  await page.locator(".record summary").first().click();
  await page.locator(".record-text").waitFor();
}

async function openOverview(page: Page): Promise<void> {
  await page.locator(".chart-canvas canvas").nth(3).waitFor();
  await page.getByText("This node is ready").waitFor();
}

async function seeDeath(dashboard: Dashboard, pages: readonly Page[]): Promise<void> {
  await dashboard.kill();
  for (const page of pages) await page.getByText("Unreachable").waitFor();
}

/** Clients as a small shop would have them. */
class Load {
  readonly #random = new SeededRandom(20);
  #isStopped = false;
  #order = 0;

  constructor(private readonly dashboard: Dashboard) {}

  stop(): void {
    this.#isStopped = true;
  }

  async prepare(): Promise<void> {
    const { picoUrl, durableStreamsUrl } = this.dashboard;
    for (const region of REGIONS) await createStream(picoUrl, `/orders/${region}`);
    await createStream(picoUrl, "/logs/gateway", { "content-type": "text/plain; charset=utf-8" });
    await createStream(picoUrl, "/sessions/checkout", { "pico-ttl": "86400" });
    await createStream(picoUrl, "/imports/2026-03", { "content-type": "application/x-ndjson", "pico-closed": "true" });
    await createStream(picoUrl, "/sensors/raw", { "content-type": "application/octet-stream" });
    await createStreams(
      picoUrl,
      Array.from({ length: 140 }, (_, index) => `/sites/${String(index).padStart(4, "0")}/telemetry`),
    );
    await appendMany(picoUrl, "/orders/eu-central", 400, () => this.#orderText());
    for (let round = 0; round < 12; round++) {
      await fetch(`${picoUrl}/sensors/raw`, { method: "POST", body: this.#random.bytes(96).slice() });
    }
    for (const [producer, epoch] of [
      ["checkout-eu-1", 4],
      ["checkout-eu-2", 4],
      ["backfill-2026-03", 0],
    ] as const) {
      const headers = { "pico-producer-id": producer, "pico-producer-epoch": String(epoch), "pico-producer-seq": "0" };
      await append(picoUrl, "/orders/eu-central", this.#orderText(), headers);
    }
    for (const [fork, offset] of [
      ["/orders/eu-central-replay", 250],
      ["/analytics/eu-central", 0],
    ] as const) {
      const answer = await fetch(durableStreamsUrl + fork, {
        method: "PUT",
        headers: {
          "content-type": "application/json",
          "stream-forked-from": "/orders/eu-central",
          "stream-fork-offset": String(offset).padStart(20, "0"),
        },
      });
      if (!answer.ok) throw new Error(`fork ${fork}: ${answer.status} ${await answer.text()}`);
    }
  }

  /** Appends and reads in waves until it is stopped. */
  async run(): Promise<void> {
    await Promise.all([
      ...REGIONS.map((region) => this.#write(region)),
      this.#follow("/orders/eu-central"),
      this.#follow("/orders/us-east"),
    ]);
  }

  async #write(region: string): Promise<void> {
    const { picoUrl } = this.dashboard;
    for (let beat = 0; !this.#isStopped; beat++) {
      const wave = 1 + Math.sin(beat / 40) * 0.6;
      const count = 1 + Math.floor(wave * 6 * this.#random.fraction());
      await appendMany(picoUrl, `/orders/${region}`, count, () => this.#orderText());
      if (this.#random.fraction() < 0.4) await (await fetch(`${picoUrl}/orders/${region}?seq=0&count=40`)).text();
      await Bun.sleep(30 + 90 * this.#random.fraction());
    }
  }

  async #follow(name: string): Promise<void> {
    let next = "now";
    while (!this.#isStopped) {
      const answer = await fetch(`${this.dashboard.picoUrl}${name}?seq=${next}&live=long-poll`);
      await answer.text();
      next = answer.headers.get("pico-next-seq") ?? next;
    }
  }

  #orderText(): string {
    this.#order += 1;
    const total = Math.round(this.#random.fraction() * 40_000) / 100;
    return JSON.stringify({ order: 90_000 + this.#order, city: this.#random.pick(CITIES), total, paid: this.#random.fraction() < 0.8 });
  }
}
