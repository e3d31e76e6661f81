/** Keeps one expiring stream alive for a while by reads, then looks at it from afar until it is gone. */
import { Actor } from "../stage.ts";

export class Toucher extends Actor {
  protected async act(): Promise<void> {
    const { prng, stage } = this;
    const plan = this.pickPlan();
    if (plan.ttlSeconds === null) return;
    const ttlMs = Number(plan.ttlSeconds) * 1000;
    for (let touches = prng.between(1, 4); touches > 0 && !stage.isOver; touches--) {
      await stage.requests.read(plan.name, prng.chance(0.5) ? "start" : "tail");
      await this.sleep(ttlMs * prng.fraction());
    }
    for (let looks = 6; looks > 0 && !stage.isOver; looks--) {
      await this.sleep(ttlMs / 4);
      const answer = await stage.requests.head(plan.name);
      if (answer.kind === "refused") return;
    }
  }
}
