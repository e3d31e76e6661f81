/** Creates streams that are missing, now and then ones that are there: empty, with records, closed; two at once to race. */
import { Actor, type StreamPlan } from "../stage.ts";

export class Creator extends Actor {
  protected async act(): Promise<void> {
    const plan = this.pickPlan();
    if (plan.sourceName !== null) return;
    if (this.prng.chance(0.15)) await Promise.all([this.create(plan), this.create(plan)]);
    else await this.create(plan);
  }

  async create(plan: StreamPlan): Promise<void> {
    const { model, requests } = this.stage;
    const { name, contentType, ttlSeconds } = plan;
    const count = this.prng.chance(0.4) ? this.prng.between(1, 5) : 0;
    const batch =
      count === 0 ? null : model.plan({ name, count, paddingBytes: this.prng.below(300), closes: false, producer: null, isCreate: true });
    const isClosed = plan.isClosable && this.prng.chance(0.05);
    await requests.create(
      { name, contentType, ttlSeconds, expiresAtMs: null, isClosed, records: batch?.records() ?? [], fork: null },
      batch,
    );
  }
}
