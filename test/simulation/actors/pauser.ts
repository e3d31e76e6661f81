/** Stops processes in the middle of something (SIGSTOP), for moments and for longer than every limit. */
import type { SimNode } from "../sim-node.ts";
import { Actor, type Stage } from "../stage.ts";

export class Pauser extends Actor {
  constructor(
    stage: Stage,
    name: string,
    thinkMs: number,
    private readonly nodes: readonly SimNode[],
  ) {
    super(stage, name, thinkMs);
  }

  protected async act(): Promise<void> {
    const { world } = this.stage;
    const process = this.prng.pick(this.nodes).process;
    if (process === null) return;
    const disarm = world.breakers.arm(process, Math.ceil(this.prng.magnitude(1, 200)), () => {
      process.pause();
      world.trace.count("pause");
    });
    await this.sleep(this.prng.magnitude(10, 20_000));
    disarm();
    process.resume();
  }
}
