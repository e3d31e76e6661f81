/**
 * One run, from a seed to a verdict. Three parts: load and faults until enough was done; then the faults
 * end and everything must settle; then everything is read back three times, through the node that lives,
 * through one that comes after a crash, and, its WAL gone, through the data objects alone.
 */
import { messageOf } from "../../src/lib/errors.ts";
import { Neighbour } from "./actors/neighbour.ts";
import { castActors, drawPlans } from "./cast.ts";
import { LogChecker } from "./checkers/log-checker.ts";
import { Client } from "./client.ts";
import { CLUSTER_ID, Cluster, type NodeFactory } from "./cluster.ts";
import { loseDatabase } from "./database-loss.ts";
import { Model } from "./model/model.ts";
import type { SimulationOptions } from "./options.ts";
import { Requests } from "./requests.ts";
import type { Stage } from "./stage.ts";
import { forbidRealWorld } from "./world/forbidden.ts";
import { World } from "./world/world.ts";

/** True time that the main part, and each step of the end, may take. */
const MAIN_LIMIT_MS = 4 * 3_600_000;
const STEP_LIMIT_MS = 60 * 60_000;
/** A page of hundreds of small objects, none of them cached, takes its time. */
const PAGE_PATIENCE_MS = 5 * 60_000;

export interface RunResult {
  readonly failure: Error | null;
  readonly hash: string;
  readonly counts: ReadonlyMap<string, number>;
  readonly steps: number;
  /** True time of the run, in ms. */
  readonly endMs: number;
  /** The last steps before a failure. */
  readonly recent: readonly string[];
}

/** Runs a seed. Synchronous but for rejections that nobody handled, which are gathered afterwards. */
export async function runSimulation(
  options: SimulationOptions,
  makeNode: NodeFactory,
  onLine: ((line: string) => void) | null = null,
): Promise<RunResult> {
  const world = new World(options.seed, onLine);
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown): void => {
    unhandled.push(error);
  };
  process.on("unhandledRejection", onUnhandled);
  const restore = forbidRealWorld();
  const run = new Run(world, options, makeNode);
  try {
    run.play();
  } catch (error) {
    world.record(error);
  } finally {
    restore();
    run.dispose();
  }
  await new Promise((resolve) => setTimeout(resolve, 0));
  process.off("unhandledRejection", onUnhandled);
  if (unhandled.length > 0) world.record(new Error(`a rejection that nobody handled: ${messageOf(unhandled[0])}`, { cause: unhandled[0] }));
  const { failure, trace, nowMs } = world;
  return { failure, hash: trace.hash, counts: trace.counts, steps: trace.steps, endMs: nowMs, recent: trace.recent() };
}

/** Operations are counted every so many steps. */
const STEPS_PER_COUNT = 32;
/** Twice the longest sliding life, and time to look. */
const EXPIRY_WAIT_MS = 150_000;

class Run {
  readonly #world: World;
  readonly #options: SimulationOptions;
  readonly #cluster: Cluster;
  readonly #checker: LogChecker;
  readonly #model: Model;
  readonly #stage: Stage;
  #neighbour: Neighbour | null = null;

