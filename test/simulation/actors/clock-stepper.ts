/** Steps wall clocks of hosts by seconds, an hour, a day and a year, both ways, and that of the database a little. */
import type { SimDatabase } from "../seams/sim-database.ts";
import type { SimNode } from "../sim-node.ts";
import { Actor, type Stage } from "../stage.ts";

const HOUR_MS = 3_600_000;

export class ClockStepper extends Actor {
  constructor(
    stage: Stage,
    name: string,
    thinkMs: number,
    private readonly nodes: readonly SimNode[],
    private readonly database: SimDatabase,
    /** Whether the database's clock is stepped too, and by how much at most. */
    private readonly databaseStepMsMax: number,
  ) {
    super(stage, name, thinkMs);
  }

  protected async act(): Promise<void> {
    const { prng } = this;
    const { trace } = this.stage.world;
    const sign = prng.chance(0.5) ? 1 : -1;
    if (this.databaseStepMsMax > 0 && prng.chance(0.3)) {
      trace.count("clock step database");
      this.database.stepClock(sign * Math.ceil(prng.magnitude(1, this.databaseStepMsMax)));
      return;
    }
    trace.count("clock step host");
    prng.pick(this.nodes).host.offsetMs += sign * prng.pick([prng.below(5000), HOUR_MS, 24 * HOUR_MS, 365 * 24 * HOUR_MS]);
  }
}
