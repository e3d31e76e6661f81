/**
 * One life of a simulated server process, from start to death. Everything that reaches the program
 * inside (a timer, an answer of a store, a request of a client) passes through `deliver`: at once while
 * it runs, after `resume` while it is paused, never once it is dead. That is all a death is: the object
 * graph is abandoned, and nothing it still does can be seen outside.
 */
import type { Scheduler } from "./scheduler.ts";

/** `kill`: the process is gone, the host stays. `power_loss`: what its files had not synced is lost too. */
export type DeathKind = "kill" | "power_loss";

export class SimProcess {
  #state: "running" | "paused" | "dead" = "running";
  #parked: (() => void)[] = [];
  readonly #onDeath = new Set<(kind: DeathKind) => void>();

  constructor(
    /** `node 1, life 3`. */
    readonly name: string,
    private readonly scheduler: Scheduler,
  ) {}

  get isDead(): boolean {
    return this.#state === "dead";
  }

  get isPaused(): boolean {
    return this.#state === "paused";
  }

  deliver(run: () => void): void {
    if (this.#state === "running") run();
    else if (this.#state === "paused") this.#parked.push(run);
  }

  /** As SIGSTOP: time goes on, nothing runs. */
  pause(): void {
    if (this.#state === "running") this.#state = "paused";
  }

  /** As SIGCONT: what came due meanwhile arrives now, in an order that is drawn. */
  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    const parked = this.#parked;
    this.#parked = [];
    for (const run of parked) this.scheduler.schedule(0, `${this.name} wakes`, () => this.deliver(run));
  }

  die(kind: DeathKind): void {
    if (this.#state === "dead") return;
    this.#state = "dead";
    this.#parked = [];
    for (const listener of this.#onDeath) listener(kind);
    this.#onDeath.clear();
  }

  /** Returns a function that ends the listening. */
  onDeath(listener: (kind: DeathKind) => void): () => void {
    this.#onDeath.add(listener);
    return () => this.#onDeath.delete(listener);
  }
}
