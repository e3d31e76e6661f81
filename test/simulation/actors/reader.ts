/** Reads streams: whole, from known places, at the tail, in small and in large pages; heads and lists too. */
import { Actor } from "../stage.ts";

export class Reader extends Actor {
  protected async act(): Promise<void> {
    const { prng, stage } = this;
    const { name } = this.pickPlan();
    const choice = prng.below(10);
    if (choice === 0) await stage.requests.list(prng.between(1, 20));
    else if (choice <= 2) await stage.requests.head(name);
    else if (choice <= 4) await stage.requests.readWhole(name);
    else await this.#readPages(name);
  }

  async #readPages(name: string): Promise<void> {
    const { prng, stage } = this;
    const bounds = { recordsMax: prng.chance(0.5) ? 0 : prng.between(1, 10), bytesMax: Math.floor(prng.magnitude(1, 65_536)) };
    const tail = stage.model.knownTail(name);
    let from: number | "start" | "tail" = prng.pick(["start", "tail", prng.between(0, tail)] as const);
    for (let pages = prng.between(1, 8); pages > 0; pages--) {
      const answer = await stage.requests.read(name, from, bounds);
      if (answer.kind !== "value") return;
      if (answer.value.isUpToDate && prng.chance(0.8)) return;
      from = answer.value.next;
    }
  }
}
