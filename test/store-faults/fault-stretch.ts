/** A stretch of load over one fault of the store, and what was seen of the node meanwhile. */
import type { NodeProcess } from "../cluster/node-process.ts";
import type { LoadCounts, RoundLoad, StreamLoad } from "../cluster/stream-load.ts";
import { verifyStreams } from "../cluster/stream-reading.ts";

/**
 * Of the whole process, at its worst moment. Some 160 MiB of it live: the run time, the backlog, the caches, requests under way.
 * The rest is what was refused and not collected yet, up to 640 MiB on a quick machine; kept, the bodies of 10 s alone were 700 MiB more.
 */
const RESIDENT_BYTES_MAX = 850 << 20;
/** From the end of a fault until an append is taken: a call that was under way may have to time out first. */
const RECOVERY_MS_MAX = 60_000;
const HEALTHY_MS = 1500;
const LOOK_MS = 100;
const LOAD: RoundLoad = { lengthMax: 60_000, hasChurn: false };

export interface FaultStretch {
  /** While the fault was there, and behind it. */
  readonly during: LoadCounts;
  readonly after: LoadCounts;
  /** From the end of the fault until an append was acknowledged; for people. */
  readonly recovered: string;
  readonly residentBytes: number;
  /** What holds under every fault, and did not. */
  readonly problems: readonly string[];
}

/** Loads the node, has `fault` happen under the load and pass, and reads what was acknowledged. */
export async function runStretch(node: NodeProcess, load: StreamLoad, fault: () => Promise<void>): Promise<FaultStretch> {
  const end = Promise.withResolvers<void>();
  const loading = load.run(LOAD, end.promise);
  const memory = watchMemory(node);
  await Bun.sleep(HEALTHY_MS);
  load.takeCounts();
  let during: LoadCounts;
  let recoveredMs: number | null;
  try {
    await fault();
    during = load.takeCounts();
    recoveredMs = await recovery(load);
    await Bun.sleep(HEALTHY_MS);
  } finally {
    end.resolve();
    await loading;
  }
  const after = load.takeCounts();
  const residentBytes = memory.stop();
  await verifyStreams(node.ports, load.streams, false);

  const problems: string[] = [];
  if (node.hasExited) problems.push(`the node ended: ${node.lastWords()}`);
  if (recoveredMs === null) problems.push(`no append was taken within ${RECOVERY_MS_MAX} ms of the end of the fault`);
  if (residentBytes > RESIDENT_BYTES_MAX) problems.push(`the node took ${residentBytes >> 20} MiB of memory`);
  const recovered = recoveredMs === null ? "never" : `${(recoveredMs / 1000).toFixed(1)} s`;
  return { during, after, recovered, residentBytes, problems: [...problems, ...takeViolations(load)] };
}

/** Loads the node, has `fault` begin under the load, and kills the node in it: what was acknowledged in a fault must be in the store. */
export async function killInFault(node: NodeProcess, load: StreamLoad, fault: () => Promise<void>): Promise<void> {
  const end = Promise.withResolvers<void>();
  const loading = load.run(LOAD, end.promise);
  try {
    await Bun.sleep(HEALTHY_MS);
    await fault();
    await node.kill();
  } finally {
    end.resolve();
    await loading;
  }
}

export function takeViolations(load: StreamLoad): string[] {
  return load.streams.flatMap((facts) => facts.violations.splice(0));
}

/** Milliseconds until an append was acknowledged; null where none was. */
async function recovery(load: StreamLoad): Promise<number | null> {
  const startMs = performance.now();
  const before = load.acknowledged;
  while (performance.now() - startMs < RECOVERY_MS_MAX) {
    if (load.acknowledged > before) return performance.now() - startMs;
    await Bun.sleep(LOOK_MS);
  }
  return null;
}

function watchMemory(node: NodeProcess): { stop(): number } {
  let most = 0;
  const timer = setInterval(() => {
    if (!node.hasExited) most = Math.max(most, node.residentBytes);
  }, LOOK_MS);
  return {
    stop: () => {
      clearInterval(timer);
      return most;
    },
  };
}
