/**
 * The benchmark on an object store: a node with storage and WAL on a MinIO of the same machine, beside bare requests
 * to that MinIO in the same run.
 *
 *   npm run bench:store -- [--rounds 5] [--seconds 5] [--mib 1024] [--streams 10000] [--only lone,load,cost,catch-up,spread] [--source]
 *
 *   lone      one append of 100 B at a time, and one conditional PUT of the same segment at a time, in turn
 *   load      appends of 100 B over 64 connections
 *   cost      requests and bytes of the store a million appends, by linger and connections
 *   catch-up  a stream of `--mib` read from its start by a node that has nothing in memory, and the same objects by bare GETs of 1 MiB
 *   spread    `--streams` streams written in turn: requests that a full read of one takes, before and after compaction
 */
import { join } from "node:path";
import { parseArgs } from "node:util";
import { buildMinio, type MinioServer, startMinio } from "../scripts/minio.ts";
import { COMPACTION_DEPTH_MAX } from "../src/lib/limits.ts";
import { BareStore } from "./lib/bare-store.ts";
import { sendAll } from "./lib/bulk.ts";
import { describeMachine } from "./lib/machine.ts";
import { NodeMetrics, type StoreCounts, storeCountsBetween } from "./lib/node-metrics.ts";
import { renderTable } from "./lib/report.ts";
import { makeFolder, removeFolder, ServerProcess } from "./lib/server-process.ts";
import { median, ratio, spread } from "./lib/statistics.ts";
import { append, createStream, forEachParallel } from "./lib/stream-client.ts";
import { ourServer } from "./lib/subjects.ts";
import { runWrk } from "./lib/wrk.ts";

const BINARY = "application/octet-stream";
const RECORD = "x".repeat(100);
const MIB = 1 << 20;
const WARM_UP_SECONDS = 2;
/** Uploads and compactions are over within this. */
const SETTLE_MS_MAX = 180_000;
/** An upload every few seconds, so that its share is in what is counted. */
const COST_FLAGS = ["--wal-upload-interval-ms", "5000"];
/** Longer than two rounds of compaction are apart. */
const MERGE_QUIET_MS = 3000;
/** Of a stream that is read for the number of requests. */
const SPREAD_READS = 5;
/** Bodies as they lie in the objects; each record in a frame; text. */
const PAGE_FORMATS = ["raw", "binary", "json"] as const;
const SPREAD_OBJECTS_MAX = 20;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "5" },
    mib: { type: "string", default: "1024" },
    streams: { type: "string", default: "10000" },
    only: { type: "string", default: "lone,load,cost,catch-up,spread" },
    source: { type: "boolean", default: false },
  },
});
const rounds = Number(values.rounds);
const seconds = Number(values.seconds);

const PARTS: Readonly<Record<string, (minio: MinioServer) => Promise<void>>> = {
  lone: measureLone,
  load: measureLoad,
  cost: measureCost,
  "catch-up": measureCatchUp,
  spread: measureSpread,
};

await buildMinio();
for (const line of describeMachine()) console.log(line);
console.log(
  ourServer({ id: "pico", checkout: join(import.meta.dir, ".."), fromSource: values.source, flags: ["--storage s3://"] }).description,
);
for (const name of values.only.split(",")) {
  const measure = PARTS[name];
  if (measure === undefined) throw new Error(`no part ${name}; there are ${Object.keys(PARTS).join(", ")}`);
  const minio = await startMinio();
  Object.assign(process.env, minio.environment);
  try {
    await measure(minio);
  } finally {
    await minio.stop();
  }
}

/** A node on a bucket, which can be started again with nothing in memory. */
class StoreNode {
  readonly url: string;
  readonly adminUrl: string;
  readonly port: number;
  #process: ServerProcess | null = null;

  private constructor(
    private readonly prepared: Awaited<ReturnType<ReturnType<typeof ourServer>["prepare"]>>,
    readonly folder: string,
  ) {
    this.url = prepared.endpoints.pico ?? "";
    this.port = Number(new URL(this.url).port);
    this.adminUrl = new URL(prepared.probe.url).origin;
  }

