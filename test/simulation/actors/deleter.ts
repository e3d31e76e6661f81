/** Deletes streams, and often creates the name again at once, with other records. */

import type { Stage } from "../stage.ts";
import { Actor } from "../stage.ts";
import type { Creator } from "./creator.ts";

export class Deleter extends Actor {
  constructor(
    stage: Stage,
    name: string,
    thinkMs: number,
    private readonly creator: Creator,
  ) {
    super(stage, name, thinkMs);
  }

  protected async act(): Promise<void> {
    const plan = this.pickPlan();
    if (!plan.isDeletable) return;
    const answer = await this.stage.requests.delete(plan.name);
    if (answer.kind !== "value") return;
    if (plan.sourceName === null && this.prng.chance(0.7)) await this.creator.create(plan);
    else await this.stage.requests.head(plan.name);
  }
}
