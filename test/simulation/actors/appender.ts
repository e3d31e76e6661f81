/** Appends without a producer: single records, batches, closes, conditional appends, `Stream-Seq`; never repeats one. */
import { Actor, type StreamPlan } from "../stage.ts";

export class Appender extends Actor {
  #streamSeq = 0;

  protected async act(): Promise<void> {
    const plan = this.pickPlan();
    const closes = plan.isClosable && this.prng.chance(0.03);
    const isCloseOnly = closes && this.prng.chance(0.5);
    const count = isCloseOnly ? 0 : this.prng.chance(0.7) ? 1 : this.prng.between(1, 12);
    const batch = this.stage.model.plan({
      name: plan.name,
      count,
      paddingBytes: this.prng.chance(0.9) ? this.prng.below(120) : this.prng.below(9000),
      closes,
      producer: null,
      isCreate: false,
    });
    await this.stage.requests.append(batch, {
      matchTail: this.prng.chance(0.1) ? await this.#guessTail(plan) : null,
      streamSeq: this.prng.chance(0.1) ? `${this.name} ${String(this.#streamSeq++).padStart(8, "0")}` : null,
      patienceMs: this.prng.chance(0.1) ? 500 : 30_000,
    });
  }

  async #guessTail(plan: StreamPlan): Promise<bigint | null> {
    const answer = await this.stage.requests.head(plan.name);
    return answer.kind === "value" ? BigInt(answer.value.nextOffset) : null;
  }
}
