/**
 * The memory benchmark: many small streams on one node, how much memory it holds them in, and how long a
 * restart takes.
 *
 *   bun run bench:memory [--streams 100000] [--batch] [--source] [--flags "..."]
 *
 * Each stream is created and gets 10 records of 100 B, an append each (with `--batch` all in one). Then the
 * node is left alone until it has uploaded everything and again until it is idle; it is stopped gracefully
 * and started, and killed right after more appends and started.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { sendAll } from "./lib/bulk.ts";
import { describeMachine } from "./lib/machine.ts";
import { renderTable } from "./lib/report.ts";
import { makeFolder, removeFolder, ServerProcess } from "./lib/server-process.ts";
import { ourServer } from "./lib/subjects.ts";

const RECORDS = 10;
const RECORD = "x".repeat(100);
/** An upload begins at the latest when the oldest record is a minute old. */
const UPLOAD_MS_MAX = 180_000;
/** Sessions are dropped when they were idle for a minute. */
const IDLE_MS = 90_000;
/** Streams that get one more record before the node is killed: the backlog of the next start. */
const BACKLOG_STREAMS = 20_000;

const { values } = parseArgs({
  options: {
    streams: { type: "string", default: "100000" },
    batch: { type: "boolean", default: false },
    source: { type: "boolean", default: false },
    flags: { type: "string", default: "" },
  },
});

const streams = Number(values.streams);
const flags = values.flags.split(" ").filter((word) => word !== "");
const subject = ourServer({ id: "pico", checkout: join(import.meta.dir, ".."), fromSource: values.source, flags });
for (const line of describeMachine()) console.log(line);
console.log(subject.description);

const rows: string[][] = [["what", "figure"]];
function note(what: string, figure: string): void {
  rows.push([what, figure]);
  console.error(`${what}: ${figure}`);
}

const folder = makeFolder();
mkdirSync(folder, { recursive: true });
try {
  await run();
} finally {
  removeFolder(folder);
}
console.log(`\n${renderTable(rows)}`);

async function run(): Promise<void> {
  const prepared = await subject.prepare(join(folder, "data"));
  const log = join(folder, "log");
  const port = Number(new URL(prepared.endpoints.durableStreams).port);
  const admin = new URL(prepared.probe.url).origin;
  let server = await ServerProcess.start(prepared, log);
  note("RSS of an empty node", mebibytes(server));
  try {
    const seconds = await timed(() => sendAll(port, streams, (at) => requestOf("PUT", at, "")));
    note(`${streams} creates`, `${Math.round(streams / seconds)} /s`);
    note("RSS behind them", mebibytes(server));
    const appends = values.batch ? streams : streams * RECORDS;
    const appendSeconds = await timed(() =>
      sendAll(port, appends, (at) => requestOf("POST", at % streams, values.batch ? batchOf() : RECORD)),
    );
    note(`${appends} appends`, `${Math.round(appends / appendSeconds)} /s`);
    note("RSS behind them", mebibytes(server));
    const uploadSeconds = await timed(() => untilUploaded(admin));
    note("everything uploaded after", `${uploadSeconds.toFixed(0)} s`);
    note("RSS after upload", mebibytes(server));
    await Bun.sleep(IDLE_MS);
    note("RSS when idle", mebibytes(server));
    const stopSeconds = await timed(() => server.stop());
    note("graceful stop", `${stopSeconds.toFixed(2)} s`);
    server = await ServerProcess.start(prepared, log);
    note("ready after a graceful stop", `${(server.readyMs / 1000).toFixed(2)} s`);
    note("RSS after that start", mebibytes(server));
    await sendAll(port, Math.min(BACKLOG_STREAMS, streams), (at) => requestOf("POST", at, values.batch ? batchOf() : RECORD));
    await server.kill();
    server = await ServerProcess.start(prepared, log);
    note("ready after kill -9", `${(server.readyMs / 1000).toFixed(2)} s`);
    note("RSS after that start", mebibytes(server));
  } finally {
    await server.kill();
  }
}

function requestOf(method: string, at: number, body: string): string {
  const type = values.batch ? "application/json" : "text/plain";
  return `${method} /memory/${at} HTTP/1.1\r\nHost: localhost\r\nContent-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
}

/** A JSON array: each member becomes a record. */
function batchOf(): string {
  return JSON.stringify(Array.from({ length: RECORDS }, () => RECORD));
}

/** Until the node's number of objects has been above zero and at rest, with nothing prepared, for a while. */
async function untilUploaded(admin: string): Promise<void> {
  const startedMs = performance.now();
  let atRestSinceMs = startedMs;
  let objects = 0;
  // Longer than the age at which what is left over starts an upload of its own.
  while (performance.now() - atRestSinceMs < 65_000 || objects === 0) {
    if (performance.now() - startedMs > UPLOAD_MS_MAX) throw new Error("the node does not come to rest");
    const cluster = (await (await fetch(`${admin}/admin/cluster`)).json()) as { objectCount: number; preparedObjectCount: number };
    if (cluster.objectCount !== objects || cluster.preparedObjectCount > 0) atRestSinceMs = performance.now();
    objects = cluster.objectCount;
    await Bun.sleep(250);
  }
}

async function timed(work: () => Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return (performance.now() - startedMs) / 1000;
}

function mebibytes(server: ServerProcess): string {
  return `${Math.round(server.residentBytes() / 2 ** 20)} MiB`;
}
