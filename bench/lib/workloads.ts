/** The loads of the HTTP benchmark: what each prepares, does and counts. */
import { runFanOut } from "./fan-out.ts";
import { append, createStream, forEachParallel, readSize, type StreamTarget } from "./stream-client.ts";
import { runWrk } from "./wrk.ts";

const BINARY = "application/octet-stream";
const FAN_OUT_READERS = 500;

/** Where a load is put: one server over one protocol. */
export interface LoadTarget extends StreamTarget {
  /** For files of the load generator. */
  readonly folder: string;
}

/** By name of the figure. */
export type Figures = Readonly<Record<string, number>>;

export interface Workload {
  readonly id: string;
  readonly title: string;
  /** Figures in the order of the report; a ratio above 1 is good where higher is better. */
  readonly figures: readonly { readonly name: string; readonly unit: string; readonly isHigherBetter: boolean }[];
  /** Whether our own protocol is measured too. */
  readonly overPico: boolean;
  /** The server is stopped and started between preparing and measuring, so that nothing is in its memory. */
  readonly restarts: boolean;
  /** Once a server. Returns the paths for `measure`. */
  prepare(target: LoadTarget): Promise<readonly string[]>;
  measure(
    target: LoadTarget,
    paths: readonly string[],
    seconds: number,
  ): Promise<{ readonly figures: Figures; readonly operations: number }>;
}

const RATE = { name: "rate", unit: "/s", isHigherBetter: true };
const P50 = { name: "p50", unit: "ms", isHigherBetter: false };
const P99 = { name: "p99", unit: "ms", isHigherBetter: false };

export const WORKLOADS: readonly Workload[] = [
  appends("append-64", "durable appends of 100 B, 64 connections", 64, [RATE, P99]),
  appends("append-256", "durable appends of 100 B, 256 connections", 256, [RATE, P99]),
  appends("append-1", "lone durable append of 100 B, 1 connection", 1, [P50, P99]),
  reads("tail-64", "tail reads of 1 KiB, 64 connections", false, prepareTails),
  reads("page-64", "catch-up pages of 64 KiB, 64 connections", false, preparePages),
  reads("cold-page-64", "the same pages after a restart", true, preparePages),
  {
    id: "sse-500",
    title: `SSE fan-out, ${FAN_OUT_READERS} readers of one stream, records of 100 B`,
    figures: [{ name: "deliveries", unit: "/s", isHigherBetter: true }],
    overPico: false,
    restarts: false,
    async prepare(target) {
      await createStream(target, "/bench-fan-out", "text/plain");
      return ["/bench-fan-out"];
    },
    async measure(target, paths, seconds) {
      const result = await runFanOut({ target, path: paths[0] ?? "", readers: FAN_OUT_READERS, seconds });
      return { figures: { deliveries: result.deliveries / result.seconds }, operations: result.deliveries };
    },
  },
];

/** Appends to as many streams as there are connections. */
function appends(id: string, title: string, connections: number, figures: Workload["figures"]): Workload {
  return {
    id,
    title,
    figures,
    overPico: true,
    restarts: false,
    async prepare(target) {
      const paths = Array.from({ length: connections }, (_, at) => `/bench-${target.protocol}-${at}`);
      await forEachParallel(connections, (at) => createStream(target, paths[at] ?? "", BINARY));
      return paths;
    },
    async measure({ url, folder }, paths, seconds) {
      return figuresOf(await runWrk({ url, folder, method: "POST", paths, bodyBytes: 100, connections, seconds }));
    },
  };
}

function reads(id: string, title: string, restarts: boolean, prepare: Workload["prepare"]): Workload {
  return {
    id,
    title,
    figures: [RATE, P99],
    overPico: false,
    restarts,
    prepare,
    async measure({ url, folder }, paths, seconds) {
      return figuresOf(await runWrk({ url, folder, method: "GET", paths, bodyBytes: 0, connections: 64, seconds }));
    },
  };
}

/** 64 streams of 32 records of 1 KiB, each read from its last record on. */
async function prepareTails(target: LoadTarget): Promise<readonly string[]> {
  const record = new Uint8Array(1024).fill(0x78);
  const paths: string[] = [];
  await forEachParallel(64, async (at) => {
    const path = `/bench-tail-${at}`;
    await createStream(target, path, BINARY);
    let offset = "";
    for (let count = 0; count < 31; count++) offset = await append(target, path, BINARY, record);
    await append(target, path, BINARY, record);
    paths.push(`${path}?offset=${offset}`);
  });
  await expectSize(target, paths[0] ?? "", 1024);
  return paths;
}

/** 64 streams of 64 records of 1 KiB, each read from its start: one page of 64 KiB. */
async function preparePages(target: LoadTarget): Promise<readonly string[]> {
  const record = new Uint8Array(1024).fill(0x78);
  const paths = Array.from({ length: 64 }, (_, at) => `/bench-page-${at}`);
  await forEachParallel(64, async (at) => {
    const path = paths[at] ?? "";
    await createStream(target, path, BINARY);
    for (let count = 0; count < 64; count++) await append(target, path, BINARY, record);
  });
  const reads = paths.map((path) => `${path}?offset=-1`);
  await expectSize(target, reads[0] ?? "", 64 * 1024);
  return reads;
}

async function expectSize(target: LoadTarget, path: string, bytes: number): Promise<void> {
  const size = await readSize(target, path);
  if (size !== bytes) throw new Error(`GET ${path} of ${target.url} has ${size} bytes, not ${bytes}`);
}

function figuresOf(result: { requests: number; seconds: number; p50Ms: number; p99Ms: number }): { figures: Figures; operations: number } {
  return { figures: { rate: result.requests / result.seconds, p50: result.p50Ms, p99: result.p99Ms }, operations: result.requests };
}
