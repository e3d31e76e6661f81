/** Crashes nodes, mostly in the middle of something: at a drawn point of what the process does next. */
import type { SimNode } from "../sim-node.ts";
import { Actor, type Stage } from "../stage.ts";

export class Crasher extends Actor {
  constructor(
    stage: Stage,
    name: string,
    thinkMs: number,
    private readonly nodes: readonly SimNode[],
    private readonly powerLossChance: number,
  ) {
    super(stage, name, thinkMs);
  }

  protected async act(): Promise<void> {
    const { world } = this.stage;
    const node = this.prng.pick(this.nodes);
    const process = node.process;
    if (process === null) return;
    const kind = this.prng.chance(this.powerLossChance) ? "power_loss" : "kill";
    const crash = (where: string): void => {
      if (node.process === process) node.crash(kind, where);
    };
    const disarm = world.breakers.arm(process, Math.ceil(this.prng.magnitude(1, 300)), crash);
    // An idle node passes no points; it dies all the same.
    await this.sleep(this.prng.magnitude(100, 8000));
    disarm();
    if (!process.isDead) crash("rest");
    // Crashes in a row, before the next life is ready, are what recovery must bear.
    if (this.prng.chance(0.3)) await this.#crashAgain(node);
  }

  async #crashAgain(node: SimNode): Promise<void> {
    const { world } = this.stage;
    for (let times = this.prng.between(1, 3); times > 0; times--) {
      for (let looks = 0; node.process === null && looks < 100; looks++) await this.sleep(50);
      const process = node.process;
      if (process === null) return;
      const disarm = world.breakers.arm(process, Math.ceil(this.prng.magnitude(1, 100)), (where) => {
        if (node.process === process) node.crash(this.prng.chance(this.powerLossChance) ? "power_loss" : "kill", `recovery, ${where}`);
      });
      await this.sleep(this.prng.magnitude(100, 3000));
      disarm();
    }
  }
}