  static async start(minio: MinioServer, cluster: string, parameters = "", flags: readonly string[] = []): Promise<StoreNode> {
    const folder = makeFolder();
    const all = ["--cluster-id", cluster, "--storage", minio.uri("", parameters), ...flags];
    const subject = ourServer({ id: "pico", checkout: join(import.meta.dir, ".."), fromSource: values.source, flags: all });
    const node = new StoreNode(await subject.prepare(join(folder, "data")), folder);
    await node.resume();
    return node;
  }

  async resume(): Promise<void> {
    this.#process = await ServerProcess.start(this.prepared, join(this.folder, "log"));
  }

  /** A graceful stop, which uploads everything. */
  async stop(): Promise<void> {
    await this.#process?.stop();
    this.#process = null;
  }

  async restart(): Promise<void> {
    await this.stop();
    await this.resume();
  }

  async close(): Promise<void> {
    await this.#process?.kill();
    removeFolder(this.folder);
  }

  metrics(): Promise<NodeMetrics> {
    return NodeMetrics.read(this.adminUrl);
  }

  async store(): Promise<StoreCounts> {
    return (await this.metrics()).store();
  }

  create(path: string): Promise<void> {
    return createStream({ url: this.url, protocol: "pico" }, path, BINARY);
  }
}

async function measureLone(minio: MinioServer): Promise<void> {
  const node = await StoreNode.start(minio, "lone");
  const bare = new BareStore(minio);
  try {
    await node.create("/lone");
    const target = { url: node.url, protocol: "pico" } as const;
    const record = new TextEncoder().encode(RECORD);
    const appendOnce = async () => {
      const startedMs = performance.now();
      await append(target, "/lone", BINARY, record);
      return performance.now() - startedMs;
    };
    let keys = 0;
    await during(WARM_UP_SECONDS, appendOnce);
    const before = await node.metrics();
    await during(1, appendOnce);
    const after = await node.metrics();
    const grown = (name: string) => after.value(name) - before.value(name);
    const segmentBytes = Math.round(grown("pico_wal_written_bytes_total") / grown("pico_wal_segments_total"));
    const segment = new Uint8Array(segmentBytes).fill(120);
    // As deep in folders as a segment: each level costs MinIO some time.
    const putOnce = () => bare.put(`bare/wal/1/1/${String(keys++).padStart(16, "0")}`, segment);
    await during(WARM_UP_SECONDS, putOnce);
    const appends: number[] = [];
    const puts: number[] = [];
    for (let round = 0; round < rounds; round++) {
      puts.push(median(await during(seconds, putOnce)));
      appends.push(median(await during(seconds, appendOnce)));
    }
    report("lone", [
      ["what", "p50 ms", "±"],
      [`conditional PUT of ${segmentBytes} B`, median(puts).toFixed(2), percent(spread(puts))],
      ["append of 100 B", median(appends).toFixed(2), percent(spread(appends))],
      ["append / PUT, within rounds", ratio(appends, puts).toFixed(2), ""],
    ]);
  } finally {
    await node.close();
  }
}

async function measureLoad(minio: MinioServer): Promise<void> {
  const node = await StoreNode.start(minio, "load");
  const bare = new BareStore(minio);
  try {
    const paths = await createPaths(node, 64);
    const load = (time: number) => loadAppends(node, paths, time);
    await load(WARM_UP_SECONDS);
    const rates: number[] = [];
    const p99: number[] = [];
    const puts: number[] = [];
    const requests: number[] = [];
    let keys = 0;
    for (let round = 0; round < rounds; round++) {
      const body = new Uint8Array(16 * 1024).fill(120);
      puts.push(median(await during(1, () => bare.put(`bare/${keys++}`, body))));
      const before = await node.store();
      const result = await load(seconds);
      const counts = storeCountsBetween(before, await node.store());
      rates.push(result.requests / result.seconds);
      p99.push(result.p99Ms);
      requests.push(((counts.creates + counts.reads + counts.others) * 1000) / result.requests);
    }
    report("load", [
      ["what", "median", "±"],
      ["appends of 100 B over 64 connections, /s", Math.round(median(rates)).toString(), percent(spread(rates))],
      ["their p99, ms", median(p99).toFixed(1), percent(spread(p99))],
      ["store requests per 1,000 appends", median(requests).toFixed(1), percent(spread(requests))],
      ["lone conditional PUT of 16 KiB meanwhile, p50 ms", median(puts).toFixed(2), percent(spread(puts))],
    ]);
  } finally {
    await node.close();
  }
}

