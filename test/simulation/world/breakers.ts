/**
 * Crashes and pauses that strike *between* two steps of a node, not only between requests: an armed
 * breaker counts the points that its process passes (a call leaves, its effect happens, its answer
 * arrives) and acts at the one it was set to.
 */
import type { SimProcess } from "./process.ts";
import type { Trace } from "./trace.ts";

/** Where in a call through a seam: as it leaves the process, after its effect, before its answer. */
export type SeamPhase = "request" | "effect" | "answer";

interface Breaker {
  readonly process: SimProcess;
  pointsLeft: number;
  readonly act: (where: string) => void;
}

export class Breakers {
  readonly #armed: Breaker[] = [];

  constructor(private readonly trace: Trace) {}

  /** `act` is called at the `points`th point from now that the process passes. Returns a function that disarms. */
  arm(process: SimProcess, points: number, act: (where: string) => void): () => void {
    const breaker: Breaker = { process, pointsLeft: points, act };
    this.#armed.push(breaker);
    return () => this.#remove(breaker);
  }

  /** A process passes a point. True: it is dead now, and the caller must go no further for it. */
  pass(process: SimProcess, seam: string, phase: SeamPhase): boolean {
    // Mostly none is armed.
    if (this.#armed.length === 0) return process.isDead;
    for (const breaker of [...this.#armed]) {
      if (breaker.process !== process) continue;
      breaker.pointsLeft -= 1;
      if (breaker.pointsLeft > 0) continue;
      this.#remove(breaker);
      const where = `${seam} ${phase}`;
      this.trace.note(`${process.name} breaks at ${where}`);
      breaker.act(where);
    }
    return process.isDead;
  }

  #remove(breaker: Breaker): void {
    const at = this.#armed.indexOf(breaker);
    if (at >= 0) this.#armed.splice(at, 1);
  }
}
