/** Follows one stream for a while: reads to its tail, waits there, reads on when woken. */
import { Actor } from "../stage.ts";

export class LiveReader extends Actor {
  protected async act(): Promise<void> {
    const { prng, stage } = this;
    const { name } = this.pickPlan();
    let from: number | "start" | "tail" = prng.chance(0.5) ? "start" : "tail";
    for (let rounds = prng.between(1, 8); rounds > 0 && !stage.isOver; rounds--) {
      const page = await stage.requests.read(name, from);
      if (page.kind !== "value" || page.value.isEnd) return;
      const { info, next } = page.value;
      from = next;
      if (!page.value.isUpToDate) continue;
      const outcome = await stage.requests.wait(name, info.streamId, next, prng.between(50, 20_000));
      if (outcome.kind !== "value" || outcome.value === "deleted" || outcome.value === "moved") return;
      stage.world.trace.count(`wait ${outcome.value}`);
      if (outcome.value === "data") await this.#expectMore(name, info.streamId, next);
    }
  }

  /** A reader that was woken by data finds it. */
  async #expectMore(name: string, streamId: number, from: number): Promise<void> {
    const page = await this.stage.requests.read(name, from);
    if (page.kind !== "value" || page.value.info.streamId !== streamId) return;
    this.stage.world.check(page.value.info.nextOffset > from, () => `wait on ${name} at ${from} was woken by data, and there is none`);
  }
}
