/**
 * A node id on its host: at most one life at a time, started again after each end, as a supervisor would.
 * What the host keeps (its disk, its clock) outlives the lives.
 */
import { messageOf } from "../../src/lib/errors.ts";
import type { BuildNode, BuiltNode } from "./build-node.ts";
import type { Serving } from "./client.ts";
import type { SimDisk } from "./seams/sim-disk.ts";
import type { Prng } from "./world/prng.ts";
import { type DeathKind, SimProcess } from "./world/process.ts";
import type { HostTime } from "./world/sim-clock.ts";
import type { World } from "./world/world.ts";

export class SimNode {
  readonly #prng: Prng;
  #lives = 0;
  #process: SimProcess | null = null;
  #built: BuiltNode | null = null;
  #isReady = false;
  #isStopping = false;
  /** The supervisor starts no new life while false. */
  isWanted = false;

  constructor(
    private readonly world: World,
    readonly nodeId: number,
    readonly host: HostTime,
    readonly disk: SimDisk,
    private readonly build: BuildNode,
    /** Mean time until the supervisor starts it again. */
    private readonly restartMs: number,
  ) {
    this.#prng = world.prng.branch(`node ${nodeId}`);
  }

  /** The process that lives now; null while there is none. */
  get process(): SimProcess | null {
    return this.#process;
  }

  get isUp(): boolean {
    return this.#process !== null && this.#isReady && !this.#process.isPaused;
  }

  get built(): BuiltNode | null {
    return this.#built;
  }

  /** Also while it recovers: it refuses by itself what it cannot do yet. */
  serving(): Serving | null {
    const process = this.#process;
    const service = this.#built?.service ?? null;
    return process === null || service === null ? null : { process, service };
  }

  /** Begins to keep a process alive. */
  run(): void {
    this.isWanted = true;
    if (this.#process === null) this.#start();
  }

  crash(kind: DeathKind, why: string): void {
    const process = this.#process;
    if (process === null) return;
    this.world.trace.note(`${process.name} dies by ${kind}: ${why}`);
    this.world.trace.count(`crash ${kind}`);
    this.#end(kind);
  }

  /** A graceful stop; the supervisor starts it again unless it is not wanted. */
  async stop(): Promise<void> {
    const process = this.#process;
    const built = this.#built;
    if (process === null || built === null || !this.#isReady || this.#isStopping) return;
    this.#isStopping = true;
    this.world.trace.count("stop graceful");
    await built.stop().catch((error: unknown) => this.world.trace.note(`${process.name} stopped badly: ${messageOf(error)}`));
    if (!process.isDead) this.#end("kill");
  }

  #start(): void {
    if (this.#process !== null || !this.isWanted) return;
    this.#lives += 1;
    const process = new SimProcess(`node ${this.nodeId}, life ${this.#lives}`, this.world.scheduler);
    this.#process = process;
    this.#isReady = false;
    this.#isStopping = false;
    this.world.trace.note(`${process.name} starts`);
    const built = this.build({ world: this.world, process, nodeId: this.nodeId, host: this.host, disk: this.disk });
    this.#built = built;
    built.start().then(
      () => {
        if (process.isDead) return;
        this.#isReady = true;
        this.world.trace.note(`${process.name} is ready`);
      },
      (error: unknown) => this.#ended(process, error),
    );
    built.stopped.then(({ error }) => this.#ended(process, error)).catch((error: unknown) => this.world.record(error));
  }

  /** The process ended by itself: it could not start, or had to stop. */
  #ended(process: SimProcess, error: unknown): void {
    if (process.isDead || this.#isStopping) return;
    this.world.trace.note(`${process.name} ends by itself: ${messageOf(error)}`);
    this.world.trace.count("node ended by itself");
    this.#built?.checkEnd(error);
    // What it still answers on its way out counts too.
    this.#isStopping = true;
    this.world.scheduler.schedule(this.#prng.below(1000), `${process.name} exits`, () => {
      if (!process.isDead) this.#end("kill");
    });
  }

  #end(kind: DeathKind): void {
    const process = this.#process;
    if (process === null) return;
    process.die(kind);
    if (kind === "power_loss") this.disk.losePower();
    if (this.disk.lockHolder === process) this.disk.lockHolder = null;
    this.#process = null;
    this.#built = null;
    this.#isReady = false;
    if (!this.isWanted) return;
    this.world.scheduler.schedule(this.#prng.around(this.restartMs), `node ${this.nodeId} is started again`, () => this.#start());
  }
}