async function measureCost(minio: MinioServer): Promise<void> {
  const rows = [["linger ms", "connections", "appends /s", "p50 ms", "PUT", "GET", "LIST, DELETE, HEAD", "MiB written"]];
  for (const linger of [0, 20, 100]) {
    for (const connections of [1, 64, 256]) {
      const node = await StoreNode.start(minio, `cost-${linger}-${connections}`, `&linger=${linger}`, COST_FLAGS);
      try {
        const paths = await createPaths(node, connections);
        const load = (time: number) => loadAppends(node, paths, time);
        await load(1);
        await untilUploaded(node);
        const before = await node.store();
        const result = await load(seconds);
        await untilUploaded(node);
        const counts = storeCountsBetween(before, await node.store());
        const perMillion = (count: number) => Math.round((count * 1e6) / result.requests).toString();
        rows.push([
          String(linger),
          String(connections),
          Math.round(result.requests / result.seconds).toString(),
          result.p50Ms.toFixed(1),
          perMillion(counts.creates),
          perMillion(counts.reads),
          perMillion(counts.others),
          perMillion(counts.createdBytes / MIB),
        ]);
      } finally {
        await node.close();
      }
    }
  }
  report("cost: requests and bytes of the store a million appends of 100 B", rows);
}

async function measureCatchUp(minio: MinioServer): Promise<void> {
  const mib = Number(values.mib);
  const node = await StoreNode.start(minio, "catch-up");
  const bare = new BareStore(minio);
  try {
    await node.create("/long");
    const body = new Uint8Array(MIB / 4).fill(120);
    for (let at = 0; at < mib * 4; at++) await append({ url: node.url, protocol: "pico" }, "/long", BINARY, body);
    // What was written long ago is uploaded, merged, and all that it left is gone.
    await node.restart();
    await untilMerged(node);
    await node.stop();
    const objects = await bare.list("catch-up/data/");
    const ours = PAGE_FORMATS.map((format) => ({ format, rates: [] as number[], requests: [] as number[] }));
    const bares: number[] = [];
    for (let round = 0; round < rounds; round++) {
      bares.push(await rateOf(() => bare.readAll(objects)));
      for (const { format, rates, requests } of ours) {
        await node.resume();
        const before = await node.store();
        rates.push(await rateOf(() => readStream(node, "/long", format)));
        requests.push((await node.store()).reads - before.reads);
        await node.stop();
      }
    }
    console.log(`\na stream of ${mib} MiB in ${objects.length} objects, by pages of 4 MiB, nothing in memory`);
    report("catch-up", [
      ["what", "MiB/s", "±", "/ bare, within rounds", "store reads"],
      ["bare GETs of 1 MiB", median(bares).toFixed(1), percent(spread(bares)), "", ""],
      ...ours.map(({ format, rates, requests }) => [
        `pages, format=${format}`,
        median(rates).toFixed(1),
        percent(spread(rates)),
        ratio(rates, bares).toFixed(2),
        median(requests).toFixed(0),
      ]),
    ]);
  } finally {
    await node.close();
  }
}

