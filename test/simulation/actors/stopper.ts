/** Stops nodes gracefully; the supervisor starts them again. */
import type { SimNode } from "../sim-node.ts";
import { Actor, type Stage } from "../stage.ts";

export class Stopper extends Actor {
  constructor(
    stage: Stage,
    name: string,
    thinkMs: number,
    private readonly nodes: readonly SimNode[],
  ) {
    super(stage, name, thinkMs);
  }

  protected async act(): Promise<void> {
    await Promise.race([this.prng.pick(this.nodes).stop(), this.sleep(60_000)]);
  }
}