  constructor(world: World, options: SimulationOptions, makeNode: NodeFactory) {
    this.#world = world;
    this.#options = options;
    const cluster = new Cluster(world, options, (made) => (place) => makeNode(made, options, this.#checker, place));
    this.#cluster = cluster;
    this.#checker = new LogChecker(world, cluster.database, cluster.bucket, CLUSTER_ID);
    this.#model = new Model(world, this.#checker);
    const client = new Client(world, (name) => cluster.serving(name));
    const requests = new Requests(world, client, this.#model);
    const plans = drawPlans(options, world.prng.branch("plans"));
    this.#stage = { world, model: this.#model, requests, plans, isOver: false };
  }

  dispose(): void {
    this.#cluster.database.close();
  }

  play(): void {
    const world = this.#world;
    const { trace } = world;
    for (const node of this.#cluster.nodes) node.run();
    this.#untilUp("the first start");
    world.faultsOn = true;
    const actors = castActors(this.#stage, this.#cluster, this.#options);
    this.#beginNeighbour();
    let acting = actors.length;
    for (const actor of actors) {
      world.spawn(
        actor.run().finally(() => {
          acting -= 1;
        }),
      );
    }
    const operations = (): number => sumOf(trace.counts, "operation ");
    const crashes = (): number => sumOf(trace.counts, "crash ");
    // Asked at each step, counted at some.
    let asked = 0;
    const isEnough = (): boolean =>
      ++asked % STEPS_PER_COUNT === 0 && operations() >= this.#options.operations && crashes() >= this.#options.crashesMin;
    world.runUntil(isEnough, MAIN_LIMIT_MS, "the main part");
    this.#stage.isOver = true;
    world.faultsOn = false;
    this.#cluster.heal();
    world.runUntil(() => acting === 0, STEP_LIMIT_MS, "the actors' end");
    this.#cluster.heal();
    this.#untilUp("the end");
    this.#readBack("through the node that lives");
    for (const node of this.#cluster.nodes) node.crash("kill", "end of the run");
    this.#untilUp("a crash at the end");
    this.#readBack("after a crash");
    if (this.#options.settling === "early") this.#settleStore();
    this.#endNeighbour();
    if (this.#options.isMirrored && world.failure === null) {
      loseDatabase({ stage: this.#stage, cluster: this.#cluster, checker: this.#checker, options: this.#options });
      for (const node of this.#cluster.nodes) node.run();
      this.#untilUp("a restore");
      this.#readBack("through a restored database");
    }
    this.#restartWithoutWal();
    this.#readBack("through the data objects alone");
    this.#checkExpired();
    if (this.#options.settling === "late") this.#settleStore();
  }

  #untilUp(after: string): void {
    this.#world.runUntil(() => this.#cluster.nodes.every((node) => node.isUp), STEP_LIMIT_MS, `ready after ${after}`);
  }

  /** Reads every stream whole and holds the result against everything known. */
  #readBack(how: string): void {
    const world = this.#world;
    if (world.failure !== null) return;
    world.trace.note(`reads everything back ${how}`);
    let isDone = false;
    const read = async (): Promise<void> => {
      const present = new Map<number, { startOffset: number; nextOffset: number }>();
      for (const { name } of this.#stage.plans) {
        const page = await this.#readWhole(name);
        if (page !== null) present.set(page.info.streamId, { startOffset: page.info.startOffset, nextOffset: page.info.nextOffset });
      }
      this.#model.checkFinal(present, how);
      this.#checker.checkLiveObjects();
      for (const node of this.#cluster.nodes) node.built?.checkState();
      isDone = true;
    };
    world.spawn(read());
    world.runUntil(() => isDone, STEP_LIMIT_MS, `reading back ${how}`);
  }

  /** Null: there is no such stream, which the model has checked. Anything else is tried again. */
  async #readWhole(name: string) {
    for (let tries = 0; tries < 20; tries++) {
      const page = await this.#stage.requests.readWhole(name, PAGE_PATIENCE_MS);
      if (page !== null) return page;
      const head = await this.#stage.requests.head(name);
      if (head.kind === "refused" && (head.error.code === "not_found" || head.error.code === "gone")) return null;
      await this.#world.scheduler.sleep(500, "read back again");
    }
    throw this.#world.failed(`${name} cannot be read, though all faults have ended`);
  }

  #beginNeighbour(): void {
    if (!this.#options.hasNeighbour) return;
    this.#neighbour = new Neighbour(this.#stage, this.#cluster.database, this.#checker);
    this.#world.spawn(
      this.#neighbour.run().finally(() => {
        this.#neighbour = null;
      }),
    );
  }

  #endNeighbour(): void {
    if (this.#world.failure !== null) return;
    this.#neighbour?.leave();
    this.#world.runUntil(() => this.#neighbour === null, STEP_LIMIT_MS, "the neighbour's end");
  }

  /** Left to themselves, the nodes clean up: then the store holds what is known, and nothing else. */
  #settleStore(): void {
    const world = this.#world;
    if (world.failure !== null) return;
    const { store } = this.#checker;
    let asked = 0;
    let left: string | null = "not looked at yet";
    const isSettled = (): boolean => {
      if (++asked % STEPS_PER_COUNT === 0) left = store.unsettled;
      return left === null;
    };
    world.runUntil(isSettled, STEP_LIMIT_MS, "the store to settle");
    world.trace.note(`the store has settled, but for ${left}`);
    if (left === null) store.checkSettled();
  }

  /** A graceful stop uploads everything; then the WAL is not needed any more. */
  #restartWithoutWal(): void {
    const world = this.#world;
    let stopping = this.#cluster.nodes.length;
    for (const node of this.#cluster.nodes) {
      node.isWanted = false;
      world.spawn(
        node.stop().then(() => {
          stopping -= 1;
        }),
      );
    }
    world.runUntil(() => stopping === 0, STEP_LIMIT_MS, "the graceful stop");
    if (world.failure !== null) return;
    this.#checker.checkAllEnded();
    this.#cluster.bucket.wipe(`${CLUSTER_ID}/wal/`);
    for (const node of this.#cluster.nodes) {
      node.disk.wipe();
      node.run();
    }
    this.#untilUp("a graceful stop");
  }

  /** Nobody touches anything any more: what can expire does. */
  #checkExpired(): void {
    const world = this.#world;
    const isDying = [...this.#checker.lives()].some(({ settings, removedMs }) => settings.ttlSeconds !== null && removedMs === null);
    if (world.failure !== null || !isDying) return;
    const endMs = world.nowMs + EXPIRY_WAIT_MS;
    world.runUntil(() => world.nowMs >= endMs, STEP_LIMIT_MS, "idle time");
    for (const facts of this.#checker.lives()) {
      const expires = facts.settings.ttlSeconds !== null && facts.settings.ttlSeconds <= 60n;
      world.check(!expires || facts.removedMs !== null, () => `${facts.name} (id ${facts.streamId}) never expired`);
      this.#model.checkExpiry(facts);
    }
  }
}

function sumOf(counts: ReadonlyMap<string, number>, prefix: string): number {
  let sum = 0;
  for (const [kind, count] of counts) if (kind.startsWith(prefix)) sum += count;
  return sum;
}