/** Each stream gets a record an object, so that it is spread over as many objects as there are. */
async function measureSpread(minio: MinioServer): Promise<void> {
  const streams = Number(values.streams);
  const node = await StoreNode.start(minio, "spread");
  const body = "x".repeat(1000);
  const writeAll = async () => {
    await sendAll(
      node.port,
      streams,
      (at) => `POST /spread/${at} HTTP/1.1\r\nhost: x\r\ncontent-type: ${BINARY}\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    // A graceful stop uploads all that there is, as one object.
    await node.restart();
  };
  try {
    await sendAll(
      node.port,
      streams,
      (at) => `PUT /spread/${at} HTTP/1.1\r\nhost: x\r\ncontent-type: ${BINARY}\r\ncontent-length: 0\r\n\r\n`,
    );
    // A merge is due at the next object of level 0.
    for (let objects = 0; objects < SPREAD_OBJECTS_MAX && (await liveObjects(node)) < COMPACTION_DEPTH_MAX - 1; objects++) await writeAll();
    const before = await readCosts(node, streams);
    await writeAll();
    await untilMerged(node);
    const after = await readCosts(node, streams);
    report(`spread: ${streams} streams written in turn`, [
      ["when", "live objects", "store reads for one stream, nothing in memory", "bytes read / bytes of the stream"],
      ["before compaction", before.objects, before.reads, before.bytes],
      ["after", after.objects, after.reads, after.bytes],
    ]);
  } finally {
    await node.close();
  }
}

/** Of full reads of single streams, each by a node that has just started. */
async function readCosts(node: StoreNode, streams: number): Promise<{ objects: string; reads: string; bytes: string }> {
  const reads: number[] = [];
  const shares: number[] = [];
  let objects = 0;
  for (let read = 0; read < SPREAD_READS; read++) {
    await node.restart();
    objects = await liveObjects(node);
    const before = await node.store();
    const bytes = await readStream(node, `/spread/${Math.floor(((read + 0.5) * streams) / SPREAD_READS)}`, "json");
    const counts = storeCountsBetween(before, await node.store());
    reads.push(counts.reads);
    shares.push(counts.readBytes / bytes);
  }
  return { objects: String(objects), reads: `${median(reads)} (at most ${Math.max(...reads)})`, bytes: median(shares).toFixed(1) };
}

/** Reads a stream from its start by pages; returns the bytes. */
async function readStream(node: StoreNode, path: string, format: string): Promise<number> {
  let next = "0";
  let bytes = 0;
  for (;;) {
    const response = await fetch(`${node.url}${path}?seq=${next}&bytes=${4 * MIB}&format=${format}`);
    if (response.status !== 200 && response.status !== 204)
      throw new Error(`GET ${path} answers ${response.status}: ${await response.text()}`);
    bytes += (await response.arrayBuffer()).byteLength;
    next = response.headers.get("pico-next-seq") ?? "";
    if (response.headers.get("pico-up-to-date") === "true") return bytes;
  }
}

async function createPaths(node: StoreNode, count: number): Promise<readonly string[]> {
  const paths = Array.from({ length: count }, (_, at) => `/bench-${at}`);
  await forEachParallel(count, (at) => node.create(paths[at] ?? ""));
  return paths;
}

function loadAppends({ url, folder }: StoreNode, paths: readonly string[], time: number): ReturnType<typeof runWrk> {
  return runWrk({ url, folder, method: "POST", paths, bodyBytes: 100, connections: paths.length, seconds: time });
}

/** What `work` returns, again and again for so long. */
async function during(time: number, work: () => Promise<number>): Promise<number[]> {
  const results: number[] = [];
  const endMs = performance.now() + time * 1000;
  while (performance.now() < endMs) results.push(await work());
  return results;
}

/** MiB a second, of the bytes that `work` returns. */
async function rateOf(work: () => Promise<number>): Promise<number> {
  const startedMs = performance.now();
  const bytes = await work();
  return bytes / MIB / ((performance.now() - startedMs) / 1000);
}

function untilUploaded(node: StoreNode): Promise<void> {
  return until("everything is uploaded", async () => (await node.metrics()).value("pico_wal_unuploaded_bytes") === 0);
}

/** The merges under way are over, and none followed. */
async function untilMerged(node: StoreNode): Promise<void> {
  let last = -1;
  let sinceMs = performance.now();
  await until("all is merged", async () => {
    const metrics = await node.metrics();
    const now = metrics.value("pico_compaction_read_bytes_total") + metrics.value("pico_compactions_total");
    if (now !== last) sinceMs = performance.now();
    last = now;
    return performance.now() - sinceMs > MERGE_QUIET_MS;
  });
}

async function liveObjects(node: StoreNode): Promise<number> {
  return (await node.metrics()).value('pico_objects{state="live"}');
}

async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  const limitMs = performance.now() + SETTLE_MS_MAX;
  while (!(await look())) {
    if (performance.now() > limitMs) throw new Error(`not within ${SETTLE_MS_MAX / 1000} s: ${what}`);
    await Bun.sleep(100);
  }
}

function percent(share: number): string {
  return `${Math.round(share * 100)} %`;
}

function report(title: string, rows: readonly (readonly string[])[]): void {
  console.log(`\n${title}\n\n${renderTable(rows)}`);
}
