/** Trims streams: to a known place, to the tail, beyond it, and backwards. */
import { Actor } from "../stage.ts";

export class Trimmer extends Actor {
  protected async act(): Promise<void> {
    const { prng, stage } = this;
    const { name } = this.pickPlan();
    const tail = stage.model.knownTail(name);
    const offset = prng.chance(0.15) ? tail + prng.below(50) : prng.between(0, tail);
    await stage.requests.trim(name, offset);
    if (prng.chance(0.5)) await stage.requests.read(name, "start");
  }
}
