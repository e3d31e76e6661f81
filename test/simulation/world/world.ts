/**
 * What every part of a run shares: time, chance, the trace, and the place where a failure is put down.
 * A run fails by its first failure; what throws later is a consequence.
 */

import { Breakers } from "./breakers.ts";
import { Prng } from "./prng.ts";
import { Scheduler } from "./scheduler.ts";
import { Trace } from "./trace.ts";

/** Steps of a run; more are a loop that simulated time does not end. */
const STEPS_MAX = 3_000_000;

/** A property that must hold did not. */
export class SimulationFailure extends Error {
  override readonly name = "SimulationFailure";
}

export class World {
  readonly prng: Prng;
  readonly trace: Trace;
  readonly scheduler: Scheduler;
  readonly breakers: Breakers;
  #failure: Error | null = null;
  /** While false, seams answer promptly and truly, and nobody is crashed or paused. */
  faultsOn = false;

  constructor(seed: string, onLine: ((line: string) => void) | null = null) {
    this.prng = new Prng(seed);
    this.trace = new Trace(onLine);
    this.scheduler = new Scheduler(this.prng.branch("scheduler"), this.trace);
    this.breakers = new Breakers(this.trace);
  }

  get failure(): Error | null {
    return this.#failure;
  }

  get nowMs(): number {
    return this.scheduler.nowMs;
  }

  /** Puts a failure down, for the caller to throw; the run ends before its next event. */
  failed(message: string): SimulationFailure {
    const failure = new SimulationFailure(`${message} (at ${this.nowMs.toFixed(3)} ms)`);
    this.record(failure);
    return failure;
  }

  check(condition: boolean, message: () => string): void {
    if (!condition) throw this.failed(message());
  }

  /** Puts down an error that escaped from somewhere it should not have. */
  record(error: unknown): void {
    if (this.#failure !== null) return;
    this.#failure = error instanceof Error ? error : new SimulationFailure(String(error));
    this.trace.note(`failure: ${this.#failure.message}`);
  }

  /** Starts an actor's work; what it throws fails the run. */
  spawn(work: Promise<void>): void {
    work.catch((error: unknown) => this.record(error));
  }

  /**
   * Runs events until `isDone`. Ends early by the first failure; a run that is not done after
   * `limitMs` of true time, or that has nothing left to do, has failed.
   */
  runUntil(isDone: () => boolean, limitMs: number, what: string): void {
    const endMs = this.nowMs + limitMs;
    while (this.#failure === null && !isDone()) {
      let isStepped = false;
      try {
        isStepped = this.scheduler.step();
      } catch (error) {
        this.record(error);
        return;
      }
      if (!isStepped) this.record(new SimulationFailure(`${what}: nothing is left to run, and it has not ended`));
      if (this.trace.steps > STEPS_MAX) this.record(new SimulationFailure(`${what}: not ended after ${STEPS_MAX} steps`));
      if (this.nowMs > endMs) this.record(new SimulationFailure(`${what}: not ended after ${limitMs} ms`));
    }
  }
}
