/**
 * What dashboards cost: the latency of appends with many pages open and with none, in turns, on a node with many
 * streams; and how long the admin listener takes to answer meanwhile.
 *
 *   bun bench/dashboards.ts [--streams 200000] [--dashboards 20] [--rounds 7] [--seconds 8] [--rate 1000] [--source]
 *
 * A page asks what the dashboard asks, as often. Appends of 100 B come at an even rate over 32 connections, each at its
 * moment whatever became of the one before, so that a node that stands still is seen to.
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { sendAll } from "./lib/bulk.ts";
import { describeMachine } from "./lib/machine.ts";
import { renderTable } from "./lib/report.ts";
import { makeFolder, removeFolder, ServerProcess } from "./lib/server-process.ts";
import { median } from "./lib/statistics.ts";
import { ourServer } from "./lib/subjects.ts";

const CONNECTIONS = 32;
const RECORD = "x".repeat(100);
const POLL_MS = 2000;
const PAGES = ["/ready", "/admin/cluster", "/admin/nodes", "/admin/activity"];

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "200000" },
    dashboards: { type: "string", default: "20" },
    rounds: { type: "string", default: "7" },
    seconds: { type: "string", default: "8" },
    rate: { type: "string", default: "1000" },
    source: { type: "boolean", default: false },
  },
});
const streams = Number(values.streams);
const rate = Number(values.rate);
const subject = ourServer({ id: "pico", checkout: join(import.meta.dir, ".."), fromSource: values.source, flags: [] });
for (const line of describeMachine()) console.log(line);
console.log(subject.description);

const folder = makeFolder();
try {
  await run();
} finally {
  removeFolder(folder);
}

async function run(): Promise<void> {
  const prepared = await subject.prepare(join(folder, "data"));
  const { pico } = prepared.endpoints;
  if (pico === null) throw new Error("our server speaks the Pico protocol");
  const server = await ServerProcess.start(prepared, join(folder, "log"));
  const admin = new URL(prepared.probe.url).origin;
  try {
    await sendAll(Number(new URL(pico).port), streams, (at) => `PUT /bench/${at} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n`);
    await appendFor(pico, Number(values.seconds));
    const without: number[][] = [];
    const beside: number[][] = [];
    const asked = new Map(PAGES.map((page) => [page, [] as number[]]));
    for (let round = 0; round < Number(values.rounds); round++) {
      without.push(await appendFor(pico, Number(values.seconds)));
      const isOver = { value: false };
      const polls = Array.from({ length: Number(values.dashboards) }, (_, at) => poll(admin, at, asked, isOver));
      beside.push(await appendFor(pico, Number(values.seconds)));
      isOver.value = true;
      await Promise.all(polls);
    }
    report(without, beside, asked);
  } finally {
    await server.kill();
  }
}

/** Latencies in milliseconds, from the moment that an append was due. */
async function appendFor(url: string, seconds: number): Promise<number[]> {
  const latencies: number[] = [];
  const startedMs = performance.now();
  const perConnection = Math.floor((rate * seconds) / CONNECTIONS);
  const connection = async (number: number) => {
    for (let at = 0; at < perConnection; at++) {
      const dueMs = startedMs + ((at * CONNECTIONS + number) * 1000) / rate;
      const waitMs = dueMs - performance.now();
      if (waitMs > 0) await Bun.sleep(waitMs);
      const answer = await fetch(`${url}/bench/${(at * CONNECTIONS + number) % streams}`, { method: "POST", body: RECORD });
      await answer.arrayBuffer();
      if (answer.status !== 200) throw new Error(`an append was answered with ${answer.status}`);
      latencies.push(performance.now() - Math.max(dueMs, startedMs));
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, (_, number) => connection(number)));
  return latencies;
}

/** One page: the first look has all samples of the node's activity, later ones the new. */
async function poll(
  admin: string,
  number: number,
  asked: ReadonlyMap<string, number[]>,
  isOver: { readonly value: boolean },
): Promise<void> {
  await Bun.sleep((number * POLL_MS) / Number(values.dashboards));
  let since = 0;
  while (!isOver.value) {
    const nextMs = performance.now() + POLL_MS;
    await Promise.all(
      PAGES.map(async (page) => {
        const startedMs = performance.now();
        const answer = await fetch(`${admin}${page}${page === "/admin/activity" ? `?since=${since}` : ""}`);
        const body = (await answer.json()) as { nowMs?: number };
        if (answer.status !== 200) throw new Error(`${page} was answered with ${answer.status}`);
        asked.get(page)?.push(performance.now() - startedMs);
        since = body.nowMs ?? since;
      }),
    );
    await Bun.sleep(Math.max(0, nextMs - performance.now()));
  }
}

function report(without: readonly number[][], beside: readonly number[][], asked: ReadonlyMap<string, readonly number[]>): void {
  const ofRounds = (rounds: readonly number[][], share: number) => median(rounds.map((latencies) => quantile(latencies, share)));
  const rows = [["what", "p50 ms", "p99 ms", "worst ms"]];
  const row = (what: string, rounds: readonly number[][]) =>
    rows.push([what, ...[0.5, 0.99, 1].map((share) => ofRounds(rounds, share).toFixed(2))]);
  row(`appends, ${rate} /s, no dashboard`, without);
  row(`appends, ${rate} /s, ${values.dashboards} dashboards`, beside);
  for (const [page, times] of asked) row(page, [[...times]]);
  const ratios = beside.map((latencies, round) => quantile(latencies, 0.99) / quantile(without[round] ?? [], 0.99));
  console.log(`\n${streams} streams, medians of ${without.length} rounds\n\n${renderTable(rows)}`);
  console.log(`\np99 of appends with dashboards to without, in each round: ${ratios.map((value) => value.toFixed(2)).join(" ")}`);
}

function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((left, right) => left - right);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}
