/**
 * The database is lost: first the mirror falls behind while appends and uploads go on, then the node dies, its
 * database is gone, and another one is made of the bucket, maybe in several attempts. Nothing that was acknowledged may
 * be missing, and no id may come again.
 */
import { restoreDatabase } from "../../src/node/restore.ts";
import type { LogChecker } from "./checkers/log-checker.ts";
import { CLUSTER_ID, type Cluster } from "./cluster.ts";
import { openWal } from "./compose-node.ts";
import type { SimulationOptions } from "./options.ts";
import { ServiceLink } from "./seams/service-link.ts";
import { SimObjectStore } from "./seams/sim-object-store.ts";
import { SimSqlStore } from "./seams/sim-sql-store.ts";
import type { SimNode } from "./sim-node.ts";
import type { Stage } from "./stage.ts";
import { traceLogger } from "./trace-logger.ts";
import { SimProcess } from "./world/process.ts";
import { SimClock } from "./world/sim-clock.ts";

/** Long enough for the mirror to hold everything. */
const SETTLE_MS = 10_000;
const APPENDS = 30;
/** Uploads go on in the meantime. */
const THINK_MS_MAX = 3000;
const STEP_LIMIT_MS = 60 * 60_000;
/** Attempts that are cut short, at most. */
const CUTS_MAX = 3;

export interface LossParts {
  readonly stage: Stage;
  readonly cluster: Cluster;
  readonly checker: LogChecker;
  readonly options: SimulationOptions;
}

/** Returns when the database is restored; no node runs then. */
export function loseDatabase(parts: LossParts): void {
  const { cluster, checker, stage } = parts;
  const { world } = stage;
  const prng = world.prng.branch("database loss");
  const settledMs = world.nowMs + SETTLE_MS;
  world.runUntil(() => world.nowMs >= settledMs, STEP_LIMIT_MS, "the mirror");
  cluster.bucket.refusedPrefix = `${CLUSTER_ID}/mirror/`;
  let isDone = false;
  const append = async (): Promise<void> => {
    const plans = stage.plans.filter(({ ttlSeconds }) => ttlSeconds === null);
    for (let count = 0; count < APPENDS && plans.length > 0; count++) {
      const { name } = prng.pick(plans);
      const batch = stage.model.plan({
        name,
        count: prng.between(1, 4),
        paddingBytes: prng.below(2000),
        closes: false,
        producer: null,
        isCreate: false,
      });
      await stage.requests.append(batch);
      await world.scheduler.sleep(prng.below(THINK_MS_MAX), "appends behind the mirror");
    }
    isDone = true;
  };
  world.spawn(append());
  world.runUntil(() => isDone, STEP_LIMIT_MS, "appends behind the mirror");
  const lost = checker.state.counters;
  for (const node of cluster.nodes) {
    node.isWanted = false;
    node.crash(prng.chance(0.5) ? "kill" : "power_loss", "the database is lost");
  }
  // What the dead had under way must not bring commands back that the checkers hold for lost.
  let isQuiet = false;
  const settle = async (): Promise<void> => {
    // Time of its own: with all nodes dead nothing else may be left to run.
    await world.scheduler.sleep(SETTLE_MS, "what the dead had under way");
    isQuiet = true;
  };
  world.spawn(settle());
  world.runUntil(() => isQuiet, STEP_LIMIT_MS, "what the dead had under way");
  cluster.bucket.refusedPrefix = null;
  for (const node of cluster.nodes) {
    for (let cuts = 0; cuts < CUTS_MAX && prng.chance(0.5); cuts++) attempt(parts, node, Math.ceil(prng.magnitude(1, 200)));
    attempt(parts, node, null);
  }
  const { nextStreamId, nextObjectId } = checker.state.counters;
  world.check(
    nextStreamId > lost.nextStreamId && nextObjectId > lost.nextObjectId,
    () => "ids that were handed out will be handed out again",
  );
}

/** One restore; `points`: it dies after so many of its calls. */
function attempt({ cluster, checker, stage, options }: LossParts, node: SimNode, points: number | null): void {
  const { world } = stage;
  if (world.failure !== null) return;
  const process = new SimProcess(`restore on node ${node.nodeId}`, world.scheduler);
  const clock = new SimClock(world.scheduler, node.host, process);
  const random = world.prng.branch(`random of a restore at ${world.nowMs}`);
  const store = new SimObjectStore(cluster.bucket, new ServiceLink(cluster.store, process, node.nodeId));
  const openDatabase = async () => {
    cluster.database.lose();
    return new SimSqlStore(cluster.database, new ServiceLink(cluster.databaseService, process, node.nodeId), process);
  };
  let isDone = false;
  const disarm =
    points === null
      ? () => {}
      : world.breakers.arm(process, points, (where) => {
          world.trace.note(`the restore dies: ${where}`);
          world.trace.count("restore cut short");
          process.die("kill");
          isDone = true;
        });
  const restore = async (): Promise<void> => {
    const wal = await openWal(options, { world, process, nodeId: node.nodeId, host: node.host, disk: node.disk }, store, random);
    const log = traceLogger(world.trace, process);
    const onProgress = () => undefined;
    const settings = { clusterId: CLUSTER_ID, nodeId: node.nodeId, isForced: false };
    const report = await restoreDatabase({ store, wal, openDatabase, ...settings, clock, random, log, onProgress });
    world.check(report.problems.length === 0, () => `the restore passed over ${report.problems.join()}`);
    world.check(report.orphanCount >= 0 && report.lostStreamCount === 0, () => "the restore misses streams that the mirror knew");
    checker.checkSum("the restored state", report.mirroredIndex, report.stateHash);
    world.trace.count("restore");
    if (report.snapshotIndex > 0) world.trace.count("restore from a snapshot");
    isDone = true;
  };
  world.spawn(restore());
  world.runUntil(() => isDone, STEP_LIMIT_MS, "the restore");
  disarm();
  process.die("kill");
  if (node.disk.lockHolder === process) node.disk.lockHolder = null;
}
